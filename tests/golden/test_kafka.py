"""Requests as real clients sent them, in `kafka/*.toml`, each with what it means.

A file holds one request without its length prefix, and what must be read from it: the header, the fields of
the message in that version (bytes in hex; null is a field left out) and, for Produce, the record batch.
"""

import dataclasses
import tomllib
import uuid
from pathlib import Path
from typing import Any

import pytest

from millstream.wire.kafka.api import RequestHeader, read_request_header
from millstream.wire.kafka.messages.produce import ProduceRequest
from millstream.wire.kafka.records import check_batch, read_records
from millstream.wire.kafka.schema import OWN_TAGS, Buffer, fields_of
from tests.unit.wire.kafka.samples import APIS

CAPTURES = sorted((Path(__file__).parent / "kafka").glob("*.toml"))
API_OF_NAME = {api.name: api for api in APIS}


@pytest.fixture(params=CAPTURES, ids=lambda path: path.stem)
def capture(request: pytest.FixtureRequest) -> dict[str, Any]:
    path: Path = request.param
    return tomllib.loads(path.read_text())


def frame_of(capture: dict[str, Any]) -> memoryview:
    return memoryview(bytes.fromhex(capture["hex"]))


def decoded(capture: dict[str, Any]) -> tuple[RequestHeader, Any]:
    frame = frame_of(capture)
    header = read_request_header(frame)
    return header, API_OF_NAME[capture["api"]].decode_request(frame, header)


def plain(value: Any, version: int) -> Any:
    """A message as TOML has it, without null, without records, which stand apart, and without fields of our own."""
    match value:
        case list():
            return [plain(item, version) for item in value]
        case uuid.UUID():
            return str(value)
        case bytes():
            return value.hex()
    if not dataclasses.is_dataclass(value):
        return value
    names = [
        name
        for name, field in fields_of(type(value))
        if field.since <= version <= field.until and field.kind != "records" and field.tag != OWN_TAGS
    ]
    return {name: plain(getattr(value, name), version) for name in names if getattr(value, name) is not None}


def test_meaning(capture: dict[str, Any]) -> None:
    header, message = decoded(capture)
    assert (header.api_key, header.api_version) == (API_OF_NAME[capture["api"]].key, capture["version"])
    assert {"correlation_id": header.correlation_id, "client_id": header.client_id} == capture["header"]
    assert plain(message, header.api_version) == capture["message"]


def test_batch(capture: dict[str, Any]) -> None:
    _, message = decoded(capture)
    batches: list[Buffer | None] = []
    if isinstance(message, ProduceRequest):
        batches = [partition.records for topic in message.topic_data for partition in topic.partition_data]
    assert [batch_meaning(memoryview(batch or b"")) for batch in batches] == (
        [capture["batch"]] if "batch" in capture else []
    )


def batch_meaning(batch: memoryview) -> dict[str, Any]:
    header = check_batch(batch)
    return {
        "attributes": header.attributes,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "first_timestamp_ms": header.first_timestamp,
        "max_timestamp_ms": header.max_timestamp,
        "records": [record_meaning(record) for record in read_records(batch)],
    }


def record_meaning(record: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"offset": record.offset, "timestamp_ms": record.timestamp_ms}
    for name in ("key", "value"):
        content = getattr(record, name)
        if content is not None:
            fields[name] = content.decode()
    fields["headers"] = [[name, content.hex()] for name, content in record.headers]
    return fields


def test_encoding_it_again_gives_the_bytes_of_the_client(capture: dict[str, Any]) -> None:
    header, message = decoded(capture)
    assert header.client_id is not None
    api = API_OF_NAME[capture["api"]]
    again = b"".join(api.encode_request(header.api_version, header.correlation_id, header.client_id, message))
    assert again[4:].hex() == frame_of(capture).hex()
