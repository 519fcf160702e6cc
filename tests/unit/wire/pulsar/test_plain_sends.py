"""Plain SENDs: the compiled module, its Python source and protobuf give the same answers."""

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.wire.pulsar import plain_sends
from millstream.wire.pulsar.entry import check_entry, encode_entry
from millstream.wire.pulsar.errors import InvalidEntry
from millstream.wire.pulsar.frames import PREFIX_BYTES, encode_payload_command, read_frame
from millstream.wire.pulsar.hot_commands import encode_send_receipt
from millstream.wire.pulsar.plain_sends import (
    BATCH_COUNT,
    CHECKSUM,
    HIGHEST_SEQUENCE_ID,
    IS_BATCH,
    PRODUCER_ID,
    PUBLISH_TIME,
    RECEIPT_BYTES_MAX,
    ROOM_BYTES,
    SEQUENCE_ID,
    VALUES,
)
from millstream.wire.pulsar.pulsar_pb2 import BaseCommand, CommandSend, MessageMetadata, Property
from tests.support.twins import twin

IN_PYTHON: Any = twin("wire.pulsar.plain_sends")
BOTH = pytest.mark.parametrize("module", [plain_sends, IN_PYTHON], ids=["installed", "python"])
uint63 = st.one_of(st.integers(0, 300), st.integers(0, 2**63 - 1))
texts = st.text(st.characters(max_codepoint=127), max_size=8)
COMMANDS = st.builds(
    CommandSend,
    producer_id=uint63,
    sequence_id=uint63,
    num_messages=st.none() | st.integers(1, 1000),
    highest_sequence_id=st.none() | uint63,
)
METADATA = st.builds(
    MessageMetadata,
    producer_name=texts,
    sequence_id=uint63,
    publish_time=uint63,
    properties=st.lists(st.builds(Property, key=st.binary(max_size=5), value=st.binary(max_size=5)), max_size=3),
    replicated_from=st.none() | texts,
    partition_key=st.none() | st.binary(max_size=5),
    compression=st.none() | st.integers(0, 4),
    uncompressed_size=st.none() | st.integers(0, 2**32 - 1),
    num_messages_in_batch=st.none() | st.integers(1, 200),
    event_time=st.none() | uint63,
    schema_version=st.none() | st.binary(max_size=8),
    partition_key_b64_encoded=st.none() | st.booleans(),
    ordering_key=st.none() | st.binary(max_size=5),
    deliver_at_time=st.none() | st.integers(0, 2**63 - 1),
    highest_sequence_id=st.none() | uint63,
    null_value=st.none() | st.booleans(),
)


def framed(command: CommandSend, metadata: MessageMetadata, payload: bytes = b"value") -> bytes:
    """A SEND behind its total size."""
    return b"".join(encode_payload_command(command, [encode_entry(metadata, payload)]))[PREFIX_BYTES:]


def read(module: Any, frame: bytes) -> tuple[int, list[int]]:
    """What a module reads; its numbers only if it is a plain SEND."""
    values = memoryview(array("Q", bytes(8 * VALUES)))
    position = module.read_plain_send(memoryview(frame), values)
    return position, list(values) if position >= 0 else []


def check_against_protobuf(frame: bytes) -> None:
    """What is read of a plain SEND is what protobuf reads; it may be stored, but for what the caller checks."""
    position, values = read(plain_sends, frame)
    if position < 0:
        return
    command, data = read_frame(memoryview(frame))
    assert command.type == BaseCommand.SEND
    assert data is not None
    assert bytes(data) == frame[position:]
    send = command.send
    assert not send.HasField("txnid_least_bits")
    assert not send.marker
    read_ids = values[PRODUCER_ID], values[SEQUENCE_ID], values[HIGHEST_SEQUENCE_ID]
    assert read_ids == (send.producer_id, send.sequence_id, send.highest_sequence_id)
    try:
        entry = check_entry(data)
    except InvalidEntry as error:
        if not any(word in str(error) for word in ("checksum", "unpacks to", "says it holds")):
            raise
        return
    metadata = entry.metadata
    assert not entry.is_chunk
    assert not entry.is_encrypted
    assert values[PUBLISH_TIME] == metadata.publish_time
    assert (values[BATCH_COUNT], bool(values[IS_BATCH])) == (entry.message_count, entry.is_batch)
    assert values[ROOM_BYTES] == (metadata.uncompressed_size if metadata.compression else len(entry.payload))


