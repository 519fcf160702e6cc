"""Frames of other protocols as entries."""

from uuid import UUID

from millstream.model.frame import FrameHeader, read_frame_header
from millstream.model.record import Record
from millstream.sessions.pulsar import translations
from millstream.sessions.pulsar.translations import Translations, translate
from millstream.wire.kafka.records import build_batch
from millstream.wire.pulsar.entry import read_entry, read_messages

WHERE = UUID(int=1), 0


def records(*values: bytes, first_offset: int = 0, key: bytes | None = None) -> list[Record]:
    """Records, one behind the other."""
    return [
        Record(offset=first_offset + n, timestamp_ms=1000, key=key, value=value) for n, value in enumerate(values)
    ]


def frame_of(*values: bytes) -> tuple[FrameHeader, memoryview]:
    """A Kafka batch."""
    frame = memoryview(build_batch(records(*values)))
    return read_frame_header(frame), frame


def test_a_frame_is_translated_once() -> None:
    known = Translations()
    header, frame = frame_of(b"0", b"1")
    first = known.of(WHERE, header, frame)
    assert known.of(WHERE, header, frame) is first
    assert known.of((UUID(int=2), 0), header, frame) is not first
    other_header, other = frame_of(b"2", b"3")
    assert known.of(WHERE, other_header, other) is not first, "compaction leaves other frames at the same offset"


def test_translations_do_not_pile_up() -> None:
    known = Translations()
    header, frame = frame_of(b"0")
    first = known.of(WHERE, header, frame)
    for partition in range(1, 20_000):
        known.of((WHERE[0], partition), header, frame)
    assert known.of(WHERE, header, frame) is not first


def test_places_without_a_record_are_closed() -> None:
    translated = translate([*records(b"0"), *records(b"3", first_offset=3)], 0, 5)
    (piece,) = translated.entries
    assert (piece.first_offset, piece.message_count, piece.open) == (0, 5, 0b01001)
    assert len(list(read_messages(read_entry(piece.data)))) == 5


def test_the_first_key_counts() -> None:
    keyless, keyed = records(b"0"), records(b"1", first_offset=1, key=b"k")
    assert translate(keyless, 0, 1).key is None
    assert translate([*keyless, *keyed], 0, 2).key == b"k"
    assert translate([], 0, 2) == translations.Translated((), None)
