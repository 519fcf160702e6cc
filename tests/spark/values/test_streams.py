"""Decoding streams: good rows and bad ones each once, whatever happens between them."""

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from millstream.spark.errors import BadOption
from millstream.spark.values import Decoded, decode, land
from tests.spark.conftest import Topics
from tests.support.sample_records import Sample
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.timeout(400)

_TIMEOUT_S = 200


class _Crash(Exception):
    """Stands for whatever ends a driver between two writes."""


@pytest.fixture
def topic(topics: Topics) -> str:
    """Fifty values, every tenth of which is no JSON."""
    name = topics.create("values")
    values = [b"nope" if n % 10 == 0 else b'{"id": %d}' % n for n in range(50)]
    topics.write(name, [Sample(None, value, (), 1_700_000_000_000) for value in values])
    return name


def _stream(spark: Any, broker: ServerProcess, topic: str) -> Any:
    options = {"kafka.bootstrap.servers": broker.kafka, "subscribe": topic, "startingOffsets": "earliest"}
    return spark.readStream.format("millstream").options(**options, maxOffsetsPerTrigger="30").load()


def _ids(rows: Any) -> Decoded:
    good, bad = decode(rows, format="json", schema="id INT")
    return Decoded(good.select("value.id", "offset"), bad)


def _run(writer: Any, checkpoint: str) -> None:
    for _ in range(3):
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(_TIMEOUT_S)
            return
        except StreamingQueryException as error:
            # Spark gives the process of a source 10 s to start, which is little where much else runs.
            if "Python worker failed to connect back" not in str(error):
                raise
        finally:
            query.stop()
    raise AssertionError("this machine is too busy")


def _table(spark: Any, path: str) -> Any:
    return spark.read.format("millstream-table").load(path)


def _check(spark: Any, good: str, bad: str) -> None:
    assert sorted(row.id for row in _table(spark, good).collect()) == [n for n in range(50) if n % 10]
    rows = _table(spark, bad).orderBy("offset").collect()
    assert [row.offset for row in rows] == [0, 10, 20, 30, 40]
    assert {(row.column, row.reason, bytes(row.raw)) for row in rows} == {("value", "it is no JSON object", b"nope")}


def test_a_micro_batch_lands_once(spark: Any, broker: ServerProcess, topic: str, tmp_path: Path) -> None:
    good, bad, checkpoint = (os.fspath(tmp_path / name) for name in ("good", "bad", "checkpoint"))
    write = land(_ids, good={"path": good, "tableFormat": "delta"}, bad={"path": bad})
    stream = _stream(spark, broker, topic).writeStream
    crashes = [0, 1]

    def crashing(batch: Any, number: int) -> None:
        """Die after the quarantine is written in the first micro-batch, and after all is in the second."""
        if number in crashes:
            crashes.remove(number)
            if number == 0:
                land(_fails_in_good, good={"path": good, "tableFormat": "delta"}, bad={"path": bad})(batch, number)
            write(batch, number)
            raise _Crash
        write(batch, number)

    for _ in range(2):
        with pytest.raises(Exception, match=r"_Crash|no such column|UNRESOLVED"):
            _run(stream.foreachBatch(crashing), checkpoint)
    _run(stream.foreachBatch(crashing), checkpoint)
    assert not crashes
    _check(spark, good, bad)


def _fails_in_good(rows: Any) -> Decoded:
    from pyspark.sql import functions as F

    good, bad = _ids(rows)
    return Decoded(good.withColumn("id", F.raise_error(F.lit("_Crash")).cast("int")), bad)


def test_two_queries(spark: Any, broker: ServerProcess, topic: str, tmp_path: Path) -> None:
    good, bad = os.fspath(tmp_path / "good"), os.fspath(tmp_path / "bad")
    for rows, path in zip(_ids(_stream(spark, broker, topic)), (good, bad), strict=True):
        _run(rows.writeStream.format("millstream-table").option("path", path), f"{path}.checkpoint")
    _check(spark, good, bad)


def test_good_rows_may_go_to_a_topic(
    spark: Any, broker: ServerProcess, topics: Topics, topic: str, tmp_path: Path
) -> None:
    to = topics.create("good")

    def decoding(rows: Any) -> Decoded:
        good, bad = _ids(rows)
        return Decoded(good.selectExpr("CAST(id AS STRING) AS value"), bad)

    sink = {"format": "millstream", "kafka.bootstrap.servers": broker.kafka, "topic": to}
    write = land(decoding, good=sink, bad={"path": os.fspath(tmp_path / "bad")}, application_id="orders")
    stream = _stream(spark, broker, topic).writeStream.foreachBatch(write)
    _run(stream, os.fspath(tmp_path / "checkpoint"))
    with pytest.raises(Exception, match=r"'orders-bad'.*the checkpoint is older than the table, or was reset"):
        _run(stream, os.fspath(tmp_path / "another checkpoint"))
    frame = spark.read.format("millstream").option("kafka.bootstrap.servers", broker.kafka).option("subscribe", to)
    assert sorted(int(row.value) for row in frame.load().collect()) == [n for n in range(50) if n % 10]


def test_options_that_are_set_by_itself() -> None:
    with pytest.raises(BadOption, match="batchId is for land"):
        land(_ids, good={"path": "x", "batchId": "1"}, bad={"path": "y"})
