"""What other protocols wrote, in a Kafka client's fetch."""

import pytest

from millstream.model.frame import HEADER_BYTES, read_frame_header
from millstream.sessions.kafka.foreign_frames import kafka_batches
from millstream.wire.kafka.record_rows import COMPILED
from millstream.wire.kafka.records import read_records
from millstream.wire.kafka07.frames import build_frame
from millstream.wire.pulsar.entry import check_entry, encode_entry
from millstream.wire.pulsar.pulsar_pb2 import MessageMetadata
from millstream.wire.pulsar.stored_frame import build_frame as build_entry_frame
from tests.support.batches import batch, frames_of
from tests.unit.broker.simulated_broker import SimulatedBroker, append
from tests.unit.wire.kafka07.sets import message_set


def foreign(*values: bytes) -> bytearray:
    return build_frame(message_set(*values), len(values), 1000)


@pytest.fixture
def simulated() -> SimulatedBroker:
    return SimulatedBroker()


def test_every_frame_keeps_its_place_and_native_ones_their_bytes(simulated: SimulatedBroker) -> None:
    partition = simulated.create("orders").partitions[0]
    for frame in (batch(b"1"), batch(b"2"), foreign(b"3", b"4"), batch(b"5"), foreign(b"6")):
        append(partition, frame)
    data, _ = partition.read(0, 1 << 20)
    given = kafka_batches(simulated.broker.translated_frames, partition, data, partition.is_aborted)
    values = [record.value for frame in frames_of(given) for record in read_records(memoryview(frame))]
    assert values == [b"1", b"2", b"3", b"4", b"5", b"6"]
    stored = list(frames_of(data))
    assert [one == other for one, other in zip(frames_of(given), stored, strict=True)] == [
        True,
        True,
        False,
        True,
        False,
    ]
    offsets = [read_frame_header(frame).base_offset for frame in frames_of(given)]
    assert offsets == [read_frame_header(frame).base_offset for frame in stored]
    size_bytes = simulated.broker.translated_frames.size_bytes
    assert size_bytes > 0
    assert kafka_batches(simulated.broker.translated_frames, partition, data, partition.is_aborted) == given
    assert simulated.broker.translated_frames.size_bytes == size_bytes


def test_what_makes_no_sense_is_a_batch_without_records(simulated: SimulatedBroker) -> None:
    partition = simulated.create("orders").partitions[0]
    append(partition, build_frame(b"\xff" * 20, 2, 1000))
    data, _ = partition.read(0, 1 << 20)
    given = kafka_batches(simulated.broker.translated_frames, partition, data, partition.is_aborted)
    header = read_frame_header(given)
    assert (len(given), header.record_count, header.last_offset_delta) == (HEADER_BYTES, 0, 1)


def at(time_ms: int, *values: bytes) -> bytearray:
    """What a Kafka 0.7 client wrote at a time."""
    return build_frame(message_set(*values), len(values), time_ms)


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled every frame is a batch of its own")
def test_small_frames_share_batches_as_long_as_they_have_the_time_of_one_append(simulated: SimulatedBroker) -> None:
    partition = simulated.create("orders").partitions[0]
    for frame in (at(1, b"1"), at(1, b"2", b"3"), at(2, b"4"), batch(b"5"), at(2, b"6"), at(2, b"7")):
        append(partition, frame)
    data, _ = partition.read(0, 1 << 20)
    given = kafka_batches(simulated.broker.translated_frames, partition, data, partition.is_aborted)
    headers = [read_frame_header(frame) for frame in frames_of(given)]
    assert [(one.base_offset, one.record_count, one.last_offset) for one in headers] == [
        (0, 3, 2),
        (3, 1, 3),
        (4, 1, 4),
        (5, 2, 6),
    ]
    assert [(one.attributes, one.max_timestamp) for one in headers if one.base_offset != 4] == [
        (8, 1),
        (8, 2),
        (8, 2),
    ]
    records = [record for frame in frames_of(given) for record in read_records(memoryview(frame))]
    assert [(record.offset, record.value) for record in records] == [(n, b"%d" % (n + 1)) for n in range(7)]


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled every frame is a batch of its own")
def test_records_with_times_of_their_own_share_batches(simulated: SimulatedBroker) -> None:
    partition = simulated.create("orders").partitions[0]
    for number in range(5):
        append(partition, entry_frame(b"%d" % number, 1000 - number))
    data, _ = partition.read(0, 1 << 20)
    given = kafka_batches(simulated.broker.translated_frames, partition, data, partition.is_aborted)
    (frame,) = frames_of(given)
    header = read_frame_header(frame)
    assert (header.first_timestamp, header.max_timestamp, header.attributes) == (1000, 1000, 0)
    assert [one.timestamp_ms for one in read_records(memoryview(frame))] == [1000 - number for number in range(5)]


def entry_frame(value: bytes, time_ms: int) -> bytearray:
    """A message of a Pulsar client that does not batch."""
    data = memoryview(encode_entry(MessageMetadata(producer_name="p", sequence_id=0, publish_time=time_ms), value))
    return build_entry_frame(data, check_entry(data))


def test_aborted_frames_among_small_ones_are_batches_without_records(simulated: SimulatedBroker) -> None:
    topic = simulated.create("orders")
    partition = topic.partitions[0]
    transactions = simulated.broker.transactions
    number = simulated.wait(transactions.begin(60_000))
    simulated.wait(transactions.add_partitions(number, [(topic, 0)]))
    for value in range(6):
        base = append(partition, entry_frame(b"%d" % value, 1000)).base_offset
        if value in {2, 3}:
            transactions.wrote(number, partition, base, base + 1)
    simulated.wait(transactions.end(number, commit=False))
    data, _ = partition.read(0, 1 << 20)
    given = kafka_batches(simulated.broker.translated_frames, partition, data, partition.is_aborted)
    batches = [memoryview(frame) for frame in frames_of(given)]
    assert [record.value for frame in batches for record in read_records(frame)] == [b"0", b"1", b"4", b"5"]
    hidden = [header.base_offset for header in map(read_frame_header, batches) if not header.record_count]
    assert hidden == [2, 3]
