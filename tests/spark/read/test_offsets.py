"""Which offsets are read, without Spark."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.spark.errors import BadOption, DataLost
from millstream.spark.read.offsets import Offsets, from_json, limited, report_loss, resolved, split, to_json


def test_a_checkpoint_is_written_in_order() -> None:
    offsets = {"b": {10: 1, 9: 2}, "a": {0: 3}}
    assert json.dumps(to_json(offsets)) == '{"a": {"0": 3}, "b": {"9": 2, "10": 1}}'
    assert from_json(to_json(offsets), ("a", "b")) == offsets


def test_the_checkpoint_of_another_query() -> None:
    with pytest.raises(BadOption, match="the checkpoint is of a query over b, which the option subscribe"):
        from_json({"b": {"0": 1}}, ("a",))


def test_an_option_by_partition() -> None:
    earliest, latest = {"a": {0: 5, 1: 5, 2: 5}}, {"a": {0: 9, 1: 9, 2: 9}}
    assert resolved("startingOffsets", {"a": {0: 7, 1: -2, 2: -1}}, earliest, latest, fails=True) == {
        "a": {0: 7, 1: 5, 2: 9}
    }
    with pytest.raises(DataLost, match="startingOffsets: topic 'a' partition 0 holds the offsets 5 to 8, 10"):
        resolved("startingOffsets", {"a": {0: 10, 1: 5, 2: 5}}, earliest, latest, fails=True)
    assert resolved("startingOffsets", {"a": {0: 10, 1: 1, 2: 5}}, earliest, latest, fails=False) == {
        "a": {0: 9, 1: 5, 2: 5}
    }


def test_a_loss_names_what_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLost, match=r"topic 'a' partition 3 has lost the offsets 5 to 8 .*failOnDataLoss=false"):
        report_loss("a", 3, 5, 9, fails=True)
    report_loss("a", 3, 5, 9, fails=False)
    assert "topic 'a' partition 3 has lost the offsets 5 to 8" in caplog.text


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=8), st.integers(1, 3000))
def test_a_limit_is_used_up_and_never_exceeded(parts: list[tuple[int, int]], most: int) -> None:
    start: Offsets = {"a": {n: first for n, (first, _) in enumerate(parts)}}
    end: Offsets = {"a": {n: first + size for n, (first, size) in enumerate(parts)}}
    until = limited(start, end, most)
    sizes = [until["a"][n] - start["a"][n] for n in start["a"]]
    assert sum(sizes) == min(most, sum(size for _, size in parts))
    assert all(0 <= got <= size for got, (_, size) in zip(sizes, parts, strict=True))


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8), st.integers(1, 40))
def test_enough_tasks_and_none_empty(sizes: list[int], least: int) -> None:
    counts = split(sizes, least)
    assert all(1 <= count <= size for count, size in zip(counts, sizes, strict=True))
    assert sum(counts) >= min(least, sum(sizes))
    assert split(sizes, None) == [1] * len(sizes)
