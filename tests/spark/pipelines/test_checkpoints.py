"""Positions out of Spark's checkpoints, and the rows between them."""

import os
from pathlib import Path

import pytest

from millstream.spark.pipelines.checkpoints import read_checkpoints, rows_between, topics_in

_HEAD = 'v1\n{"batchWatermarkMs":0}\n'


def batch(checkpoint: Path, number: int, *sources: str, done: bool = True) -> None:
    for kind in ("offsets", "commits"):
        (checkpoint / kind).mkdir(parents=True, exist_ok=True)
    (checkpoint / "metadata").write_text('{"id":"x"}')
    (checkpoint / "offsets" / str(number)).write_text(_HEAD + "\n".join(sources))
    (checkpoint / "offsets" / f".{number}.crc").write_text("")
    if done:
        (checkpoint / "commits" / str(number)).write_text("v1\n{}")
        os.utime(checkpoint / "commits" / str(number), (1_700_000_000, 1_700_000_000 + number))


def test_the_last_finished_batch_of_the_last_version_counts(tmp_path: Path) -> None:
    flow = tmp_path / "_checkpoints" / "spark_catalog" / "default" / "t" / "f"
    batch(flow / "0", 7, '{"x": {"0": 99}}')
    batch(flow / "1", 0, '{"x": {"0": 1, "1": 2}}', '{"y": {"0": 5}}')
    batch(flow / "1", 1, '{"x": {"0": 10, "1": 20}}', '{"y": {"0": 50}}')
    batch(flow / "1", 2, '{"x": {"0": 11, "1": 21}}', '{"y": {"0": 51}}', done=False)
    batch(tmp_path / "_checkpoints" / "sink" / "g" / "0", 3, '{"offset":10,"timestamp":1000}')
    sink, table = read_checkpoints(str(tmp_path))
    assert (sink.target, sink.flow, sink.batch, sink.position, sink.is_open) == ("sink", "g", 3, {}, False)
    assert (table.target, table.flow, table.batch) == ("spark_catalog.default.t", "f", 1)
    assert table.position == {"x": {0: 10, 1: 20}, "y": {0: 50}}
    assert table.is_open
    assert table.finished == 1_700_000_001


def test_a_flow_that_has_not_finished_a_batch(tmp_path: Path) -> None:
    batch(tmp_path / "_checkpoints" / "s" / "f" / "0", 0, '{"x": {"0": 1}}', done=False)
    [one] = read_checkpoints(str(tmp_path))
    assert (one.batch, one.position, one.finished, one.is_open) == (None, {}, None, True)


def test_no_checkpoints(tmp_path: Path) -> None:
    assert read_checkpoints(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("offsets", "topics"),
    [
        ('{"x": {"0": 1}}', {"x": {0: 1}}),
        ({"x": {"0": 1}}, {"x": {0: 1}}),
        ('{"offset": 1}', {}),
        ('{"x": {"a": 1}}', {}),
        ('{"x": {"0": "1"}}', {}),
        ("-", {}),
        ("7", {}),
        (None, {}),
    ],
)
def test_offsets_of_other_sources_are_no_offsets_of_topics(offsets: object, topics: object) -> None:
    assert topics_in(offsets) == topics


def test_rows_between_positions() -> None:
    assert rows_between({"x": {0: 5}}, {"x": {0: 7, 1: 3}}) == 5
    assert rows_between({"x": {0: 5}}, {"x": {0: 2}}) == 0
    assert rows_between({}, {"x": {0: 2}}) == 2
