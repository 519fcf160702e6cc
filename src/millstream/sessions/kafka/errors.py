"""Refusals that only Kafka's own requests can meet.

BrokerError
├── InvalidResource
├── InvalidReplicationFactor
├── InvalidAssignment
└── SecurityDisabled
"""

from millstream.broker.errors import BrokerError

__all__ = ["InvalidAssignment", "InvalidReplicationFactor", "InvalidResource", "SecurityDisabled"]


class InvalidResource(BrokerError):
    """A resource that has no settings here, or none that may be changed."""


class InvalidReplicationFactor(BrokerError):
    """More replicas than there are servers."""


class InvalidAssignment(BrokerError):
    """Partitions assigned by hand to servers that do not exist, or with gaps between their numbers."""


class SecurityDisabled(BrokerError):
    """ACLs are asked for, and the server decides by none."""
