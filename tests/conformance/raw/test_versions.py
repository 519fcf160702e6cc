"""Every API in every version that the server advertises, read by a decoder that is not ours."""

import dataclasses
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kio.index import load_response_schema
from kio.serial import entity_reader

from millstream.sessions.kafka.table import HANDLERS
from millstream.wire.kafka.api import Api
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from tests.conformance.raw.conftest import Connect
from tests.conformance.raw.log_client import LogClient
from tests.conformance.raw.requests_of_every_api import requests_by_key
from tests.unit.wire.kafka.samples import kafka_4_versions

APIS = {key: handler.api for key, handler in HANDLERS.items()}
ISSUE_APIS = (
    "0 1 2 3 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 28 "
    "29 30 31 32 33 35 36 37 42 44 47 50 51 60 61 65 66 68 69 75"  # those that must be there
)
UNKNOWN = {
    "Heartbeat": {ErrorCode.UNKNOWN_MEMBER_ID},
    "SyncGroup": {ErrorCode.UNKNOWN_MEMBER_ID},
    "LeaveGroup": {ErrorCode.UNKNOWN_MEMBER_ID},
    "JoinGroup": {ErrorCode.MEMBER_ID_REQUIRED},
    "DescribeGroups": {ErrorCode.GROUP_ID_NOT_FOUND},
    "ConsumerGroupDescribe": {ErrorCode.GROUP_ID_NOT_FOUND},
    "DeleteGroups": {ErrorCode.GROUP_ID_NOT_FOUND},
    "OffsetDelete": {ErrorCode.GROUP_ID_NOT_FOUND},
    "DeleteTopics": {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    "SaslAuthenticate": {ErrorCode.ILLEGAL_SASL_STATE},
    "AlterUserScramCredentials": {ErrorCode.RESOURCE_NOT_FOUND},
    "CreatePartitions": {ErrorCode.INVALID_PARTITIONS},
    "AddPartitionsToTxn": {ErrorCode.INVALID_PRODUCER_ID_MAPPING},
    "AddOffsetsToTxn": {ErrorCode.INVALID_PRODUCER_ID_MAPPING},
    "EndTxn": {ErrorCode.INVALID_PRODUCER_ID_MAPPING},
    "TxnOffsetCommit": {ErrorCode.INVALID_PRODUCER_ID_MAPPING},
    "DescribeAcls": {ErrorCode.SECURITY_DISABLED},
    "CreateAcls": {ErrorCode.SECURITY_DISABLED},
    "DeleteAcls": {ErrorCode.SECURITY_DISABLED},
    "DescribeTransactions": {ErrorCode.TRANSACTIONAL_ID_NOT_FOUND},
}
"""Errors that are right for a group, a topic or a transactional id that does not exist, or has grown already; and
where there are no ACLs."""

WHO = ApiVersionsRequest(client_software_name="raw", client_software_version="1")


def advertised(client: LogClient, version: int = 0) -> dict[int, range]:
    answer = client.call(API_VERSIONS, version, WHO)
    assert answer.error_code == 0
    return {one.api_key: range(one.min_version, one.max_version + 1) for one in answer.api_keys}


def error_codes(entity: Any) -> Iterator[int]:
    """All error codes in a message of kio's."""
    for field in dataclasses.fields(entity):
        value = getattr(entity, field.name)
        if field.name == "error_code":
            yield int(value)
        for one in value if isinstance(value, tuple) else (value,):
            if dataclasses.is_dataclass(one):
                yield from error_codes(one)


def test_what_is_advertised(client: LogClient) -> None:
    told = [advertised(client, version) for version in API_VERSIONS.versions]
    assert all(one == told[0] for one in told)
    assert set(told[0]) == {int(key) for key in ISSUE_APIS.split()}
    for key, versions in told[0].items():
        assert versions.start == APIS[key].versions.start, APIS[key].name


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_version_is_answered(
    api: Api, client: LogClient, topic: str, unique: Callable[[str], str], connect: Connect
) -> None:
    topic_id = client.create_topic(unique("raw"))
    client.append(topic, b"first")
    served = [version for version in advertised(client)[api.key] if version in kafka_4_versions(api)]
    assert served
    for version in served:
        name, fresh = unique("raw"), unique("fresh")
        topic_id = client.create_topic(name)
        client.append(name, b"first")
        # A connection of its own, since a member of a group that waits would hold back the others.
        connection = connect()
        request = requests_by_key(name, topic_id, fresh)[api.key]
        connection.send(api, version, request)
        frame = connection.receive_frame()
        schema: Any = load_response_schema(api.key, version)
        header, header_size = entity_reader(schema.__header_schema__)(frame, 0)
        entity, size = entity_reader(schema)(frame, header_size)
        assert header.correlation_id == 1
        assert header_size + size == len(frame)
        codes = set(error_codes(entity)) - {0}
        assert codes <= UNKNOWN.get(api.name, set()), (version, codes)


@pytest.mark.parametrize("version", [5, 6, 100, 32767, -1, -32768])
def test_api_versions_of_the_future_is_answered_in_version_0(client: LogClient, version: int) -> None:
    client.write(struct.pack(">ihhih3s", 13 + 3, API_VERSIONS.key, version, 77, 3, b"new") + b"\x00\x01\x02")
    correlation_id, answer = API_VERSIONS.decode_response(0, memoryview(client.receive_frame()))
    assert (correlation_id, answer.error_code) == (77, ErrorCode.UNSUPPORTED_VERSION)
    told = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    assert told[API_VERSIONS.key] == (0, 4)
    assert set(told) == set(advertised(client)), "the connection goes on"


def versions_not_served() -> Iterator[tuple[int, int]]:
    for api in APIS.values():
        if api is not API_VERSIONS:
            yield api.key, api.versions.stop
            yield api.key, api.versions.start - 1
            yield api.key, -1
    for key in (4, 27, 29, 68, 71, 76, 999, 32767, -1, -32768):
        yield key, 0


def test_an_unknown_api_or_version_ends_the_connection(connect: Connect, client: LogClient) -> None:
    for key, version in sorted(set(versions_not_served())):
        connection = connect()
        connection.write(struct.pack(">ihhih3s", 13 + 20, key, version, 1, 3, b"raw") + bytes(20))
        assert connection.closed_by_server(), (key, version)
        connection.close()
    assert advertised(client)
