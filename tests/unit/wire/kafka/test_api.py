"""Headers and framing, with what a hostile or broken peer may send."""

import pytest

from millstream.wire.kafka.api import Api, read_request_header
from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.kafka.messages.api_versions import API_VERSIONS, ApiVersionsRequest, ApiVersionsResponse
from millstream.wire.kafka.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse
from millstream.wire.kafka.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.unit.wire.kafka.samples import APIS

HEADER = "0012 0003 0000002a"  # ApiVersions v3, correlation id 42
HEARTBEAT_V4 = HeartbeatRequest(group_id="g", generation_id=3, member_id="m", group_instance_id=None)


def view(*parts: str) -> memoryview:
    return memoryview(bytes.fromhex("".join(parts)))


@pytest.mark.parametrize(
    ("client_id", "name", "position"),
    [("0003 72646b", "rdk", 13), ("0000", "", 10), ("ffff", None, 10), ("0002 c3a4", "ä", 12)],
)
def test_request_header(client_id: str, name: str | None, position: int) -> None:
    header = read_request_header(view(HEADER, client_id, "00 aabbcc"))
    assert (header.api_key, header.api_version, header.correlation_id) == (18, 3, 42)
    assert (header.client_id, header.position) == (name, position)


@pytest.mark.parametrize(
    "client_id",
    [
        "fffe",  # a length of -2
        "8000",
        "7fff 72646b",
        "0004 72646b",  # one more than there is
        "0002 c328",  # not UTF-8
        "0001 c3",  # UTF-8 that is cut off
    ],
)
def test_malformed_client_id(client_id: str) -> None:
    with pytest.raises(MalformedMessage):
        read_request_header(view(HEADER, client_id))


def test_every_cut_of_a_request_header_is_malformed() -> None:
    whole = view(HEADER, "0003 72646b")
    for size in range(len(whole)):
        with pytest.raises(MalformedMessage):
            read_request_header(whole[:size])


def test_every_cut_of_a_request_and_of_a_response_is_malformed() -> None:
    request = memoryview(b"".join(HEARTBEAT.encode_request(4, 9, "me", HEARTBEAT_V4)))[4:]
    for size in range(len(request)):
        with pytest.raises(MalformedMessage):
            HEARTBEAT.decode_request(request[:size], read_request_header(request[:size]))
    response = memoryview(b"".join(HEARTBEAT.encode_response(4, 9, HeartbeatResponse(error_code=27))))[4:]
    for size in range(len(response)):
        with pytest.raises(MalformedMessage):
            HEARTBEAT.decode_response(4, response[:size])


def test_unknown_tags_in_headers_are_skipped() -> None:
    request = bytearray(b"".join(HEARTBEAT.encode_request(4, 9, "me", HEARTBEAT_V4)))[4:]
    header = read_request_header(memoryview(bytes(request)))
    tagged = memoryview(bytes(request[: header.position] + b"\x01\x63\x02hi" + request[header.position + 1 :]))
    assert HEARTBEAT.decode_request(tagged, read_request_header(tagged)) == HEARTBEAT_V4
    answer = view("00000009", "01 63 02 6869", "00000005 001b 00")
    expected = HeartbeatResponse(throttle_time_ms=5, error_code=27)
    assert HEARTBEAT.decode_response(4, answer) == (9, expected)


@pytest.mark.parametrize("tags", ["01", "0100", "0100ff", "0200000000", "808080808000"])
def test_malformed_header_tags(tags: str) -> None:
    request = view("000c 0004 00000009 0000", tags)
    with pytest.raises(MalformedMessage):
        HEARTBEAT.decode_request(request, read_request_header(request))
    with pytest.raises(MalformedMessage):
        HEARTBEAT.decode_response(4, view("00000009", tags))


def test_a_null_client_id_stands_before_a_message_as_any_other() -> None:
    frame = view(HEADER, "ffff", "00", "04 666f6f 02 31 00")
    expected = ApiVersionsRequest(client_software_name="foo", client_software_version="1")
    assert API_VERSIONS.decode_request(frame, read_request_header(frame)) == expected


def test_bytes_behind_a_request_are_ignored() -> None:
    frame = memoryview(b"".join(HEARTBEAT.encode_request(4, 9, "me", HEARTBEAT_V4)) + b"\xff\xff")[4:]
    assert HEARTBEAT.decode_request(frame, read_request_header(frame)) == HEARTBEAT_V4


@pytest.mark.parametrize("version", API_VERSIONS.versions)
def test_the_answer_to_api_versions_starts_the_same_in_every_version(version: int) -> None:
    """A client reads the correlation id and the error code before it knows which version it was answered in."""
    frame = b"".join(API_VERSIONS.encode_response(version, 42, ApiVersionsResponse(error_code=35)))
    assert frame[4:10].hex() == "0000002a0023"


def test_the_length_prefix_counts_a_body_that_is_a_buffer_of_its_own() -> None:
    body = bytearray(b"r" * 1000)
    partition = PartitionProduceData(index=1, records=body)
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    parts = PRODUCE.encode_request(9, 1, "me", request)
    assert any(part is body for part in parts), "the body was copied"
    frame = b"".join(parts)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    whole = memoryview(frame)[4:]
    decoded = PRODUCE.decode_request(whole, read_request_header(whole))
    assert decoded == request
    assert decoded.topic_data[0].partition_data[0].records.obj is frame, "the body was copied"


def test_no_two_apis_share_a_key_or_a_name() -> None:
    assert len({api.key for api in APIS}) == len({api.name for api in APIS}) == len(APIS)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_flexible_versions_are_the_last_ones(api: Api) -> None:
    flexible = [api.flexible(version) for version in api.versions]
    assert flexible == sorted(flexible)
    assert (api.flexible_since is None) == (not any(flexible))
