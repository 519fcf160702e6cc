"""Batches as they arrive: what is taken, and what is refused with which code."""

import struct
from collections.abc import Callable
from zlib import crc32

import pytest
import xxhash

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.headers import UserHeader
from millstream.wire.iggy.incoming import Layout, layout_of, message_bytes, take
from millstream.wire.iggy.limits import HEADERS_BYTES_MAX
from tests.unit.wire.iggy.batches import STAMP, Outgoing, request, taken

DIALECTS = list(Dialect)
INDEXED = [Dialect.C1, Dialect.C2, Dialect.C3]
ID = bytes(range(1, 17))
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


def refusal(dialect: Dialect, *messages: Outgoing, spoil: Callable[[bytearray], object] | None = None) -> int:
    """The code with which messages are refused, once some of their bytes were changed."""
    sent = request(dialect, *messages)
    content = bytearray(sent.messages)
    if spoil is not None:
        spoil(content)
    sent.messages = memoryview(content)
    with pytest.raises(Refused) as refused:
        take(sent, dialect, STAMP, bytes)
    return int(refused.value.code)


def at(position: int, fmt: str, value: int) -> Callable[[bytearray], object]:
    return lambda content: struct.pack_into("<" + fmt, content, position, value)


def cut(size: int) -> Callable[[bytearray], object]:
    return lambda content: content.__delitem__(slice(size, None))


@every_dialect
def test_messages_are_found(dialect: Dialect) -> None:
    incoming = taken(dialect, Outgoing(b"one", ID, (UserHeader(b"k", b"v"),)), Outgoing(b"three", ID[::-1]))
    assert incoming.layout is layout_of(dialect)
    assert incoming.count == 2
    assert incoming.ids() == [ID, ID[::-1]]
    sizes = [message_bytes(incoming.layout, incoming.messages, start) for start in incoming.starts]
    assert incoming.starts[1] == incoming.starts[0] + sizes[0]
    assert incoming.starts[1] + sizes[1] == len(incoming.messages)


@every_dialect
def test_ids_are_drawn(dialect: Dialect) -> None:
    drawn = bytes(16) if dialect >= Dialect.D else b"\x77" * 16
    assert taken(dialect, Outgoing(b"x"), Outgoing(b"y", ID)).ids() == [drawn, ID]


@pytest.mark.parametrize("dialect", INDEXED)
def test_offsets_and_times_are_filled_in(dialect: Dialect) -> None:
    incoming = taken(dialect, Outgoing(b"x"), Outgoing(b"y"))
    for index, start in enumerate(incoming.starts):
        offset, timestamp_us = struct.unpack_from("<QQ", incoming.messages, start + 24)
        assert (offset, timestamp_us) == (STAMP.base_offset + index, STAMP.timestamp_us)


def test_batches_are_stamped() -> None:
    incoming = taken(Dialect.D, Outgoing(b"x"), Outgoing(b"y"))
    assert struct.unpack_from("<QQQ", incoming.messages) == (2, 100, STAMP.timestamp_us)


@every_dialect
def test_some_of_the_messages(dialect: Dialect) -> None:
    incoming = taken(dialect, *(Outgoing(b"%d" % number, bytes([number] * 16)) for number in range(1, 5)))
    some = incoming.only([False, True, False, True], STAMP)
    assert some.ids() == [bytes([2] * 16), bytes([4] * 16)]
    alone = taken(dialect, Outgoing(b"2", bytes([2] * 16)), Outgoing(b"4", bytes([4] * 16)))
    assert bytes(some.messages) == bytes(alone.messages)


