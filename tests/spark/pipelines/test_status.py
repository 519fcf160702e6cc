"""The status of a pipeline out of its files and what a broker says, and the wish to stop: all without Spark."""

import json
import os
import signal
import time
from pathlib import Path

from millstream.spark.pipelines.latest import are_all_named, latest_offsets
from millstream.spark.pipelines.run_log import RunLog
from millstream.spark.pipelines.sources import SourceNotes
from millstream.spark.pipelines.spec import load_spec
from millstream.spark.pipelines.status import status_of
from millstream.spark.pipelines.stopping import StopWish
from tests.spark.conftest import Topics
from tests.support.server_process import ServerProcess

_NOBODY = "127.0.0.1:1"


def checkpoint(storage: Path, target: str, flow: str, position: dict[str, dict[str, int]]) -> None:
    directory = storage / "_checkpoints" / target / flow / "0"
    for kind, text in (("offsets", f"v1\n{{}}\n{json.dumps(position)}"), ("commits", "v1\n{}")):
        (directory / kind).mkdir(parents=True)
        (directory / kind / "3").write_text(text)
    (directory / "metadata").write_text("{}")


def test_the_lag_of_each_flow(topics: Topics, broker: ServerProcess, tmp_path: Path) -> None:
    one, other = topics.create("status", 2), topics.create("status")
    topics.write_numbers(one, range(10), 0)
    topics.write_numbers(one, range(5), 1)
    topics.write_numbers(other, range(7))
    (tmp_path / "spark-pipeline.yml").write_text("name: shop\nstorage: s\nlibraries: [{glob: {include: d/**}}]\n")
    spec = load_spec(str(tmp_path / "spark-pipeline.yml"))
    fresh = status_of(spec)
    assert (fresh.runs, fresh.flows, fresh.problems, fresh.is_running) == ((), (), (), False)
    checkpoint(tmp_path / "s", "table", "behind", {one: {"0": 4}})
    checkpoint(tmp_path / "s", "table", "done", {one: {"0": 10, "1": 5}, other: {"0": 7}})
    checkpoint(tmp_path / "s", "table", "gone", {"no-such-topic": {"0": 1}})
    checkpoint(tmp_path / "s", "table", "rate", {})
    with RunLog(spec.state_dir) as log:
        sources = [{"servers": broker.kafka, "subscribe": f"{one}, {other}"}, {"servers": _NOBODY, "subscribe": "x"}]
        log.started(sources, {"default.behind": "table"})
        log.progress("default.behind", 4, batch=3, rows_per_s=8, duration_s=0.5)
        running = status_of(spec)
        log.ended("stopped")
    assert (running.name, running.is_running, running.problems) == ("shop", True, ())
    assert [run.state for run in status_of(spec).runs] == ["stopped"]
    lags = {flow.checkpoint.flow: flow.lag for flow in running.flows}
    assert lags == {"behind": 11, "done": 0, "gone": None, "rate": None}
    [behind] = [flow for flow in running.flows if flow.checkpoint.flow == "behind"]
    assert (behind.rows_per_s, behind.duration_s) == (8, 0.5)


def test_the_ends_of_topics(topics: Topics, broker: ServerProcess) -> None:
    topic = topics.create("ends", 2)
    topics.write_numbers(topic, range(3), 1)
    for selection in (
        {"subscribe": topic},
        {"assign": json.dumps({topic: [0, 1]})},
        {"subscribePattern": f"{topic[:-1]}."},
    ):
        assert latest_offsets([{"servers": broker.kafka, **selection}], [topic]) == ({topic: {0: 0, 1: 3}}, [])
        assert are_all_named([selection]) is ("subscribePattern" not in selection)
    here, nowhere = {"servers": broker.kafka, "subscribe": topic}, {"servers": _NOBODY, "subscribe": topic}
    assert latest_offsets([here, nowhere], [topic]) == ({}, [])
    position, [problem] = latest_offsets([nowhere], [topic])
    assert position == {}
    assert _NOBODY in problem


def test_what_flows_read_is_seen_in_their_plans() -> None:
    import pyspark.sql.connect.proto as proto

    def read(**options: str) -> proto.Relation:
        relation = proto.Relation()
        relation.read.is_streaming = True
        relation.read.data_source.format = "millstream"
        relation.read.data_source.options.update({name.replace("_", "."): value for name, value in options.items()})
        return relation

    notes = SourceNotes()
    union = proto.Relation()
    union.set_op.left_input.CopyFrom(read(kafka_bootstrap_servers="h:1", Subscribe="a", startingOffsets="earliest"))
    union.set_op.right_input.filter.input.CopyFrom(read(kafka_bootstrap_servers="h:1", subscribe="b"))
    notes.note("both", union)
    notes.note("again", read(kafka_bootstrap_servers="h:1", subscribe="a", startingTimestamp="5"))
    notes.note("incomplete", read(subscribe="c"))
    assert notes.sources == [{"servers": "h:1", "subscribe": "a"}, {"servers": "h:1", "subscribe": "b"}]
    assert notes.latest == ["both"]


def test_the_first_signal_is_a_wish_and_the_second_does_not_wait() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopWish(batch_end_timeout_s=60) as stop:
        assert not stop.wait(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(5)
        assert (stop.is_wished, stop.is_due) == (True, False)
        os.kill(os.getpid(), signal.SIGINT)
        deadline_s = time.monotonic() + 5
        while not stop.is_due:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
    assert signal.getsignal(signal.SIGTERM) is before


def test_batches_are_not_waited_for_for_ever() -> None:
    stop = StopWish(batch_end_timeout_s=0.05)
    stop.wish()
    time.sleep(0.1)
    assert stop.is_due
