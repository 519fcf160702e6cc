"""Tenants, namespaces and their policies."""

from millstream.broker.namespaces.errors import (
    InvalidNamespaceName,
    InvalidPolicy,
    NamespaceError,
    NamespaceExists,
    NamespaceInUse,
    NamespaceNotEmpty,
    TenantExists,
    TenantNotEmpty,
    UnknownNamespace,
    UnknownTenant,
)
from millstream.broker.namespaces.namespaces import CLUSTER, Namespace, Namespaces, Tenant
from millstream.broker.namespaces.policies import (
    AutoTopicCreation,
    BacklogAction,
    BacklogQuota,
    Policies,
    Retention,
)

__all__ = [
    "CLUSTER",
    "AutoTopicCreation",
    "BacklogAction",
    "BacklogQuota",
    "InvalidNamespaceName",
    "InvalidPolicy",
    "Namespace",
    "NamespaceError",
    "NamespaceExists",
    "NamespaceInUse",
    "NamespaceNotEmpty",
    "Namespaces",
    "Policies",
    "Retention",
    "Tenant",
    "TenantExists",
    "TenantNotEmpty",
    "UnknownNamespace",
    "UnknownTenant",
]
