"""Frames that a real client has sent: each means what its file says, and encoding it again gives its bytes."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from millstream.wire.pulsar.entry import Entry, EntryMessage, check_entry, join_chunks, read_messages
from millstream.wire.pulsar.frames import Frame, command_body, command_name, encode_command, read_frame
from millstream.wire.pulsar.pulsar_pb2 import NONE, Property
from millstream.wire.pulsar.records import entry_records

CAPTURES = sorted((Path(__file__).parent / "pulsar").glob("*.toml"))


def read_capture(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


@pytest.fixture(params=CAPTURES, ids=lambda path: path.stem)
def capture(request: pytest.FixtureRequest) -> dict[str, Any]:
    return read_capture(request.param)


def frame_of(capture: dict[str, Any]) -> Frame:
    return read_frame(memoryview(bytes.fromhex(capture["hex"])))


def plain(value: Any) -> Any:
    """A message as TOML has it: only fields that are set, properties as pairs of texts, other bytes as hex."""
    match value:
        case Property():
            return [value.key.decode(), value.value.decode()]
        case Message():
            return {field.name: plain(content) for field, content in value.ListFields()}
        case bytes():
            return value.hex()
        case str() | bool() | int() | float():
            return value
    return [plain(item) for item in value]


def plain_message(message: EntryMessage) -> dict[str, Any]:
    fields: dict[str, Any] = {"content": bytes(message.content).hex()}
    if message.metadata.DESCRIPTOR.name == "SingleMessageMetadata":
        fields["metadata"] = plain(message.metadata)
    return fields


def has_readable_messages(entry: Entry) -> bool:
    return not entry.is_chunk and not entry.is_encrypted


def entry_meaning(data: memoryview) -> dict[str, Any]:
    entry = check_entry(data)
    meaning: dict[str, Any] = {
        "has_checksum": bytes(data[:2]) == b"\x0e\x01",
        "payload_bytes": len(entry.payload),
        "metadata": plain(entry.metadata),
    }
    if has_readable_messages(entry):
        meaning["messages"] = [plain_message(message) for message in read_messages(entry)]
    return meaning


def meaning_of(frame: Frame) -> dict[str, Any]:
    body = command_body(frame.command)
    meaning: dict[str, Any] = {"command": command_name(frame.command.type), "body": plain(body)}
    if frame.payload is not None:
        meaning["entry"] = entry_meaning(frame.payload)
    return meaning


def test_there_are_captures() -> None:
    assert len(CAPTURES) >= 30


def test_meaning(capture: dict[str, Any]) -> None:
    said = {name: capture[name] for name in ("command", "body", "entry") if name in capture}
    assert meaning_of(frame_of(capture)) == said


def test_encoding_it_again_gives_the_bytes_of_the_client(capture: dict[str, Any]) -> None:
    command, payload = frame_of(capture)
    body = command_body(command)
    assert body is not None
    again = encode_command(body)[4:]
    assert again.hex() + bytes(payload or b"").hex() == bytes.fromhex(capture["hex"]).hex()
    if payload is None:
        return
    entry = check_entry(payload)
    metadata = entry.metadata.SerializeToString()
    assert bytes(payload).endswith(len(metadata).to_bytes(4, "big") + metadata + bytes(entry.payload))
    if entry.is_batch and entry.metadata.compression == NONE:
        messages = b""
        for _, single, content in read_messages(entry):
            head = single.SerializeToString()
            messages += len(head).to_bytes(4, "big") + head + content
        assert messages == entry.payload


def test_records(capture: dict[str, Any]) -> None:
    payload = frame_of(capture).payload
    if payload is None:
        return
    entry = check_entry(payload)
    records = list(entry_records(entry, 100))
    assert [record.offset for record in records] == list(range(100, 100 + entry.message_count))
    if has_readable_messages(entry):
        contents = [bytes.fromhex(message["content"]) for message in capture["entry"]["messages"]]
        assert [record.value or b"" for record in records] == contents


def test_chunks_of_one_message() -> None:
    chunks = []
    for path in CAPTURES:
        if path.stem.startswith("send_chunk_"):
            payload = frame_of(read_capture(path)).payload
            assert payload is not None
            chunks.append(check_entry(payload))
    whole = join_chunks(chunks)
    assert not whole.is_chunk
    [message] = read_messages(whole)
    assert bytes(message.content) == bytes(range(256)) * 41 + b"end"
