"""What other protocols wrote, in a Kafka client's fetch."""

import pytest

from millstream.model.frame import HEADER_BYTES, read_frame_header
from millstream.sessions.kafka.foreign_frames import kafka_batches
from millstream.wire.kafka.records import read_records
from millstream.wire.kafka07.frames import build_frame
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
