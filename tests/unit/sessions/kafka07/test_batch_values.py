"""Kafka batches as messages: the compiled loop, its Python source and the reader of batches agree."""

import importlib.machinery
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.model.frame import HEADER_BYTES, read_frame_header
from millstream.model.record import Record
from millstream.sessions.kafka07 import batch_values, encoding
from millstream.sessions.kafka07.encoding import MessageSets
from millstream.wire.compression import Codec
from millstream.wire.kafka.records import build_batch
from millstream.wire.kafka07.frames import encode_records

LayOut = Callable[[memoryview, int, int, memoryview | None], int]
SOURCE = Path(encoding.__file__).with_name("batch_values.py")


def twin() -> ModuleType:
    """The module as Python runs it, even where the compiled one comes first."""
    loader = importlib.machinery.SourceFileLoader("batch_values_twin", str(SOURCE))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


IN_PYTHON: LayOut = twin().lay_out
BOTH = pytest.mark.parametrize("lay_out", [batch_values.lay_out, IN_PYTHON], ids=["installed", "python"])

maybe_bytes = st.none() | st.binary(max_size=200)
records = st.lists(
    st.builds(
        Record,
        offset=st.just(0),
        timestamp_ms=st.integers(-(2**62), 2**62),
        key=maybe_bytes,
        value=maybe_bytes,
        headers=st.lists(st.tuples(st.text(max_size=5), maybe_bytes), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(records, st.sampled_from([Codec.NONE, Codec.GZIP, Codec.ZSTD]), st.sampled_from([0, 1]))
def test_batches(records: list[Record], codec: Codec, magic: int) -> None:
    first = records[0].timestamp_ms
    batch = build_batch([record for record in records if abs(record.timestamp_ms - first) < 2**62], codec=codec)
    kept = [record for record in records if abs(record.timestamp_ms - first) < 2**62]
    expected = encode_records(kept, magic)
    sets, frame, header = MessageSets(magic), memoryview(batch), read_frame_header(batch)
    assert sets.size(frame, header, magic) == len(expected)
    assert bytes(sets.encode(frame, header, magic)) == expected


@settings(max_examples=500, derandomize=True, deadline=None, database=None)
@given(st.binary(max_size=80), st.integers(1, 4))
def test_any_bytes(body: bytes, count: int) -> None:
    sizes = {one(memoryview(body), count, 0, None) for one in (batch_values.lay_out, IN_PYTHON)}
    assert len(sizes) == 1


@BOTH
def test_lengths_that_do_not_fit(lay_out: LayOut) -> None:
    good = bytes(build_batch([Record(offset=0, timestamp_ms=0, key=b"k", value=b"value")])[HEADER_BYTES:])
    assert lay_out(memoryview(good), 1, 0, None) == 14
    assert lay_out(memoryview(good), 2, 0, None) == -1
    for size in range(len(good)):
        assert lay_out(memoryview(good[:size]), 1, 0, None) == -1
    for hostile in (b"\xff" * 12, b"\xfe" + b"\xff" * 8 + b"\x01", b"\xfe\xff\xff\xff\x0f"):
        assert lay_out(memoryview(hostile + good), 1, 0, None) == -1
        assert lay_out(memoryview(good[:4] + hostile + good), 1, 0, None) == -1


def test_control_batches_are_nobody_s_to_read() -> None:
    batch = build_batch([Record(offset=0, timestamp_ms=0, key=b"k", value=b"v")])
    header = read_frame_header(batch)._replace(attributes=0x20)
    sets = MessageSets(0)
    assert sets.size(memoryview(batch), header, 0) == 0
    assert bytes(sets.encode(memoryview(batch), header, 0)) == b""
