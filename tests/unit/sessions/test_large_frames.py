"""Frames of many records, which compaction reads and writes in steps, and packs and unpacks off the loop."""

from typing import TypeVar

import pytest

from millstream.broker.keyed_frames import SLICE_RECORDS, Buffer, FrameRecords
from millstream.broker.steps import Steps
from millstream.model.frame import Magic, read_frame_header
from millstream.model.pending import Pending
from millstream.model.record import Record
from millstream.sessions.compaction import NeutralFrameRecords
from millstream.sessions.pulsar.compaction import PulsarFrameRecords
from millstream.wire.compression import Codec
from millstream.wire.kafka.records import build_batch
from millstream.wire.pulsar.pulsar_pb2 import CompressionType
from millstream.wire.translation import read_records
from tests.unit.broker.cleaning.keyed_topic import READERS
from tests.unit.sessions.pulsar.test_compaction import batched

T = TypeVar("T")
COUNT = 20 * SLICE_RECORDS + 1
RECORDS = [Record(offset=n, timestamp_ms=1000 + n, key=b"%d" % n, value=b"v" * 10) for n in range(COUNT)]


def counted(steps: Steps[T]) -> tuple[T, int, int]:
    """What work returns, how many steps it took, and how many functions it had run off the loop."""
    value, ended, functions = None, 0, 0
    try:
        while True:
            found = steps.send(value)
            if found is None:
                value = None
                ended += 1
            else:
                assert not isinstance(found, Pending)
                value = found()
                functions += 1
    except StopIteration as end:
        return end.value, ended, functions


def pulsar(compression: int) -> bytes:
    return bytes(batched([(record.key, record.value) for record in RECORDS], compression))


@pytest.mark.parametrize(
    ("reader", "frame", "is_packed", "is_neutral"),
    [
        (READERS[Magic.KAFKA_V2], build_batch(RECORDS), False, False),
        (READERS[Magic.KAFKA_V2], build_batch(RECORDS, codec=Codec.ZSTD), True, False),
        (READERS[Magic.PULSAR_ENTRY], pulsar(CompressionType.NONE), False, False),
        (READERS[Magic.PULSAR_ENTRY], pulsar(CompressionType.ZSTD), True, False),
        (PulsarFrameRecords(), build_batch(RECORDS), False, True),
        (PulsarFrameRecords(), build_batch(RECORDS, codec=Codec.ZSTD), True, True),
        (NeutralFrameRecords(), build_batch(RECORDS), False, True),
    ],
    ids=["kafka", "kafka zstd", "pulsar", "pulsar zstd", "kafka for pulsar", "kafka zstd for pulsar", "neutral"],
)
@pytest.mark.parametrize("horizon_ms", [None, 10**13])
def test_no_step_takes_many_records(
    reader: FrameRecords, frame: Buffer, is_packed: bool, is_neutral: bool, horizon_ms: int | None
) -> None:
    view = memoryview(frame)
    opened, steps, functions = counted(reader.open(read_frame_header(view), view))
    assert opened is not None
    assert steps >= COUNT // SLICE_RECORDS
    assert functions == is_packed
    slices = list(opened.records())
    assert max(map(len, slices)) <= SLICE_RECORDS
    assert [record.key for records in slices for record in records] == [record.key for record in RECORDS]
    left, steps, functions = counted(opened.left(bytearray(n % 3 != 0 for n in range(COUNT)), horizon_ms))
    assert left is not None
    assert steps >= COUNT // SLICE_RECORDS
    assert functions == 1 + (is_packed and is_neutral), "packed off the loop, what is neutral read once more"
    kept = [(record.offset, record.key, record.value) for record in RECORDS if record.offset % 3]
    assert [(one.offset, one.key, one.value) for one in read_records(memoryview(left))] == kept
