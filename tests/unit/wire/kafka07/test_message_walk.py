"""Passing over messages: the compiled module and its Python source give the same answers."""

from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.wire.kafka07 import message_walk
from tests.support.twins import twin
from tests.unit.wire.kafka07.sets import message_set, wrapper

PassOver = Callable[[memoryview, int, int, int], tuple[int, int]]
ANY_SIZE = 1 << 30


def python(*, compiled: bool) -> ModuleType:
    """The module as Python runs it.

    Args:
        compiled: whether it goes the way of the compiled one, which computes the checksum itself.
    """
    module = twin("wire.kafka07.message_walk")
    module.__dict__["COMPILED"] = compiled
    return module


BOTH = pytest.mark.parametrize(
    "pass_over",
    [message_walk.pass_over, python(compiled=False).pass_over, python(compiled=True).pass_over],
    ids=["installed", "python", "python as compiled"],
)


def passed(pass_over: PassOver, body: bytes, limit: int = ANY_SIZE) -> tuple[int, int]:
    return pass_over(memoryview(body), 0, len(body), limit)


@BOTH
@pytest.mark.parametrize("magic", [0, 1])
def test_payloads_of_every_length(pass_over: PassOver, magic: int) -> None:
    body = message_set(*(bytes(range(size)) for size in range(70)), b"x" * 5000, magic=magic)
    assert passed(pass_over, body) == (len(body), 71)


@BOTH
@pytest.mark.parametrize("magic", [0, 1])
def test_every_damaged_byte_is_noticed(pass_over: PassOver, magic: int) -> None:
    first, second = message_set(b"first", magic=magic), message_set(b"the second", magic=magic)
    for position in range(len(second)):
        for bit in range(8):
            damaged = bytearray(second)
            damaged[position] ^= 1 << bit
            reached, count = passed(pass_over, first + damaged)
            # Of the attributes only the codec counts.
            harmless = magic == 1 and position == 5 and bit > 1
            assert (reached, count) == ((len(first + second), 2) if harmless else (len(first), 1))


@BOTH
@pytest.mark.parametrize("magic", [0, 1])
def test_a_set_cut_off_anywhere(pass_over: PassOver, magic: int) -> None:
    first, second = message_set(b"first", magic=magic), message_set(b"", magic=magic)
    for size in range(len(second)):
        assert passed(pass_over, first + second[:size]) == (len(first), 1)


@BOTH
def test_it_stops_before_what_is_not_plain(pass_over: PassOver) -> None:
    body = message_set(b"a", b"b", magic=1)
    for other in (wrapper([b"c"]), b"\0\0\0\5\2\0\0\0\0", b"\0\0\0\4\0\0\0\0\0", b"\xff\xff\xff\xff\0\0\0\0\0"):
        assert passed(pass_over, body + other) == (len(body), 2)
    assert passed(pass_over, message_set(b"x" * 10, b"x" * 11), limit=10) == (19, 1)
    assert passed(pass_over, b"\0\0\0\5\1\0\0\0\0") == (0, 0)


@BOTH
def test_it_begins_and_ends_where_told(pass_over: PassOver) -> None:
    body = memoryview(message_set(b"a", b"b", b"c", b"d"))
    assert pass_over(body, 10, 30, ANY_SIZE) == (30, 2)
    assert pass_over(body, 10, 29, ANY_SIZE) == (20, 1)
    assert pass_over(body, 40, 40, ANY_SIZE) == (40, 0)


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(st.lists(st.one_of(st.binary(max_size=40).map(message_set), st.binary(max_size=20)), max_size=6))
def test_all_agree(parts: list[bytes]) -> None:
    body = b"".join(parts)
    outcomes = {passed(one, body) for one in (message_walk.pass_over, IN_PYTHON, AS_COMPILED)}
    assert len(outcomes) == 1


@pytest.mark.parametrize("seal", [message_walk.seal, python(compiled=False).seal, python(compiled=True).seal])
@pytest.mark.parametrize("magic", [0, 1])
def test_checksums_are_set(seal: Callable[[bytearray], None], magic: int) -> None:
    payloads = [bytes(range(size)) for size in range(60)]
    body = message_set(*payloads, magic=magic)
    open_ = bytearray(body)
    position = 0
    for payload in payloads:
        position += 9 + magic
        open_[position - 4 : position] = bytes(4)
        position += len(payload)
    assert bytes(open_) != body
    seal(open_)
    assert bytes(open_) == body


IN_PYTHON: PassOver = python(compiled=False).pass_over
AS_COMPILED: PassOver = python(compiled=True).pass_over
