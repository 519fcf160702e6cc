"""Where the records of a batch stand: the compiled module and its Python source give the same answers."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.model.numbers import numbers
from millstream.wire.kafka import record_spans
from millstream.wire.kafka.primitives import signed_varint
from tests.support.twins import twin

Find = Callable[[memoryview, int, int, int, int, memoryview], int]
END = 100
IN_PYTHON: Find = twin("wire.kafka.record_spans").find_spans
BOTH = pytest.mark.parametrize("find", [record_spans.find_spans, IN_PYTHON], ids=["installed", "python"])


def field(content: bytes | None) -> bytes:
    return signed_varint(-1) if content is None else signed_varint(len(content)) + content


def record(offset: int, key: bytes | None = b"k", value: bytes | None = b"v", time: int = 0) -> bytes:
    content = b"\0" + signed_varint(time) + signed_varint(offset) + field(key) + field(value) + signed_varint(0)
    return signed_varint(len(content)) + content


def found(find: Find, body: bytes, count: int) -> list[list[int]] | None:
    spans = numbers(record_spans.SPAN_FIELDS * count)
    view, position, offset = memoryview(body), 0, 0
    for number in range(count):  # one at a time and then all at once: the same
        position = find(view, position, offset, END, 1, spans[number * record_spans.SPAN_FIELDS :])
        if position < 0:
            break
        offset = spans[number * record_spans.SPAN_FIELDS + 3] + 1
    again = numbers(record_spans.SPAN_FIELDS * count)
    assert find(view, 0, 0, END, count, again) == position
    if position != len(body):
        return None
    assert again == spans
    listed = spans.tolist()
    return [listed[at : at + record_spans.SPAN_FIELDS] for at in range(0, len(listed), record_spans.SPAN_FIELDS)]


@BOTH
def test_keys_values_times_and_offsets(find: Find) -> None:
    parts = [record(0, b"key", None, -5), record(3, None, b"x" * 100, 2**62), record(7, b"", b"")]
    body = b"".join(parts)
    first, second, third = found(find, body, 3) or []
    assert first == [0, len(parts[0]), -5, 0, 5, 3, -1]
    assert body[first[4] : first[4] + 3] == b"key"
    assert second[:4] == [len(parts[0]), len(parts[0] + parts[1]), 2**62, 3]
    assert second[5:] == [-1, 100]
    assert third[3:] == [7, third[4], 0, 0]


@BOTH
@pytest.mark.parametrize(
    ("body", "count"),
    [
        (record(0), 2),  # one too few
        (record(0) + record(1), 1),  # one too many
        (record(1) + record(1), 2),  # offsets that do not rise
        (record(-1), 1),
        (record(END), 1),
        (record(0)[:-2], 1),
        (signed_varint(-3) + record(0), 1),
        (b"\xff" * 20, 1),
        (signed_varint(4) + b"\0\0\0" + signed_varint(50), 1),  # a key that is longer than its record
    ],
)
def test_what_does_not_fit(find: Find, body: bytes, count: int) -> None:
    assert found(find, body, count) is None


@given(st.binary(max_size=60), st.integers(0, 4))
def test_both_say_the_same_of_anything(body: bytes, count: int) -> None:
    assert found(record_spans.find_spans, body, count) == found(IN_PYTHON, body, count)


@given(st.lists(st.tuples(st.binary(max_size=9), st.integers(-(2**63), 2**63 - 1)), max_size=5), st.data())
def test_both_say_the_same_of_what_is_nearly_right(pairs: list[tuple[bytes, int]], data: st.DataObject) -> None:
    body = bytearray(b"".join(record(n, key, b"v", time) for n, (key, time) in enumerate(pairs)))
    if body and data.draw(st.booleans()):
        body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    expected = found(IN_PYTHON, bytes(body), len(pairs))
    assert found(record_spans.find_spans, bytes(body), len(pairs)) == expected