@BOTH
def test_a_message_as_clients_send_it_is_plain(module: Any) -> None:
    metadata = MessageMetadata(producer_name="p", sequence_id=300, publish_time=1_763_731_000_000)
    frame = framed(CommandSend(producer_id=1, sequence_id=300, num_messages=1), metadata)
    position, values = read(module, frame)
    assert frame[position : position + 2] == b"\x0e\x01"
    assert (values[SEQUENCE_ID], values[PUBLISH_TIME], values[BATCH_COUNT]) == (300, 1_763_731_000_000, 1)
    assert values[CHECKSUM] == int.from_bytes(frame[position + 2 : position + 6])


@given(COMMANDS, METADATA, st.binary(max_size=100))
@settings(derandomize=True, max_examples=300, deadline=None)
def test_what_is_plain_is_read_as_protobuf_reads_it(
    command: CommandSend, metadata: MessageMetadata, payload: bytes
) -> None:
    frame = framed(command, metadata, payload)
    assert read(plain_sends, frame)[0] >= 0
    assert read(plain_sends, frame) == read(IN_PYTHON, frame)
    check_against_protobuf(frame)


@given(COMMANDS, METADATA, st.integers(0, 300), st.integers(0, 255))
@settings(derandomize=True, max_examples=1000, deadline=None)
def test_damage_is_no_plain_message_or_one_that_protobuf_reads_alike(
    command: CommandSend, metadata: MessageMetadata, place: int, byte: int
) -> None:
    frame = bytearray(framed(command, metadata))
    frame[place % len(frame)] = byte
    assert read(plain_sends, bytes(frame)) == read(IN_PYTHON, bytes(frame))
    check_against_protobuf(bytes(frame))


@given(st.binary(max_size=60))
@settings(derandomize=True, max_examples=500, deadline=None)
def test_both_agree_on_any_bytes(data: bytes) -> None:
    for frame in (data, b"\0\0\0\x08\x08\x06\x32\x04\x08\x01\x10\x02\x0e\x01\0\0\0\0" + data):
        assert read(plain_sends, frame) == read(IN_PYTHON, frame)
        assert read(plain_sends, frame)[0] < 0 or read_frame(memoryview(frame)).command.type == BaseCommand.SEND


@BOTH
@pytest.mark.parametrize(
    "metadata",
    [
        {"uuid": "u", "chunk_id": 0, "num_chunks_from_msg": 2, "total_chunk_msg_size": 9},
        {"txnid_least_bits": 1, "txnid_most_bits": 1},
        {"encryption_algo": "a"},
        {"marker_type": 1},
        {"compression": 5},
        {"producer_name": "ü"},
        {"sequence_id": 2**63},
        {"compacted_batch_indexes": [1]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_is_out_of_the_ordinary_is_left_to_protobuf(module: Any, metadata: dict[str, Any]) -> None:
    whole = MessageMetadata(**{"producer_name": "p", "sequence_id": 1, "publish_time": 1, **metadata})
    assert read(module, framed(CommandSend(producer_id=1, sequence_id=1), whole))[0] == -1


@BOTH
@pytest.mark.parametrize("fields", [{"txnid_least_bits": 0}, {"marker": True}, {"is_chunk": True}], ids=str)
def test_so_are_other_sends(module: Any, fields: dict[str, Any]) -> None:
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    assert read(module, framed(CommandSend(producer_id=1, sequence_id=1, **fields), metadata))[0] == -1


@BOTH
@given(data=st.data())
@settings(derandomize=True, max_examples=100, deadline=None)
def test_receipts(module: Any, data: st.DataObject) -> None:
    uint64 = st.one_of(st.integers(0, 300), st.integers(0, 2**64 - 1))
    producer_id, ledger_id = data.draw(uint64), data.draw(uint64)
    entry_id, partition = data.draw(st.integers(0, 2**62)), data.draw(st.integers(-1, 2**31 - 1))
    of_each = data.draw(st.lists(st.tuples(uint64, uint64, st.integers(1, 10**6)), max_size=5))
    out = bytearray(RECEIPT_BYTES_MAX * len(of_each))
    columns = [memoryview(array("Q", [row[n] for row in of_each])) for n in range(3)]
    written = module.write_receipts(
        memoryview(out), producer_id, ledger_id, entry_id, partition, len(of_each), *columns
    )
    expected = b""
    for sequence_id, highest, count in of_each:
        expected += encode_send_receipt(producer_id, sequence_id, ledger_id, entry_id, partition, highest)
        entry_id += count
    assert bytes(out[:written]) == expected
