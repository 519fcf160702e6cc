"""Kafka's numbers for what ACLs are made of, and the messages that carry them.

Source: org.apache.kafka.common.acl and org.apache.kafka.common.resource of Apache Kafka 4.x.
"""

from collections.abc import Mapping
from typing import Final, TypeVar

from millstream.broker.acl import (
    Acl,
    AclFilter,
    InvalidAcl,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from millstream.wire.kafka.messages.create_acls import AclCreation
from millstream.wire.kafka.messages.delete_acls import DeleteAclsFilter
from millstream.wire.kafka.messages.describe_acls import DescribeAclsRequest

__all__ = [
    "OPERATION_CODES",
    "PATTERN_TYPE_CODES",
    "PERMISSION_CODES",
    "RESOURCE_TYPE_CODES",
    "acl_of",
    "filter_of",
]

T = TypeVar("T")

_ANY: Final = 1
RESOURCE_TYPE_CODES: Final[Mapping[ResourceType, int]] = {
    ResourceType.TOPIC: 2,
    ResourceType.GROUP: 3,
    ResourceType.CLUSTER: 4,
    ResourceType.TRANSACTIONAL_ID: 5,
    ResourceType.DELEGATION_TOKEN: 6,
    ResourceType.USER: 7,
}
PATTERN_TYPE_CODES: Final[Mapping[PatternType, int]] = {
    PatternType.ANY: _ANY,
    PatternType.MATCH: 2,
    PatternType.LITERAL: 3,
    PatternType.PREFIXED: 4,
}
OPERATION_CODES: Final[Mapping[Operation, int]] = {
    Operation.ALL: 2,
    Operation.READ: 3,
    Operation.WRITE: 4,
    Operation.CREATE: 5,
    Operation.DELETE: 6,
    Operation.ALTER: 7,
    Operation.DESCRIBE: 8,
    Operation.CLUSTER_ACTION: 9,
    Operation.DESCRIBE_CONFIGS: 10,
    Operation.ALTER_CONFIGS: 11,
    Operation.IDEMPOTENT_WRITE: 12,
    Operation.CREATE_TOKENS: 13,
    Operation.DESCRIBE_TOKENS: 14,
    Operation.TWO_PHASE_COMMIT: 15,
}
PERMISSION_CODES: Final[Mapping[Permission, int]] = {Permission.DENY: 2, Permission.ALLOW: 3}


def acl_of(creation: AclCreation) -> Acl:
    """The ACL that a request wants. Raises InvalidAcl."""
    return Acl(
        Resource(
            _meant(RESOURCE_TYPE_CODES, creation.resource_type, "resource type"),
            _meant(PATTERN_TYPE_CODES, creation.resource_pattern_type, "pattern type"),
            creation.resource_name,
        ),
        creation.principal,
        creation.host,
        _meant(OPERATION_CODES, creation.operation, "operation"),
        _meant(PERMISSION_CODES, creation.permission_type, "permission type"),
    )


def filter_of(wanted: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """The filter that a request has. Raises InvalidAcl."""
    return AclFilter(
        resource_type=_filtered(RESOURCE_TYPE_CODES, wanted.resource_type_filter, "resource type"),
        pattern=_meant(PATTERN_TYPE_CODES, wanted.pattern_type_filter, "pattern type"),
        name=wanted.resource_name_filter,
        principal=wanted.principal_filter,
        host=wanted.host_filter,
        operation=_filtered(OPERATION_CODES, wanted.operation, "operation"),
        permission=_filtered(PERMISSION_CODES, wanted.permission_type, "permission type"),
    )


def _filtered(codes: Mapping[T, int], code: int, what: str) -> T | None:
    return None if code == _ANY else _meant(codes, code, what)


def _meant(codes: Mapping[T, int], code: int, what: str) -> T:
    for value, number in codes.items():
        if number == code:
            return value
    raise InvalidAcl(f"there is no {what} {code} here")
