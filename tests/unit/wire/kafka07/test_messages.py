"""Message sets: heads, wrappers, what counts, and what is refused."""

import pytest

from millstream.wire.compression import Codec
from millstream.wire.kafka07.errors import InvalidMessage
from millstream.wire.kafka07.messages import (
    NESTING_MAX,
    InflationBudget,
    check_crc,
    count_messages,
    encode_message,
    encode_wrapper,
    message_at,
    payloads,
)
from tests.unit.wire.kafka07.sets import message_set, wrapper

XERIAL = bytes.fromhex("82534e41505059000000000100000001")


def counted(body: bytes) -> int:
    return count_messages(memoryview(body), InflationBudget())


def contents(body: bytes) -> list[bytes]:
    return [bytes(payload) for payload in payloads(memoryview(body))]


def nested(depth: int) -> bytes:
    body = message_set(b"x")
    for _ in range(depth):
        body = encode_wrapper([body], Codec.GZIP)
    return body


def test_head() -> None:
    message = message_at(memoryview(b"??" + encode_message(b"abc", 1)), 2)
    assert message is not None
    assert (message.codec, message.start, message.stop, message.payload_bytes) == (Codec.NONE, 12, 15, 3)


@pytest.mark.parametrize("body", ["", "00", "000000", "00000006 00", "7fffffff 00 00000000"])
def test_a_message_that_is_not_whole(body: str) -> None:
    assert message_at(memoryview(bytes.fromhex(body)), 0) is None


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("ffffffff 00 00000000", id="a negative length"),
        pytest.param("00000000", id="no bytes at all"),
        pytest.param("00000004 00 000000", id="shorter than a head of magic 0"),
        pytest.param("00000005 01 00 000000", id="shorter than a head of magic 1"),
        pytest.param("00000006 02 00 00000000", id="no such magic"),
        pytest.param("00000006 01 03 00000000", id="no such codec"),
    ],
)
def test_a_head_that_makes_no_sense(body: str) -> None:
    with pytest.raises(InvalidMessage):
        message_at(memoryview(bytes.fromhex(body)), 0)


def test_checksum() -> None:
    body = bytearray(encode_message(b"abc"))
    body[-1] ^= 1
    message = message_at(memoryview(body), 0)
    assert message is not None
    with pytest.raises(InvalidMessage, match="checksum"):
        check_crc(memoryview(body), message)


def test_a_mixed_set() -> None:
    body = message_set(b"a", b"") + wrapper([b"b", b"c"]) + message_set(b"d", magic=1)
    body += wrapper([b"e"], Codec.SNAPPY, magic=1)
    assert counted(body) == 6
    assert contents(body) == [b"a", b"", b"b", b"c", b"d", b"e"]


def test_snappy_in_the_framing_of_the_java_client() -> None:
    block = wrapper([b"a", b"b"], Codec.SNAPPY)[10:]
    framed = encode_message(XERIAL + len(block).to_bytes(4, "big") + block, 1, Codec.SNAPPY)
    assert contents(framed) == [b"a", b"b"]
    assert counted(framed) == 2


def test_a_message_cut_off_at_the_end_does_not_count() -> None:
    whole, cut = message_set(b"a"), message_set(b"b")
    for size in range(len(cut)):
        assert counted(whole + cut[:size]) == 1
        assert contents(whole + cut[:size]) == [b"a"]


def test_the_first_message_must_be_whole() -> None:
    assert counted(message_set(b"abc")[:3]) == 0
    with pytest.raises(InvalidMessage, match="not whole"):
        counted(message_set(b"abc")[:-1])
    with pytest.raises(InvalidMessage, match="not whole"):
        counted(encode_wrapper([message_set(b"abc")[:-1]], Codec.GZIP))


def test_damage_inside_a_wrapper() -> None:
    inner = bytearray(message_set(b"a", b"b"))
    inner[-1] ^= 1
    with pytest.raises(InvalidMessage, match="checksum"):
        counted(encode_wrapper([bytes(inner)], Codec.GZIP))
    with pytest.raises(InvalidMessage, match="unpacked"):
        counted(encode_message(b"this is no gzip", 1, Codec.GZIP))
    with pytest.raises(InvalidMessage, match="unpacked"):
        counted(encode_message(b"\xff\xff\xff\xff\xff\xff this is no snappy", 1, Codec.SNAPPY))


def test_wrappers_in_wrappers() -> None:
    assert counted(nested(NESTING_MAX)) == 1
    assert contents(nested(NESTING_MAX)) == [b"x"]
    for work in (counted, contents):
        with pytest.raises(InvalidMessage, match="inside each other"):
            work(nested(NESTING_MAX + 1))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_a_bomb_is_refused_at_the_limit(codec: Codec) -> None:
    body = memoryview(encode_wrapper([message_set(bytes(200_000))], codec))
    budget = InflationBudget(250_000)
    assert count_messages(body, budget) == 1
    assert budget.left_bytes == 250_000 - 200_009
    with pytest.raises(InvalidMessage, match="more than"):
        count_messages(body, budget)


def test_what_wrappers_inside_unpack_to_counts() -> None:
    inner = [wrapper([bytes(1000)]) for _ in range(10)]
    with pytest.raises(InvalidMessage, match="more than"):
        count_messages(memoryview(encode_wrapper(inner, Codec.GZIP)), InflationBudget(10_000))
