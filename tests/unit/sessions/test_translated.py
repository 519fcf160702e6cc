"""A frame is translated once for all who want it in one form, and only for those."""

import logging
import struct
from collections.abc import Hashable, Sequence

import pytest

from millstream.broker.translated_frames import TranslatedFrames
from millstream.model.frame import FrameHeader, Magic, frame_crc, read_frame_header
from millstream.model.record import Record
from millstream.model.record_table import RecordTable
from millstream.sessions.translated import is_kept, translated
from millstream.wire.translation import KAFKA_BATCH
from tests.support.batches import batch


class Values:
    """A form that tells the values, and counts how often it had to."""

    def __init__(self, name: Hashable) -> None:
        self.name = name
        self.made = 0

    def of_table(self, table: RecordTable, header: FrameHeader) -> None:
        """Leave it to the records."""

    def of_records(self, records: Sequence[Record], header: FrameHeader) -> list[bytes | None]:
        self.made += 1
        return [record.value for record in records]

    def size_bytes(self, made: list[bytes | None]) -> int:
        return sum(len(value or b"") for value in made)


@pytest.fixture
def kept() -> TranslatedFrames:
    return TranslatedFrames(1 << 20)


def test_once_for_each_partition_and_form(kept: TranslatedFrames) -> None:
    frame = memoryview(batch(b"value", 3))
    header = read_frame_header(frame)
    form, other = Values("a"), Values("b")
    assert not is_kept(kept, "p", header, form)
    for _ in range(3):
        assert translated(kept, "p", frame, header, form) == [b"value"] * 3
    assert form.made == 1
    assert is_kept(kept, "p", header, form)
    assert translated(kept, "q", frame, header, form) == [b"value"] * 3
    assert translated(kept, "p", frame, header, other) == [b"value"] * 3
    assert (form.made, other.made) == (2, 1)


def test_what_compaction_left_of_a_frame_is_another(kept: TranslatedFrames) -> None:
    form = Values("a")
    for value in (b"1", b"2"):
        frame = memoryview(batch(value))
        assert translated(kept, "p", frame, read_frame_header(frame), form) == [value]


def test_what_nobody_can_read_is_found_out_once(kept: TranslatedFrames, caplog: pytest.LogCaptureFixture) -> None:
    frame = memoryview(batch(b"no entry"))
    struct.pack_into(">b", frame, 16, Magic.PULSAR_ENTRY)
    struct.pack_into(">I", frame, 17, frame_crc(frame))
    header = read_frame_header(frame)
    with caplog.at_level(logging.ERROR):
        assert [translated(kept, "p", frame, header, KAFKA_BATCH) for _ in range(3)] == [None] * 3
    assert len(caplog.records) == 1
    assert is_kept(kept, "p", header, KAFKA_BATCH)