@every_dialect
def test_what_every_dialect_refuses(dialect: Dialect) -> None:
    assert refusal(dialect) in {4009, 4037}
    assert refusal(dialect, Outgoing(b"")) == 4024
    assert refusal(dialect, Outgoing(b"x", ID, (UserHeader(b"k", b""),))) == 4019
    headers = tuple(UserHeader(b"%d" % number, b"v" * 200) for number in range(HEADERS_BYTES_MAX // 200 + 1))
    assert refusal(dialect, Outgoing(b"x", ID, headers)) == 4017


def test_dialect_a_counts_over_the_whole_request() -> None:
    headers = tuple(UserHeader(b"%d" % number, b"v" * 200) for number in range(HEADERS_BYTES_MAX // 400))
    messages = [Outgoing(b"x", ID, headers)] * 3
    assert refusal(Dialect.A, *messages) == 4017
    assert taken(Dialect.B3, *messages).count == 3
    large = [Outgoing(bytes(4 * 1024 * 1024))] * 3
    assert refusal(Dialect.A, *large) == 4022
    assert taken(Dialect.B3, *large).count == 3


@pytest.mark.parametrize("dialect", [Dialect.A, Dialect.B3])
def test_plain_messages_that_are_cut_off(dialect: Dialect) -> None:
    whole = len(request(dialect, Outgoing(b"value", ID)).messages)
    for size in range(1, whole):
        assert refusal(dialect, Outgoing(b"value", ID), spoil=cut(size)) == 4025


@pytest.mark.parametrize("dialect", INDEXED)
def test_indexes(dialect: Dialect) -> None:
    two = Outgoing(b"x"), Outgoing(b"y")
    size = 65 if dialect is Dialect.C3 else 57
    assert refusal(dialect, *two, spoil=at(0, "I", 1)) == 4031
    assert refusal(dialect, *two, spoil=at(24, "Q", 1)) == 4032
    assert refusal(dialect, *two, spoil=at(20, "I", 2 * size + 1)) == 4036
    assert refusal(dialect, *two, spoil=at(4, "I", 10)) == 4037
    assert refusal(dialect, *two, spoil=at(4, "I", 3 * size)) == 4036
    assert refusal(dialect, *two, spoil=at(32 + 52, "I", 2)) == 4025
    assert refusal(dialect, *two, spoil=cut(20)) == 4035
    assert refusal(dialect, *two, spoil=lambda c: c.append(0)) == 4036

    def out_of_order(content: bytearray) -> None:
        struct.pack_into("<I", content, 4, 1000)
        struct.pack_into("<I", content, 16 * 3 + 52, 1000 - size + 1)
        struct.pack_into("<I", content, 20, 5000)

    assert refusal(dialect, *two, Outgoing(b"z"), spoil=out_of_order) == 4036


@pytest.mark.parametrize("dialect", INDEXED)
def test_checksums_of_single_messages(dialect: Dialect) -> None:
    assert refusal(dialect, Outgoing(b"x"), spoil=at(16, "Q", 1)) == 4027
    for summed in (crc32, xxhash.xxh3_64_intdigest):
        sent = request(dialect, Outgoing(b"x"))
        content = bytearray(sent.messages)
        struct.pack_into("<Q", content, 16, summed(bytes(content[24:])))
        sent.messages = memoryview(content)
        assert take(sent, dialect, STAMP, bytes).count == 1


def test_batches() -> None:
    two = Outgoing(b"x", ID), Outgoing(b"y", ID)
    first, second = 256, 256 + 49

    def refused(spoil: Callable[[bytearray], object]) -> int:
        return refusal(Dialect.D, *two, spoil=spoil)

    assert refused(cut(100)) == 3
    assert refused(at(32, "Q", 1)) == 4036
    assert refused(at(48, "I", 3)) == 4009
    assert refused(at(200, "B", 1)) == 4101
    assert refused(at(40, "Q", 1)) == 4039
    assert refused(at(24, "Q", 1)) == 4039
    assert refused(at(first + 48, "B", 0)) == 4027
    assert refused(at(first + 8, "B", 0)) == 4027
    assert refused(at(second + 24, "I", 7)) == 4100
    assert refused(at(second + 40, "B", 7)) == 4101
    assert refused(at(second + 36, "I", 7)) == 4025
    assert refused(at(first + 36, "I", 60)) in {4025, 4037}


def test_layouts() -> None:
    assert [layout_of(one) for one in DIALECTS] == [Layout.PLAIN] * 4 + [Layout.SHORT] * 2 + [Layout.LONG] * 2 + [
        Layout.BATCH
    ] * 2
