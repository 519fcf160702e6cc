"""The operations that a client is told it may do: bit n for Kafka's AclOperation n."""

from collections.abc import Iterable, Mapping
from typing import Final

from millstream.broker.acl import CLUSTER_NAME, Operation, ResourceType
from millstream.sessions.kafka.acl_codes import OPERATION_CODES
from millstream.sessions.kafka.authorization import may, may_with_cluster
from millstream.sessions.kafka.call import Call

__all__ = ["NOT_ASKED", "of_cluster", "of_group", "of_topic"]

NOT_ASKED: Final = -(2**31)
_NONE: Final = 0
_OPERATIONS: Final[Mapping[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""What can be done with a resource of each type that this server has APIs for."""


def _bits_of(operations: Iterable[Operation]) -> int:
    return sum(1 << OPERATION_CODES[one] for one in operations)


_EVERYTHING: Final = {resource_type: _bits_of(operations) for resource_type, operations in _OPERATIONS.items()}


def of_topic(call: Call, name: str) -> int:
    """What the client may do with a topic."""
    return _bits(call, ResourceType.TOPIC, name)


def of_group(call: Call, name: str) -> int:
    """What the client may do with a group."""
    return _bits(call, ResourceType.GROUP, name)


def of_cluster(call: Call) -> int:
    """What the client may do with the cluster; nothing if it may not even describe it."""
    if not may_with_cluster(call, Operation.DESCRIBE):
        return _NONE
    return _bits(call, ResourceType.CLUSTER, CLUSTER_NAME)


def _bits(call: Call, resource_type: ResourceType, name: str) -> int:
    if call.broker.authorizer is None:
        return _EVERYTHING[resource_type]
    return _bits_of(one for one in _OPERATIONS[resource_type] if may(call, one, resource_type, name))
