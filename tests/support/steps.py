"""Work in steps, done all at once."""

from collections.abc import Sequence
from typing import TypeVar

from millstream.broker.keyed_frames import FrameRecords, KeyedRecord, OpenFrame
from millstream.broker.steps import Steps
from millstream.model.frame import read_frame_header
from millstream.model.pending import Pending

__all__ = ["keyed", "left_of", "opened", "taken"]

T = TypeVar("T")


def taken(steps: Steps[T]) -> T:
    """What some work returns, with all of its steps taken here and now. Raises its error."""
    try:
        waits_for = next(steps)
        while True:
            try:
                value = None
                if isinstance(waits_for, Pending):
                    value = waits_for.result()
                elif waits_for is not None:
                    value = waits_for()
            except Exception as error:  # noqa: BLE001 - raised where it was waited for
                waits_for = steps.throw(error)
            else:
                waits_for = steps.send(value)
    except StopIteration as end:
        result: T = end.value
        return result


def opened(reader: FrameRecords, frame: bytes | bytearray | memoryview) -> OpenFrame | None:
    """A frame, opened."""
    view = memoryview(frame)
    return taken(reader.open(read_frame_header(view), view))


def keyed(reader: FrameRecords, frame: bytes | bytearray | memoryview) -> Sequence[KeyedRecord]:
    """All records of a frame; none if nobody can read it."""
    found = opened(reader, frame)
    return [] if found is None else [record for records in found.records() for record in records]


def left_of(
    reader: FrameRecords, frame: bytes | bytearray | memoryview, kept: set[int], horizon_ms: int | None = None
) -> bytes | None:
    """What is left of a frame with some of its records; None if it is to stay as it is."""
    found = opened(reader, frame)
    assert found is not None
    places = range(read_frame_header(memoryview(frame)).last_offset_delta + 1)
    left = taken(found.left(bytearray(place in kept for place in places), horizon_ms))
    return None if left is None else bytes(left)
