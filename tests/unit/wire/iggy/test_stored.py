"""The stored form: made in place or not, and read back as records."""

import pytest

from millstream.model.frame import Magic, frame_crc, read_frame_header
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.errors import DamagedBatch
from millstream.wire.iggy.headers import HeaderKind, UserHeader
from millstream.wire.iggy.incoming import layout_of, take
from millstream.wire.iggy.stored import BODY_POSITION, layout_of_frame, messages_of, read_frame, seal, starts_of
from tests.unit.wire.iggy.batches import STAMP, Outgoing, request, taken

DIALECTS = list(Dialect)
NOW_MS = 1_700_000_000_000
ID = bytes(range(1, 17))
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


def stored(dialect: Dialect, *messages: Outgoing) -> memoryview:
    incoming = taken(dialect, *messages)
    return seal(incoming.messages, incoming, NOW_MS)[0]


@every_dialect
def test_frames(dialect: Dialect) -> None:
    frame = stored(dialect, Outgoing(b"one"), Outgoing(b"two"))
    header = read_frame_header(frame)
    assert (header.magic, header.size, header.crc) == (Magic.IGGY_BATCH, len(frame), frame_crc(frame))
    assert (header.record_count, header.last_offset_delta, header.max_timestamp) == (2, 1, NOW_MS)
    assert header.producer_id == -1
    assert layout_of_frame(frame) is layout_of(dialect)
    assert starts_of(frame, layout_of(dialect), 2)[-1] == len(messages_of(frame))


@every_dialect
@pytest.mark.parametrize("before", [0, BODY_POSITION - 1, BODY_POSITION, 500])
def test_messages_stay_where_they_arrived_if_there_is_room_before_them(dialect: Dialect, before: int) -> None:
    sent = request(dialect, Outgoing(b"one", ID), Outgoing(b"two", ID))
    room = memoryview(bytearray(before) + sent.messages)
    index_bytes = 32 if Dialect.C1 <= dialect <= Dialect.D0 else 0
    sent.messages = room[before:]
    frame, _ = seal(room, take(sent, dialect, STAMP, bytes), NOW_MS)
    assert (frame.obj is room.obj) == (before + index_bytes >= BODY_POSITION)
    assert frame == stored(dialect, Outgoing(b"one", ID), Outgoing(b"two", ID))


@every_dialect
def test_records(dialect: Dialect) -> None:
    headers = (UserHeader(b"k1", b"v1", HeaderKind.STRING), UserHeader(b"n", b"\1\0\0\0", HeaderKind.INT32))
    first, second = read_frame(stored(dialect, Outgoing(b"one", ID, headers), Outgoing(b"two", ID[::-1])))
    origin = [("iggy.origin-timestamp", b"1700000000000123")] if dialect >= Dialect.C1 else []
    assert (first.offset, first.value, first.key, first.timestamp_ms, first.append_time) == (
        0,
        b"one",
        None,
        1_700_000_000_000 if dialect >= Dialect.C1 else NOW_MS,
        dialect < Dialect.C1,
    )
    assert list(first.headers) == [
        ("iggy.id", b"100f0e0d0c0b0a090807060504030201"),
        *origin,
        ("iggy.kinds", b"string,int32"),
        ("k1", b"v1"),
        ("n", b"\1\0\0\0"),
    ]
    assert list(second.headers) == [("iggy.id", b"0102030405060708090a0b0c0d0e0f10"), *origin]
    assert second.offset == 1


def test_keys_that_are_not_text_and_the_records_key() -> None:
    headers = (
        UserHeader(b"\7\0", b"v", HeaderKind.RAW, HeaderKind.UINT16),
        UserHeader(b"\xff", b"w", HeaderKind.RAW),
        UserHeader(b"millstream.key", b"the key", HeaderKind.RAW),
    )
    (record,) = read_frame(stored(Dialect.C3, Outgoing(b"one", ID, headers)))
    assert record.key == b"the key"
    assert list(record.headers)[2:] == [
        ("iggy.kinds", b"uint16=raw,string=raw"),
        ("0700", b"v"),
        ("ff", b"w"),
    ]


@every_dialect
def test_damaged_bodies_are_told(dialect: Dialect) -> None:
    frame = bytearray(stored(dialect, Outgoing(b"one", ID), Outgoing(b"two", ID)))
    for size in range(BODY_POSITION, len(frame)):
        with pytest.raises(DamagedBatch):
            read_frame(memoryview(frame)[:size])
    with pytest.raises(DamagedBatch):
        read_frame(memoryview(frame + b"more"))
    frame[61] = 9
    with pytest.raises(DamagedBatch):
        read_frame(memoryview(frame))
