"""Plain streaming queries run together: drained, stopped, failed, gone on with."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from millstream.spark.errors import PipelineError
from millstream.spark.pipelines.queries import run_queries
from millstream.spark.pipelines.stopping import StopWish
from tests.spark.conftest import Topics
from tests.support.server_process import ServerProcess


@pytest.fixture
def writer(spark: Any, broker: ServerProcess, tmp_path: Path) -> Any:
    """Makes a writer from a topic to a Parquet directory of the query's name."""

    def make(name: str, topic: str, **options: str) -> Any:
        stream = spark.readStream.format("millstream").option("kafka.bootstrap.servers", broker.kafka)
        frame = stream.option("subscribe", topic).option("startingOffsets", "earliest").options(**options).load()
        kept = frame.select("offset", "partition", "value").writeStream.queryName(name).format("parquet")
        return kept.option("path", str(tmp_path / name)).option("checkpointLocation", str(tmp_path / f"{name}.state"))

    return make


def test_queries_end_when_drained_and_go_on_where_they_ended(
    spark: Any, topics: Topics, writer: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = topics.create("plain", 2)
    topics.write_numbers(topic, range(50), 0)
    topics.write_numbers(topic, range(50, 80), 1)
    one, other = run_queries(
        [writer("one", topic, maxOffsetsPerTrigger="30"), writer("other", topic)], until_drained=True
    )
    assert (one.name, one.is_drained, one.rows) == ("one", True, 80)
    assert one.batches >= 3
    assert (other.is_drained, other.batches, other.rows) == (True, 1, 80)
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert sum(int(line[3]) for line in lines if line[:2] == ["batch", "one"]) == 80
    assert [line[6] for line in lines if line[:2] == ["batch", "one"]][-1] == "0"
    topics.write_numbers(topic, range(80, 90), 0)
    [one] = run_queries([writer("one", topic)], until_drained=True, shows_progress=False)
    assert (one.batches, one.rows) == (1, 10)
    assert capsys.readouterr().out == ""
    values = [int(row.value) for row in spark.read.parquet(str(tmp_path / "one")).collect()]
    assert sorted(values) == list(range(90))


def test_queries_run_until_they_are_stopped_at_the_end_of_a_batch(
    spark: Any, topics: Topics, writer: Any, tmp_path: Path
) -> None:
    topic = topics.create("plain")
    topics.write_numbers(topic, range(100))
    stop, state = StopWish(), tmp_path / "until.state"

    def stop_after_a_batch() -> None:
        while not (state / "commits" / "0").exists():
            time.sleep(0.1)
        stop.wish()

    stopper = threading.Thread(target=stop_after_a_batch, daemon=True)
    stopper.start()
    [end] = run_queries([writer("until", topic)], interval_s=0.2, shows_progress=False, stop=stop)
    stopper.join()
    assert (end.is_drained, end.rows) == (False, 100)
    done = {path.name for path in (state / "commits").iterdir() if path.name.isdecimal()}
    assert done == {path.name for path in (state / "offsets").iterdir() if path.name.isdecimal()} == {"0"}
    assert spark.read.parquet(str(tmp_path / "until")).count() == 100
    assert not spark.streams.active


def test_one_that_fails_stops_the_others_and_is_named(spark: Any, topics: Topics, writer: Any) -> None:
    topic = topics.create("plain")
    topics.write_numbers(topic, range(10))
    broken = spark.readStream.format("rate").load().selectExpr("raise_error('it broke') AS x")
    sink = broken.writeStream.format("noop").queryName("broken")
    with pytest.raises(PipelineError, match=r"the query broken failed: .*it broke"):
        run_queries([writer("sound", topic), sink], shows_progress=False)
    assert not spark.streams.active


def test_one_that_does_not_start_stops_the_others(spark: Any, topics: Topics, writer: Any, tmp_path: Path) -> None:
    topic = topics.create("plain")
    again = writer("twice", topic)
    with pytest.raises(PipelineError, match=r"a query does not start: .*twice"):
        run_queries([writer("twice", topic), again], shows_progress=False)
    assert not spark.streams.active
    with pytest.raises(PipelineError, match="there are no queries to run"):
        run_queries([])
