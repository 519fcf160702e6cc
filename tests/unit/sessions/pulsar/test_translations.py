"""Frames of other protocols as entries."""

from uuid import UUID

import pytest

from millstream.broker.translated_frames import TranslatedFrames
from millstream.model.frame import FrameHeader, read_frame_header, set_base_offset
from millstream.model.record import Record
from millstream.sessions.pulsar.translations import Translated, Translations
from millstream.wire import translation
from millstream.wire.kafka.records import build_batch, place_batch
from millstream.wire.pulsar.entry import read_entry, read_messages

WHERE = UUID(int=1), 0


def records(*values: bytes, first_offset: int = 0, key: bytes | None = None) -> list[Record]:
    """Records, one behind the other."""
    return [
        Record(offset=first_offset + n, timestamp_ms=1000, key=key, value=value) for n, value in enumerate(values)
    ]


def frame_of(made: list[Record], count: int = 0) -> tuple[FrameHeader, memoryview]:
    """A Kafka batch of records, which takes so many offsets."""
    places = [Record(offset=n, timestamp_ms=0, key=None, value=b"") for n in range(count or len(made))]
    frame = memoryview(place_batch(made, read_frame_header(build_batch(places))))
    set_base_offset(frame, 0)
    return read_frame_header(frame), frame


@pytest.fixture(params=["by tables", "by records"])
def known(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Translations:
    """Translations in both ways; that by tables is the other one where nothing is compiled."""
    if request.param == "by records":
        monkeypatch.setattr(translation, "read_table", lambda _: None)
    return Translations(TranslatedFrames(1 << 20))


def test_a_frame_is_translated_once(known: Translations) -> None:
    header, frame = frame_of(records(b"0", b"1"))
    first = known.of(WHERE, header, frame)
    assert known.of(WHERE, header, frame) is first
    assert known.of((UUID(int=2), 0), header, frame) is not first
    other_header, other = frame_of(records(b"2", b"3"))
    assert known.of(WHERE, other_header, other) is not first, "compaction leaves other frames at the same offset"


def test_places_without_a_record_are_closed(known: Translations) -> None:
    header, frame = frame_of([*records(b"0"), *records(b"3", first_offset=3)], 5)
    (piece,) = known.of(WHERE, header, frame).entries
    assert (piece.first_offset, piece.message_count, piece.open) == (0, 5, 0b01001)
    assert len(list(read_messages(read_entry(piece.data)))) == 5


def test_the_first_key_counts(known: Translations) -> None:
    keyless, keyed = records(b"0"), records(b"1", first_offset=1, key=b"k")
    assert known.of(WHERE, *frame_of(keyless)).key is None
    assert known.of(WHERE, *frame_of([*keyless, *keyed])).key == b"k"
    assert known.of(WHERE, *frame_of([], 2)) == Translated((), None)
    large = records(b"x" * 20_000, key=b"k")
    for made in (keyless, [*keyless, *keyed], large):
        assert known.key(WHERE, *frame_of(made)) == made[-1].key


def test_a_frame_of_more_messages_than_an_entry_may_have(known: Translations) -> None:
    count = 128 * 1024 + 3
    pieces = known.of(WHERE, *frame_of(records(*([b""] * count)))).entries
    assert [piece.first_offset for piece in pieces] == [
        0,
        *(one.first_offset + one.message_count for one in pieces[:-1]),
    ]
    assert (pieces[-1].first_offset, pieces[-1].message_count) == (128 * 1024, 3)
