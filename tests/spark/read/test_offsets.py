"""Which offsets are read, without Spark."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.spark.errors import BadOption, DataLost
from millstream.spark.read.offsets import from_json, limited, report_loss, split, to_json
from millstream.spark.read.points import Offsets
from millstream.spark.read.selection import Selection


def test_a_checkpoint_is_written_in_order() -> None:
    offsets = {"b": {10: 1, 9: 2}, "a": {0: 3}}
    assert json.dumps(to_json(offsets)) == '{"a": {"0": 3}, "b": {"9": 2, "10": 1}}'
    assert from_json(to_json(offsets), Selection(option="subscribe", names=("a", "b"))) == offsets


def test_the_checkpoint_of_another_query() -> None:
    with pytest.raises(BadOption, match="the checkpoint is of a query over b, which the option subscribe"):
        from_json({"b": {"0": 1}}, Selection(option="subscribe", names=("a",)))
    with pytest.raises(BadOption, match="a query over partition 1 of a, which the option assign does not"):
        from_json({"a": {"0": 1, "1": 1}}, Selection(option="assign", names=("a",), partitions={"a": (0,)}))
    with pytest.raises(BadOption, match="a query over b, which the option subscribePattern does not"):
        from_json({"b": {"0": 1}}, Selection(option="subscribePattern", pattern="a+"))


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


@given(
    st.lists(st.integers(1, 1000), min_size=1, max_size=8),
    st.one_of(st.none(), st.integers(1, 40)),
    st.integers(1, 300),
)
def test_no_task_has_more_than_it_may(sizes: list[int], least: int | None, most: int) -> None:
    counts = split(sizes, least, most)
    assert all(size / count <= most for count, size in zip(counts, sizes, strict=True))
    assert sum(counts) >= min(least or 0, sum(sizes))
