"""A frame is translated once for all who want it in one form, and only for those."""

import logging
import struct
from collections.abc import Hashable, Sequence

import pytest

from millstream.broker.translated_frames import TranslatedFrames
from millstream.model.frame import FrameHeader, Magic, frame_crc, read_frame_header, set_base_offset
from millstream.model.frame_span import FrameSpan, frame_of, take_span
from millstream.model.record import Record
from millstream.model.record_table import RecordTable
from millstream.sessions.translated import is_kept, translated
from millstream.wire.kafka.record_rows import COMPILED
from millstream.wire.translation import KAFKA_BATCH
from tests.support.batches import batch


class Values:
    """A form that tells the values, and counts how often it had to."""

    def __init__(self, name: Hashable, *, together: bool = True) -> None:
        self.name = name
        self.made = 0
        self._together = together

    def of_table(self, table: RecordTable) -> list[bytes | None] | None:
        if not self._together:
            return None
        self.made += 1
        return [record.value for record in table.records()]

    def of_records(self, records: Sequence[Record], header: FrameHeader) -> list[bytes | None]:
        self.made += 1
        return [record.value for record in records]

    def size_bytes(self, made: list[bytes | None]) -> int:
        return sum(len(value or b"") for value in made)


@pytest.fixture
def kept() -> TranslatedFrames:
    return TranslatedFrames(1 << 20)


def found(kept: TranslatedFrames, where: str, span: FrameSpan, form: Values) -> list[list[bytes | None] | None]:
    """What became of the frames, each time it was found out."""
    return [made for _, made in translated(kept, where, span, form)]


def row(*frames: bytearray) -> FrameSpan:
    """A span of frames, one after the other."""
    offset = 0
    for frame in frames:
        set_base_offset(memoryview(frame), offset)
        offset += read_frame_header(frame).record_count
    span = take_span(memoryview(b"".join(frames)), frames_max=256)
    assert span.count == len(frames)
    return span


@pytest.mark.parametrize("together", [False, True])
def test_once_for_each_partition_and_form(kept: TranslatedFrames, together: bool) -> None:
    span = frame_of(memoryview(batch(b"value", 3)))
    form, other = Values("a", together=together), Values("b", together=together)
    assert not is_kept(kept, "p", span, form)
    for _ in range(3):
        assert found(kept, "p", span, form) == [[b"value"] * 3]
    assert form.made == 1
    assert is_kept(kept, "p", span, form)
    assert found(kept, "q", span, form) == [[b"value"] * 3]
    assert found(kept, "p", span, other) == [[b"value"] * 3]
    assert (form.made, other.made) == (2, 1)


def test_what_compaction_left_of_a_frame_is_another(kept: TranslatedFrames) -> None:
    form = Values("a")
    for value in (b"1", b"2"):
        assert found(kept, "p", frame_of(memoryview(batch(value))), form) == [[value]]


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled every frame goes by itself")
def test_small_frames_are_translated_together(kept: TranslatedFrames) -> None:
    form, span = Values("a"), row(batch(b"1"), batch(b"2", 2), batch(b"3"))
    for _ in range(2):
        assert found(kept, "p", span, form) == [[b"1", b"2", b"2", b"3"]]
    assert form.made == 1
    assert found(kept, "p", row(batch(b"1"), batch(b"2", 2), batch(b"4")), form) == [[b"1", b"2", b"2", b"4"]]
    assert found(kept, "p", row(batch(b"1"), batch(b"2", 2)), form) == [[b"1", b"2", b"2"]]


def test_frames_that_cannot_be_translated_together_are_one_by_one(kept: TranslatedFrames) -> None:
    form, span = Values("a", together=False), row(batch(b"1"), batch(b"2", 2), batch(b"3"))
    for _ in range(2):
        assert found(kept, "p", span, form) == [[b"1"], [b"2", b"2"], [b"3"]]
    assert form.made == 3
    assert is_kept(kept, "p", span, form)


def broken(*frames: bytearray) -> list[bytearray]:
    """Frames that say they are of another encoding."""
    for frame in frames:
        struct.pack_into(">b", frame, 16, Magic.PULSAR_ENTRY)
        struct.pack_into(">I", frame, 17, frame_crc(memoryview(frame)))
    return list(frames)


@pytest.mark.parametrize("count", [1, 3])
def test_what_nobody_can_read_is_found_out_once(
    kept: TranslatedFrames, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    span = row(*broken(*(batch(b"no entry") for _ in range(count))))
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert [made for _, made in translated(kept, "p", span, KAFKA_BATCH)] == [None] * count
    assert len(caplog.records) == count
    assert is_kept(kept, "p", span, KAFKA_BATCH)
