"""Messages as polls carry them: those of other protocols, and what becomes of what Iggy has no place for."""

import pytest

from millstream.model.frame import set_base_offset
from millstream.model.record import Record
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.headers import HeaderKind, UserHeader, read_headers
from millstream.wire.iggy.incoming import layout_of
from millstream.wire.iggy.polled import encode_messages, message_of, native_slice
from millstream.wire.iggy.stored import read_frame, seal
from tests.unit.sessions.iggy.conversation import polled
from tests.unit.wire.iggy.batches import Outgoing, taken

DIALECTS = list(Dialect)
ID = bytes(range(1, 17))
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


def record(offset: int = 7, timestamp_ms: int = 1000, **fields: object) -> Record:
    values: dict[str, object] = {"key": None, "value": b"value", **fields}
    return Record(offset=offset, timestamp_ms=timestamp_ms, **values)  # type: ignore[arg-type]  # checked by its use


@every_dialect
def test_records_of_other_protocols(dialect: Dialect) -> None:
    records = [record(7), record(8, 2000, value=b"other"), record(10, 2000, value=None)]
    content = b"".join(encode_messages([message_of(one, b"seed") for one in records], dialect, 3))
    messages = polled(dialect, content)
    assert [(one["offset"], one["timestamp"], one["payload"]) for one in messages] == [
        (7, 1_000_000, b"value"),
        (8, 2_000_000, b"other"),
        (10, 2_000_000, b""),
    ]
    assert len({one["id"] for one in messages}) == 3


def test_ids_follow_from_the_place() -> None:
    assert message_of(record(), b"a").id == message_of(record(), b"a").id
    assert len({message_of(record(offset), seed).id for offset in (1, 2) for seed in (b"a", b"b")}) == 4


def test_headers_of_other_protocols() -> None:
    headers = (("k", b"v"), ("none", None), ("empty", b""), ("long", b"x" * 256), ("", b"v"))
    assert message_of(record(headers=headers), b"").headers == [UserHeader(b"k", b"v", HeaderKind.RAW)]
    assert message_of(record(key=b"the key"), b"").headers == [UserHeader(b"millstream.key", b"the key")]
    assert message_of(record(key=b"x" * 256), b"").headers == []
    many = tuple((f"header {number}", b"v" * 200) for number in range(600))
    assert message_of(record(headers=many), b"").headers == []


@pytest.mark.parametrize(
    "headers",
    [
        (("iggy.id", b"not hexadecimal"), ("iggy.origin-timestamp", b"never"), ("iggy.kinds", b"a,b,c"), ("k", b"v")),
        (("iggy.id", None), ("iggy.origin-timestamp", None), ("iggy.kinds", None), ("k", b"v")),
        (("iggy.id", b"\xff\xfe"), ("iggy.origin-timestamp", b"9" * 30), ("iggy.kinds", b"\xff"), ("k", b"v")),
        (("iggy.kinds", b"uint8=odd"), ("k", b"v")),
    ],
)
def test_headers_that_only_look_like_ours(headers: tuple[tuple[str, bytes | None], ...]) -> None:
    message = message_of(record(headers=headers), b"")
    assert message.headers == [UserHeader(b"k", b"v", HeaderKind.RAW)]
    assert len(message.id) == 16
    assert message.origin_us == message.timestamp_us


@every_dialect
def test_a_trip_through_records_keeps_all(dialect: Dialect) -> None:
    headers = [UserHeader(b"k%d" % kind, b"12345678", kind) for kind in HeaderKind]
    if dialect >= Dialect.C3:
        headers.append(UserHeader(b"\7\0", b"v", HeaderKind.RAW, HeaderKind.UINT16))
    incoming = taken(dialect, Outgoing(b"one", ID, tuple(headers)))
    frame, _ = seal(incoming.messages, incoming, 1000)
    message = message_of(read_frame(frame)[0], b"")
    assert (message.id, message.payload, message.headers) == (ID, b"one", headers)
    (told,) = polled(dialect, b"".join(encode_messages([message], dialect, 0)))
    assert read_headers(memoryview(told["headers"]), kinded_keys=dialect >= Dialect.C3) == headers


@every_dialect
def test_parts_of_a_frame(dialect: Dialect) -> None:
    incoming = taken(dialect, *(Outgoing(b"%d" % number, ID) for number in range(6)))
    frame, header = seal(incoming.messages, incoming, 1_700_000_000_000)
    set_base_offset(frame, 100)
    header = header._replace(base_offset=100)
    for first in range(6):
        for count in range(1, 8):
            part = native_slice(frame, header, dialect, 100 + first, count)
            assert part is not None
            messages = polled(dialect, b"".join(part.buffers))
            expected = list(range(first, min(first + count, 6)))
            assert [one["payload"] for one in messages] == [b"%d" % number for number in expected]
            assert [one["offset"] for one in messages] == [100 + number for number in expected]
            assert (part.count, part.last_offset) == (len(expected), 100 + expected[-1])


@pytest.mark.parametrize("other", DIALECTS)
@every_dialect
def test_only_the_own_layout_is_handed_out_as_it_is(dialect: Dialect, other: Dialect) -> None:
    incoming = taken(dialect, Outgoing(b"x", ID))
    frame, header = seal(incoming.messages, incoming, 1000)
    is_native = native_slice(frame, header, other, 0, 1) is not None
    assert is_native == (layout_of(dialect) is layout_of(other))
    kafka = header._replace(magic=2)
    assert native_slice(frame, kafka, other, 100, 1) is None
