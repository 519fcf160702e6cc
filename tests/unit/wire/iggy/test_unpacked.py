"""Batches of dialect D taken apart again."""

import pytest

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.headers import HeaderKind, UserHeader, write_headers
from millstream.wire.iggy.polled import Message, encode_messages
from millstream.wire.iggy.unpacked import unpack

HEADERS = [
    UserHeader(b"key", b"\x07", HeaderKind.UINT8),
    UserHeader(b"\x01", b"text", HeaderKind.STRING, HeaderKind.RAW),
]


def message(offset: int, timestamp_us: int = 7, headers: list[UserHeader] | None = None) -> Message:
    return Message(offset, timestamp_us, 1000 + offset, bytes([offset] * 16), b"payload %d" % offset, headers or [])


def test_what_was_encoded_is_read_back() -> None:
    messages = [message(3), message(4, headers=HEADERS), message(5, timestamp_us=8)]
    batches = memoryview(b"".join(encode_messages(messages, Dialect.D, 1)))
    found = list(unpack(batches))
    assert [one.offset for one in found] == [3, 4, 5]
    assert [one.timestamp_us for one in found] == [7, 7, 8]
    assert [one.origin_us for one in found] == [1003, 1004, 1005]
    assert [one.id for one in found] == [one.id for one in messages]
    assert [bytes(one.payload) for one in found] == [one.payload for one in messages]
    assert [one.headers() for one in found] == [[], HEADERS, []]
    assert bytes(found[1].block) == write_headers(HEADERS, kinded_keys=True)
    assert all(one.checksum for one in found)


def test_headers_that_are_none_are_refused() -> None:
    batches = bytearray(b"".join(encode_messages([message(0, headers=HEADERS)], Dialect.D, 1)))
    batches[-1:] = b""
    batches[32:40] = len(batches).to_bytes(8, "little")
    (found,) = unpack(memoryview(batches))
    with pytest.raises(Refused):
        found.headers()


def test_nothing_is_taken_apart_of_nothing() -> None:
    assert list(unpack(memoryview(b""))) == []
