"""Errors of tenants and namespaces.

NamespaceError
├── UnknownTenant
├── UnknownNamespace
├── TenantExists
├── NamespaceExists
├── TenantNotEmpty
├── NamespaceNotEmpty
├── NamespaceInUse          it belongs to every server and stays
├── InvalidNamespaceName
└── InvalidPolicy
"""

from millstream.broker.errors import BrokerError

__all__ = [
    "InvalidNamespaceName",
    "InvalidPolicy",
    "NamespaceError",
    "NamespaceExists",
    "NamespaceInUse",
    "NamespaceNotEmpty",
    "TenantExists",
    "TenantNotEmpty",
    "UnknownNamespace",
    "UnknownTenant",
]


class NamespaceError(BrokerError):
    """A tenant or a namespace cannot be had as asked."""


class UnknownTenant(NamespaceError):
    """There is no such tenant."""


class UnknownNamespace(NamespaceError):
    """There is no such namespace."""


class TenantExists(NamespaceError):
    """There is a tenant of this name already."""


class NamespaceExists(NamespaceError):
    """There is a namespace of this name already, or one that has the same name where names are flat."""


class TenantNotEmpty(NamespaceError):
    """A tenant with namespaces cannot be deleted."""


class NamespaceNotEmpty(NamespaceError):
    """A namespace with topics cannot be deleted."""


class NamespaceInUse(NamespaceError):
    """The tenant and the namespace in which flat-named protocols make their topics cannot be deleted."""


class InvalidNamespaceName(NamespaceError):
    """A name that a tenant or a namespace cannot have."""


class InvalidPolicy(NamespaceError):
    """A value that a policy cannot have."""
