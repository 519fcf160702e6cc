"""The numbers of ACLs, against those of a client of its own, and what a request with others is told."""

import pytest
from kafka.admin import ACLOperation, ACLPermissionType, ACLResourcePatternType
from kafka.admin import ResourceType as KafkaResourceType

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
from millstream.sessions.kafka.acl_codes import (
    OPERATION_CODES,
    PATTERN_TYPE_CODES,
    PERMISSION_CODES,
    RESOURCE_TYPE_CODES,
    acl_of,
    filter_of,
)
from millstream.wire.kafka.messages.create_acls import AclCreation
from millstream.wire.kafka.messages.delete_acls import DeleteAclsFilter
from millstream.wire.kafka.messages.describe_acls import DescribeAclsRequest

TWO_PHASE_COMMIT = 15  # newer than the client's
ANY = 1


def test_the_numbers_are_those_of_a_client() -> None:
    assert {one.name: code for one, code in RESOURCE_TYPE_CODES.items()} == {
        one.name: one.value for one in KafkaResourceType if one.name not in {"UNKNOWN", "ANY"}
    }
    assert {one.name: code for one, code in PATTERN_TYPE_CODES.items()} == {
        one.name: one.value for one in ACLResourcePatternType if one.name != "UNKNOWN"
    }
    assert {one.name: code for one, code in PERMISSION_CODES.items()} == {
        one.name: one.value for one in ACLPermissionType if one.name not in {"UNKNOWN", "ANY"}
    }
    theirs = {one.name: one.value for one in ACLOperation if one.name not in {"UNKNOWN", "ANY"}}
    assert {one.name: code for one, code in OPERATION_CODES.items()} == theirs | {
        "TWO_PHASE_COMMIT": TWO_PHASE_COMMIT
    }


def test_everything_has_a_number() -> None:
    assert set(OPERATION_CODES) == set(Operation)
    assert set(RESOURCE_TYPE_CODES) == set(ResourceType)
    assert set(PATTERN_TYPE_CODES) == set(PatternType)
    assert set(PERMISSION_CODES) == set(Permission)


def creation(**fields: int) -> AclCreation:
    numbers = {"resource_type": 2, "resource_pattern_type": 4, "operation": 3, "permission_type": 2}
    return AclCreation(resource_name="orders", principal="User:ada", host="*", **(numbers | fields))


def test_what_is_to_be_created() -> None:
    resource = Resource(ResourceType.TOPIC, PatternType.PREFIXED, "orders")
    assert acl_of(creation()) == Acl(resource, "User:ada", "*", Operation.READ, Permission.DENY)


@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
@pytest.mark.parametrize("code", [-1, 0, ANY, 99])
def test_what_cannot_be_created(field: str, code: int) -> None:
    with pytest.raises(InvalidAcl):
        acl_of(creation(**{field: code}))


@pytest.mark.parametrize("kind", [DescribeAclsRequest, DeleteAclsFilter])
def test_filters(kind: type[DescribeAclsRequest] | type[DeleteAclsFilter]) -> None:
    everything = kind(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    assert filter_of(everything) == AclFilter()
    for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        before = getattr(everything, field)
        setattr(everything, field, 0)
        with pytest.raises(InvalidAcl):
            filter_of(everything)
        setattr(everything, field, before)
