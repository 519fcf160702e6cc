"""Frames in a row that are handed out whole: the same messages as one by one."""

import os

import pytest

from millstream.model.frame import read_frame_header
from millstream.model.record import Record
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.incoming import Layout, Stamp, layout_of, take
from millstream.wire.iggy.kinds import Partitioning
from millstream.wire.iggy.messages.batches import SendMessages
from millstream.wire.iggy.polled import native_slice, whole_batches
from millstream.wire.iggy.stored import seal
from millstream.wire.kafka.records import place_batch
from tests.unit.sessions.iggy.conversation import Outgoing, laid_out

NATIVE = [Dialect.C1, Dialect.C3, Dialect.D]


def stored(dialect: Dialect, base_offset: int, count: int) -> bytes:
    """A frame of some messages, as the log has it."""
    outgoing = [Outgoing(b"%d" % (base_offset + index)) for index in range(count)]
    request = SendMessages(
        stream=0,
        topic=0,
        partitioning=Partitioning(0),
        count=count,
        messages=memoryview(laid_out(dialect, outgoing)),
    )
    incoming = take(request, dialect, Stamp(0, base_offset, 7), os.urandom)
    frame, _ = seal(memoryview(bytearray()), incoming, 7)
    frame[:8] = base_offset.to_bytes(8, "big")
    return bytes(frame)


@pytest.mark.parametrize("dialect", NATIVE)
def test_frames_in_a_row(dialect: Dialect) -> None:
    frames = [stored(dialect, 0, 3), stored(dialect, 3, 1), stored(dialect, 4, 5)]
    run = whole_batches(memoryview(b"".join(frames)), 0, layout_of(dialect), 0, 100)
    assert run is not None
    found, position = run
    assert (found.count, found.last_offset, position) == (9, 8, sum(map(len, frames)))
    one_by_one = []
    for frame in frames:
        part = native_slice(memoryview(frame), read_frame_header(frame), dialect, 0, 100)
        assert part is not None
        one_by_one += part.buffers
    assert found.buffers == one_by_one


def test_a_run_ends_before_what_is_not_wanted_whole() -> None:
    frames = [stored(Dialect.D, 0, 3), stored(Dialect.D, 3, 3)]
    data = memoryview(b"".join(frames))
    run = whole_batches(data, 0, Layout.BATCH, 0, 5)
    assert run is not None
    assert (run[0].count, run[1]) == (3, len(frames[0]))
    assert whole_batches(data, 0, Layout.BATCH, 1, 100) is None
    assert whole_batches(data, 0, Layout.BATCH, 0, 2) is None
    assert whole_batches(data, 0, Layout.LONG, 0, 100) is None
    assert whole_batches(data, len(data), Layout.BATCH, 0, 100) is None


def test_a_run_ends_before_what_others_wrote() -> None:
    record = Record(offset=3, timestamp_ms=7, key=None, value=b"x", headers=(), append_time=False)
    header = read_frame_header(stored(Dialect.D, 3, 1))
    first = stored(Dialect.D, 0, 3)
    run = whole_batches(memoryview(first + bytes(place_batch([record], header))), 0, Layout.BATCH, 0, 100)
    assert run is not None
    assert (run[0].last_offset, run[1]) == (2, len(first))
