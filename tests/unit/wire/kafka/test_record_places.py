"""The check of every record's place: the compiled module and its Python source give the same answers."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.model.frame import HEADER_BYTES
from millstream.model.record import Record
from millstream.wire.kafka import record_places, records
from millstream.wire.kafka.primitives import signed_varint
from tests.support.twins import twin

IN_PYTHON: Callable[[memoryview, int], int] = twin("wire.kafka.record_places").misplaced
BOTH = pytest.mark.parametrize("misplaced", [record_places.misplaced, IN_PYTHON], ids=["installed", "python"])


def record(offset_delta: int, value: bytes = b"x", timestamp_delta: int = 0) -> bytes:
    content = b"\0" + signed_varint(timestamp_delta) + signed_varint(offset_delta) + signed_varint(-1)
    content += signed_varint(len(value)) + value + signed_varint(0)
    return signed_varint(len(content)) + content


def body(*parts: bytes) -> memoryview:
    return memoryview(b"".join(parts))


@BOTH
@pytest.mark.parametrize("size", [0, 1, 50, 54, 55, 56, 57, 100, 8180, 8190, 8200, 20_000, 1_100_000])
def test_records_of_every_length_of_varint(misplaced: Callable[[memoryview, int], int], size: int) -> None:
    parts = [record(index, bytes(size), timestamp) for index, timestamp in enumerate((0, 63, 64, -(10**14), 10**14))]
    assert misplaced(body(*parts), 5) == -1


@BOTH
def test_many_records(misplaced: Callable[[memoryview, int], int]) -> None:
    assert misplaced(body(*(record(index) for index in range(20_000))), 20_000) == -1


@BOTH
@pytest.mark.parametrize(
    ("parts", "count", "expected"),
    [
        ([record(0), record(1)], 3, 2),  # one too few
        ([record(0), record(1), record(2)], 2, 2),  # one too many
        ([record(0), record(2)], 2, 1),  # a gap
        ([record(1)], 1, 0),
        ([record(-1)], 1, 0),
        ([record(0), b""], 2, 1),
        ([record(0), b"\x00"], 2, 1),  # a record of no bytes
        ([record(0), b"\x01"], 2, 1),
        ([record(0), b"\x03\x00"], 2, 1),  # a negative length
        ([record(0), b"\xff\xff\xff\xff\x0f"], 2, 1),
        ([record(0), b"\xff" * 12], 2, 1),  # a varint without an end
        ([b"\x0c\x00" + b"\xff" * 12], 1, 0),
        ([b"\x40\x00\x00" + b"\xff" * 40], 1, 0),
        ([b"\x0c\x00\x00\x00\x01\x01\x00"], 1, -1),  # null key and value, no headers
        ([b"\x0c\x00\x00\x00\x03\x01\x00"], 1, 0),  # a key of length -2
        ([b"\x0c\x00\x00\x00\x14\x01\x00"], 1, 0),  # a key that is longer than its record
        ([b"\x0c\x00\x00\x00\x01\x01\x02"], 1, 0),  # a header that is not there
        ([b"\x0c\x00\x00\x00\x01\x01\x01"], 1, 0),  # -1 headers
        ([b"\x0e\x00\x00\x00\x01\x01\x00\x00"], 1, 0),  # a byte behind the headers
        ([b"\x10\x00\x00\x00\x01\x01\x02\x00\x01"], 1, -1),  # a header with an empty name and no value
        ([], 1, 0),
        ([record(0)], 2**31 - 1, 1),
    ],
)
def test_what_is_not_in_its_place(
    misplaced: Callable[[memoryview, int], int], parts: list[bytes], count: int, expected: int
) -> None:
    assert misplaced(body(*parts), count) == expected


@BOTH
def test_every_cut_is_noticed(misplaced: Callable[[memoryview, int], int]) -> None:
    whole = body(*(record(index, bytes(index * 40)) for index in range(5)))
    assert [cut for cut in range(len(whole)) if misplaced(whole[:cut], 5) == -1] == []


@given(st.binary(max_size=60), st.integers(0, 6))
@settings(derandomize=True, max_examples=400, deadline=None)
def test_both_agree_on_any_bytes(data: bytes, count: int) -> None:
    assert record_places.misplaced(memoryview(data), count) == IN_PYTHON(memoryview(data), count)


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=5), st.integers(0, 400), st.integers(0, 255))
@settings(derandomize=True, max_examples=400, deadline=None)
def test_both_agree_on_damaged_batches(values: list[bytes], position: int, byte: int) -> None:
    batch = records.build_batch(
        Record(offset=0, timestamp_ms=0, key=None, value=value, headers=(("h", b"1"),)) for value in values
    )
    data = bytearray(batch[HEADER_BYTES:])
    assert record_places.misplaced(memoryview(data), len(values)) == -1
    data[position % len(data)] = byte
    assert record_places.misplaced(memoryview(data), len(values)) == IN_PYTHON(memoryview(data), len(values))
