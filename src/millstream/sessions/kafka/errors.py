"""Refusals that only Kafka's own requests can meet.

BrokerError
├── InvalidResource
├── InvalidReplicationFactor
├── InvalidHeartbeat
├── InvalidPattern
├── InvalidAssignment
└── SecurityDisabled
"""

from millstream.broker.errors import BrokerError

__all__ = [
    "InvalidAssignment",
    "InvalidHeartbeat",
    "InvalidPattern",
    "InvalidReplicationFactor",
    "InvalidResource",
    "SecurityDisabled",
]


class InvalidResource(BrokerError):
    """A resource that has no settings here, or none that may be changed."""


class InvalidReplicationFactor(BrokerError):
    """More replicas than there are servers."""


class InvalidAssignment(BrokerError):
    """Partitions assigned by hand to servers that do not exist, or with gaps between their numbers."""


class SecurityDisabled(BrokerError):
    """ACLs are asked for, and the server decides by none."""


class InvalidHeartbeat(BrokerError):
    """A heartbeat of a consumer group's member that does not say what it must, or says what cannot be."""


class InvalidPattern(BrokerError):
    """A regular expression that is none, or too long."""
