"""Rows become records with nothing lost, whatever is null, empty or large."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.model.frame import Attributes, read_frame_header
from millstream.spark.write.columns import rows_of
from millstream.wire.compression import Codec
from tests.spark.write.tables import NOW_MS, Content, content, maker, records_of, table

_BYTES = st.none() | st.binary(max_size=5) | st.binary(min_size=60, max_size=70) | st.just(b"x" * 9000)
_HEADERS = st.none() | st.lists(st.fixed_dictionaries({"key": st.text(max_size=3), "value": _BYTES}), max_size=3)
_MICROS = st.none() | st.integers(-(2**53), 2**53)
_ROWS = st.lists(st.tuples(_BYTES, _BYTES, _HEADERS, _MICROS, st.sampled_from("ab")), min_size=1, max_size=40)


def _content(row: tuple[Any, ...]) -> Content:
    key, value, headers, micros, _ = row
    pairs = tuple((header["key"], header["value"]) for header in headers or ())
    return key, value, pairs, NOW_MS if micros is None else micros // 1000


@settings(max_examples=150, deadline=None)
@given(rows=_ROWS, codec=st.sampled_from(list(Codec)), batch_bytes=st.sampled_from([1, 300, 100_000]), cut=st.data())
def test_rows_come_back(rows: list[tuple[Any, ...]], codec: Codec, batch_bytes: int, cut: st.DataObject) -> None:
    columns = list(zip(*rows, strict=True))
    names = ("key", "value", "headers", "timestamp", "topic")
    whole = table(**dict(zip(names, columns, strict=True)))
    begin = cut.draw(st.integers(0, len(rows) - 1))
    end = cut.draw(st.integers(begin + 1, len(rows)))
    part = whole.slice(begin, end - begin)

    made = maker(codec=codec, batch_bytes=batch_bytes)
    found = records_of(made.batches(rows_of(part, topic_is_given=False, now_ms=NOW_MS), None))

    for topic in "ab":
        expected = [_content(row) for row in rows[begin:end] if row[4] == topic]
        assert [content(record) for record in found.get((topic, 0), [])] == expected


@pytest.mark.parametrize("missing", ["key", "headers", "timestamp", "key headers timestamp"])
def test_columns_may_be_missing(missing: str) -> None:
    columns: dict[str, list[Any]] = {
        "key": [b"k"],
        "headers": [[{"key": "h", "value": b"1"}]],
        "timestamp": [5_000_000],
    }
    kept = {name: values for name, values in columns.items() if name not in missing.split()}
    rows = rows_of(table(value=[b"v"], **kept), topic_is_given=True, now_ms=NOW_MS)
    [record] = records_of(maker().batches(rows, "t"))["t", 0]
    assert record.value == b"v"
    assert record.key == (None if "key" in missing else b"k")
    assert record.headers == (() if "headers" in missing else (("h", b"1"),))
    assert record.timestamp_ms == (NOW_MS if "timestamp" in missing else 5000)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary()])
def test_text_of_every_arrow_type(kind: Any) -> None:
    batch = pa.record_batch({"key": pa.array(["k\u00e9", None], kind), "value": pa.array(["", "v"], kind)})
    rows = rows_of(batch, topic_is_given=True, now_ms=NOW_MS)
    found = records_of(maker().batches(rows, "t"))["t", 0]
    assert [(record.key, record.value) for record in found] == [("k\u00e9".encode(), b""), (None, b"v")]


def test_all_values_null() -> None:
    rows = rows_of(table(key=[None, None], value=[None, None]), topic_is_given=True, now_ms=NOW_MS)
    found = records_of(maker().batches(rows, "t"))["t", 0]
    assert [(record.key, record.value) for record in found] == [(None, None)] * 2


def test_header_values_that_are_text_and_what_stands_under_a_null() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
    headers = pa.array([[{"key": "a", "value": "1"}], [{"key": "b", "value": "2"}]], kind)
    # A null may have elements below it.
    hidden = pa.ListArray.from_arrays(headers.offsets, headers.values, mask=pa.array([True, False]))
    batch = pa.record_batch({"value": pa.array(["x", "y"]), "headers": hidden})
    found = records_of(maker().batches(rows_of(batch, topic_is_given=True, now_ms=0), "t"))["t", 0]
    assert [record.headers for record in found] == [(), (("b", b"2"),)]


def test_batches_are_of_a_transaction_and_numbered_on() -> None:
    made = maker(partitions=2, batch_bytes=100)
    rows = rows_of(table(value=[b"%03d" % n for n in range(100)]), topic_is_given=True, now_ms=NOW_MS)
    batches = [*made.batches(rows, "t"), *made.batches(rows, "t")]
    expected = {0: 0, 1: 0}
    for batch in batches:
        header = read_frame_header(batch.data)
        assert header.attributes & Attributes.TRANSACTIONAL
        assert (header.producer_id, header.producer_epoch) == (7, 3)
        assert header.base_sequence == expected[batch.partition]
        expected[batch.partition] += batch.record_count
        assert len(batch.data) < 200
    assert sum(expected.values()) == 200
    assert min(expected.values()) > 80, "rows without a key go to all partitions"


def test_a_large_record_has_a_batch_for_itself() -> None:
    values = [b"s", b"L" * 5000, b"s", b"s"]
    rows = rows_of(table(value=values), topic_is_given=True, now_ms=NOW_MS)
    counts = [batch.record_count for batch in maker(batch_bytes=1000).batches(rows, "t")]
    assert counts == [1, 1, 2]


def test_the_digest_is_the_same_for_the_same_rows_alone() -> None:
    def digest(values: list[bytes], partitions: int, now_ms: int = NOW_MS) -> int:
        made = maker(partitions)
        made.batches(rows_of(table(key=values, value=values), topic_is_given=True, now_ms=now_ms), "t")
        return made.digest

    values = [b"%d" % n for n in range(50)]
    assert digest(values, 3) == digest(values, 3, NOW_MS + 1)
    assert digest(values, 3) != digest(values[:-1], 3)
    assert digest(values, 3) != digest(values, 4)
    assert digest(values, 1) != digest([*values[:-1], b"x"], 1)
