"""Topics as streams: nothing is lost or read twice, over restarts and limits."""

import json
import os
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions

from tests.spark.conftest import Topics
from tests.support.server_process import ServerProcess

_TIMEOUT_S = 60


class Query:
    """A streaming query over a topic that writes numbers to a Parquet table until it has read all there is.

    Args:
        spark: the session.
        servers, topic: what to read.
        path: where the table and the checkpoint are.
    """

    def __init__(self, spark: Any, servers: str, topic: str, path: str) -> None:
        self._spark = spark
        self.topic = topic
        self._table = os.path.join(path, "table")
        self.checkpoint = os.path.join(path, "checkpoint")
        self._options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}

    def run(self, **options: Any) -> list[int]:
        """Run until drained; returns the records of each micro-batch."""
        stream = self._spark.readStream.format("millstream").options(**{**self._options, **options}).load()
        started = (
            stream.selectExpr("CAST(value AS string) AS number", "topic", "partition")
            .writeStream.format("parquet")
            .option("path", self._table)
            .option("checkpointLocation", self.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert started.awaitTermination(_TIMEOUT_S), "the query does not end"
        finally:
            started.stop()
        return [progress["numInputRows"] for progress in started.recentProgress if progress["numInputRows"]]

    def numbers(self) -> list[int]:
        """All that was written, in order."""
        return sorted(int(row.number) for row in self._spark.read.parquet(self._table).collect())

    def last_offsets(self) -> Any:
        """The offsets of the last micro-batch, as the checkpoint has them."""
        directory = os.path.join(self.checkpoint, "offsets")
        last = max((name for name in os.listdir(directory) if name.isdecimal()), key=int)
        with open(os.path.join(directory, last)) as file:
            return json.loads(file.read().splitlines()[-1])


@pytest.fixture
def query(spark: Any, broker: ServerProcess, topics: Topics, tmp_path_factory: pytest.TempPathFactory) -> Query:
    topic = topics.create("stream", partitions=2)
    return Query(spark, broker.kafka, topic, str(tmp_path_factory.mktemp("query")))


def test_a_stream_goes_on_where_it_was(query: Query, topics: Topics) -> None:
    topic = query.topic
    topics.write_numbers(topic, range(1000))
    topics.write_numbers(topic, range(1000, 1100), partition=1)
    batches = query.run(maxOffsetsPerTrigger=400)
    assert query.numbers() == list(range(1100))
    assert sum(batches) == 1100
    assert max(batches) <= 400, "the limit holds with availableNow too"
    assert query.last_offsets() == {topic: {"0": 1000, "1": 100}}

    topics.write_numbers(topic, range(1100, 1500))
    assert sum(query.run(direct="never")) == 400
    assert query.numbers() == list(range(1500))
    assert query.run() == [], "there is nothing new"


def test_records_deleted_while_a_stream_was_down(query: Query, topics: Topics) -> None:
    topic = query.topic
    topics.write_numbers(topic, range(100))
    query.run()
    topics.write_numbers(topic, range(100, 200))
    topics.delete_before(topic, 150)
    with pytest.raises(Exception, match=r"has lost the offsets 100 to 149 .*failOnDataLoss=false"):
        query.run()
    query.run(failOnDataLoss=False)
    assert query.numbers() == [*range(100), *range(150, 200)]


def test_a_checkpoint_of_another_topic(query: Query, topics: Topics) -> None:
    topic = query.topic
    topics.write_numbers(topic, range(10))
    query.run()
    other = topics.create("other")
    topics.write_numbers(other, range(10))
    with pytest.raises(Exception, match=r"the checkpoint is of a query over stream-.*checkpointLocation of its own"):
        query.run(subscribe=other)


def test_partitions_that_a_topic_gets_later_are_read_from_their_start(query: Query, topics: Topics) -> None:
    topics.write_numbers(query.topic, range(10))
    query.run()
    for done in topics.admin.create_partitions([NewPartitions(query.topic, 3)]).values():
        done.result(timeout=30)
    topics.write_numbers(query.topic, range(10, 20), partition=2)
    query.run()
    assert query.numbers() == list(range(20))
    assert query.last_offsets() == {query.topic: {"0": 10, "1": 0, "2": 10}}
