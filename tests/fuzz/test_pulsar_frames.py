"""Damaged Pulsar frames: the only outcomes are a value or an error of the codec."""

import tomllib
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.wire.pulsar.ack_set import open_messages
from millstream.wire.pulsar.entry import (
    check_entry,
    encode_entry,
    read_entry,
    read_messages,
    split_broker_entry_metadata,
)
from millstream.wire.pulsar.errors import PulsarWireError
from millstream.wire.pulsar.frames import command_body, command_name, encode_command, measure_frame, read_frame
from millstream.wire.pulsar.pulsar_pb2 import MessageMetadata
from millstream.wire.pulsar.records import build_entry, entry_records
from millstream.wire.pulsar.sticky_key import sticky_key
from millstream.wire.pulsar.stored_frame import build_frame
from tests.support.compacted_entries import compact_entry

CAPTURES = sorted((Path(__file__).parents[1] / "golden/pulsar").glob("*.toml"))
FRAMES = [bytes.fromhex(tomllib.loads(path.read_text())["hex"]) for path in CAPTURES]
ENTRIES = [bytes(payload) for payload in (read_frame(memoryview(frame)).payload for frame in FRAMES) if payload]
UNCHECKED = [entry[6:] if entry[:2] == b"\x0e\x01" else entry for entry in ENTRIES]
"""Without their checksums, which would catch all damage before anything else is looked at."""
HOSTILE = ("ffffffff0f", "7fffffff", "fffffffe", "80000000", "ffffffffffffffffff01", "0e01", "0e02", "00", "80" * 11)

Edit = tuple[str, float, bytes, float]
places = st.floats(0, 1, exclude_max=True)
fragments = st.one_of(st.sampled_from([bytes.fromhex(text) for text in HOSTILE]), st.binary(min_size=1, max_size=8))
edits = st.lists(
    st.tuples(st.sampled_from(("flip", "cut", "insert", "replace", "drop", "splice")), places, fragments, places),
    min_size=1,
    max_size=3,
)


def damaged(data: bytes, edit: Edit, donors: list[bytes]) -> bytes:
    """Apply one edit; places are parts of the length, so that they mean something in any frame."""
    how, place, fragment, other = edit
    at = int(place * (len(data) + 1))
    match how:
        case "flip" if at < len(data):
            return data[:at] + bytes([data[at] ^ (1 << int(other * 8))]) + data[at + 1 :]
        case "cut":
            return data[:at]
        case "insert":
            return data[:at] + fragment + data[at:]
        case "replace":
            return data[:at] + fragment + data[at + len(fragment) :]
        case "drop":
            return data[:at] + data[at + 1 + int(other * 8) :]
        case "splice":
            donor = donors[int(other * len(donors))]
            return data[:at] + donor[int(place * len(donor)) :]
    return data


def take_apart_frame(data: bytes) -> None:
    view = memoryview(data)
    measure_frame(view)
    command, payload = read_frame(view)
    assert command_name(command.type)
    body = command_body(command)
    if body is not None:
        encode_command(body)
    if payload is not None:
        take_apart_entry(payload)


def take_apart_entry(data: memoryview) -> None:
    _, data = split_broker_entry_metadata(data)
    entry = check_entry(data)
    assert 1 <= entry.message_count <= 1_000_000
    assert build_frame(data, entry)[61:] == data
    sticky_key(entry.metadata)
    assert open_messages(entry) < 1 << entry.message_count
    records = list(entry_records(entry, 0))
    if len(records) == entry.message_count and not entry.is_encrypted and not entry.is_chunk:
        again = check_entry(memoryview(build_entry(records, 0, len(records))))
        assert [record.value for record in entry_records(again, 0)] == [record.value for record in records]
        if entry.is_batch:
            assert len(list(read_messages(check_entry(memoryview(compact_entry(entry, ())))))) == entry.message_count


def outcome(what: str, data: bytes) -> str:
    try:
        if what == "frame":
            take_apart_frame(data)
        else:
            take_apart_entry(memoryview(data))
    except PulsarWireError as error:
        return type(error).__name__
    return "value"


@settings(max_examples=1500, derandomize=True, deadline=None, database=None)
@given(st.sampled_from(FRAMES), edits)
def test_damaged_frames(frame: bytes, changes: list[Edit]) -> None:
    for change in changes:
        frame = damaged(frame, change, FRAMES)
    outcome("frame", frame)


@settings(max_examples=1500, derandomize=True, deadline=None, database=None)
@given(st.sampled_from(UNCHECKED), edits)
def test_damaged_entries(entry: bytes, changes: list[Edit]) -> None:
    for change in changes:
        entry = damaged(entry, change, UNCHECKED)
    outcome("entry", entry)


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(st.sampled_from([entry for entry in UNCHECKED if read_entry(memoryview(entry)).is_batch]), edits)
def test_damaged_payloads_with_good_checksums(entry: bytes, changes: list[Edit]) -> None:
    metadata, payload = read_entry(memoryview(entry))
    content = bytes(payload)
    for change in changes:
        content = damaged(content, change, UNCHECKED)
    outcome("entry", bytes(encode_entry(metadata, content)))


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    outcome("frame", data)
    outcome("frame", len(data).to_bytes(4, "big") + data)
    outcome("entry", data)
    outcome("entry", len(data).to_bytes(4, "big") + data)
    outcome("entry", bytes(encode_entry(MessageMetadata.FromString(b"\x0a\x00\x10\x00\x18\x00"), data)))


def test_the_frames_are_valid_before_they_are_damaged() -> None:
    assert {outcome("frame", frame) for frame in FRAMES} == {"value"}
    assert {outcome("entry", entry) for entry in UNCHECKED} == {"value"}
