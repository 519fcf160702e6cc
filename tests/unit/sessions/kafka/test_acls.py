"""DescribeAcls, CreateAcls and DeleteAcls."""

from pathlib import Path
from typing import Any

import pytest

from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.create_acls import CREATE_ACLS, AclCreation, CreateAclsRequest
from millstream.wire.kafka.messages.delete_acls import DELETE_ACLS, DeleteAclsFilter, DeleteAclsRequest
from millstream.wire.kafka.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from tests.unit.sessions.kafka.conversation import Conversation
from tests.unit.sessions.kafka.guarded import USER, Guarded

ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
TOPIC, GROUP, CLUSTER = 2, 3, 4
READ, WRITE = 3, 4
DENY, ALLOW = 2, 3
VERSIONS = pytest.mark.parametrize("version", DESCRIBE_ACLS.versions)


def acl(name: str = "orders", kind: int = TOPIC, pattern: int = LITERAL, operation: int = READ) -> AclCreation:
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=USER,
        host="*",
        operation=operation,
        permission_type=ALLOW,
    )


def create(talk: Conversation, *creations: AclCreation, version: int = 3) -> list[int]:
    results = talk.ask(CREATE_ACLS, CreateAclsRequest(creations=list(creations)), version).results
    return [result.error_code for result in results]


def wanted(cls: type, name: str | None = None, pattern: int = ANY, kind: int = ANY, operation: int = ANY) -> Any:
    return cls(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter=None,
        host_filter=None,
        operation=operation,
        permission_type=ANY,
    )


def described(talk: Conversation, version: int = 3, **filters: Any) -> dict[tuple[int, str, int], list[int]]:
    response = talk.ask(DESCRIBE_ACLS, wanted(DescribeAclsRequest, **filters), version)
    assert (response.error_code, response.error_message) == (0, "")
    return {
        (one.resource_type, one.resource_name, one.pattern_type): [found.operation for found in one.acls]
        for one in response.resources
    }


@VERSIONS
def test_from_creation_to_deletion(version: int) -> None:
    talk = Guarded()
    creations = [acl(), acl(operation=WRITE), acl("ord", pattern=PREFIXED), acl("readers", GROUP), acl()]
    assert create(talk, *creations, version=version) == [0] * 5
    everything = {
        (TOPIC, "orders", LITERAL): [READ, WRITE],
        (TOPIC, "ord", PREFIXED): [READ],
        (GROUP, "readers", LITERAL): [READ],
    }
    assert described(talk, version) == everything
    assert described(talk, version, kind=GROUP) == {(GROUP, "readers", LITERAL): [READ]}
    assert set(described(talk, version, name="orders", pattern=MATCH, kind=TOPIC)) == {
        (TOPIC, "orders", LITERAL),
        (TOPIC, "ord", PREFIXED),
    }
    filters = [
        wanted(DeleteAclsFilter, operation=WRITE),
        wanted(DeleteAclsFilter, name="none"),
        wanted(DeleteAclsFilter, kind=TOPIC),
    ]
    results = talk.ask(DELETE_ACLS, DeleteAclsRequest(filters=filters), version).filter_results
    assert [result.error_code for result in results] == [0, 0, 0]
    matching = [[(one.resource_name, one.operation) for one in result.matching_acls] for result in results]
    assert matching == [[("orders", WRITE)], [], [("orders", READ), ("orders", WRITE), ("ord", READ)]]
    assert described(talk, version) == {(GROUP, "readers", LITERAL): [READ]}


def test_what_makes_no_sense_is_told_one_by_one() -> None:
    talk = Guarded()
    creations = [acl(""), acl(), acl("other", CLUSTER), acl("kafka-cluster", CLUSTER), acl(operation=0)]
    refused = ErrorCode.INVALID_REQUEST
    assert create(talk, *creations) == [refused, 0, refused, 0, refused]
    assert set(described(talk)) == {(TOPIC, "orders", LITERAL), (CLUSTER, "kafka-cluster", LITERAL)}
    response = talk.ask(DESCRIBE_ACLS, wanted(DescribeAclsRequest, kind=99))
    assert (response.error_code, response.error_message) == (refused, "there is no resource type 99 here")
    filters = [wanted(DeleteAclsFilter, pattern=0), wanted(DeleteAclsFilter, kind=TOPIC)]
    results = talk.ask(DELETE_ACLS, DeleteAclsRequest(filters=filters)).filter_results
    assert [result.error_code for result in results] == [refused, 0]
    assert create(talk) == []
    many = DeleteAclsRequest(filters=[wanted(DeleteAclsFilter)] * 1001)
    assert {result.error_code for result in talk.ask(DELETE_ACLS, many).filter_results} == {refused}
    assert described(talk)


def test_where_there_are_none() -> None:
    talk = Conversation()
    assert create(talk, acl()) == [ErrorCode.SECURITY_DISABLED]
    response = talk.ask(DESCRIBE_ACLS, wanted(DescribeAclsRequest))
    assert response.error_code == ErrorCode.SECURITY_DISABLED
    assert "authorizer.class.name" in response.error_message
    results = talk.ask(DELETE_ACLS, DeleteAclsRequest(filters=[wanted(DeleteAclsFilter)])).filter_results
    assert [result.error_code for result in results] == [ErrorCode.SECURITY_DISABLED]


def test_what_cannot_be_stored_is_refused() -> None:
    talk = Guarded()
    assert create(talk, acl()) == [0]
    talk.store.failing = True
    assert create(talk, acl("other"), acl("")) == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.INVALID_REQUEST]
    [result] = talk.ask(DELETE_ACLS, DeleteAclsRequest(filters=[wanted(DeleteAclsFilter)])).filter_results
    assert (result.error_code, result.matching_acls) == (ErrorCode.KAFKA_STORAGE_ERROR, [])
    assert set(described(talk)) == {(TOPIC, "orders", LITERAL)}


def test_they_hold_after_the_process_was_killed(tmp_path: Path) -> None:
    talk = Guarded(str(tmp_path / "metadata.db"))
    assert create(talk, acl()) == [0]
    talk.kill()
    talk.start()
    assert described(talk) == {(TOPIC, "orders", LITERAL): [READ]}
