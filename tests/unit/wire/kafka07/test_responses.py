"""Answers of Kafka 0.7, both directions."""

import pytest

from millstream.wire.kafka07.errors import MalformedRequest
from millstream.wire.kafka07.responses import (
    Buffer,
    Fetched,
    decode_fetch,
    decode_multifetch,
    decode_offsets,
    encode_fetch,
    encode_multifetch,
    encode_offsets,
)


def body_of(buffers: list[Buffer]) -> memoryview:
    frame = b"".join(buffers)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return memoryview(frame)[4:]


def joined(fetched: Fetched) -> tuple[int, bytes]:
    return fetched.error, b"".join(fetched.messages)


def test_fetch() -> None:
    fetched = Fetched(0, [b"ab", memoryview(b"cde")])
    assert b"".join(encode_fetch(fetched)).hex() == "0000000700006162636465"
    assert joined(decode_fetch(body_of(encode_fetch(fetched)))) == (0, b"abcde")


@pytest.mark.parametrize("code", [-1, 1, 2, 3])
def test_fetch_error(code: int) -> None:
    assert joined(decode_fetch(body_of(encode_fetch(Fetched(code))))) == (code, b"")


def test_multifetch() -> None:
    parts = [Fetched(0, [b"abc"]), Fetched(3), Fetched(0)]
    again = decode_multifetch(body_of(encode_multifetch(parts)))
    assert [joined(part) for part in again] == [(0, b"abc"), (3, b""), (0, b"")]


@pytest.mark.parametrize("addresses", [[], [0], [24, 0], [2**63 - 1, 5, 0]])
def test_offsets(addresses: list[int]) -> None:
    assert decode_offsets(body_of(encode_offsets(addresses))) == addresses


@pytest.mark.parametrize(
    ("decode", "answer"),
    [
        (decode_fetch, ""),
        (decode_fetch, "00"),
        (decode_multifetch, "00"),
        (decode_multifetch, "0000 000000"),
        (decode_multifetch, "0000 00000001 00"),
        (decode_multifetch, "0000 00000003 0000"),
        (decode_multifetch, "0000 ffffffff 0000"),
        (decode_offsets, "0000"),
        (decode_offsets, "0000 00000001"),
        (decode_offsets, "0000 ffffffff"),
        (decode_offsets, "0000 00000000 00"),
    ],
)
def test_malformed(decode: object, answer: str) -> None:
    assert callable(decode)
    with pytest.raises(MalformedRequest):
        decode(memoryview(bytes.fromhex(answer)))
