"""How far queries are behind, as numbers, as metrics and as the position of a group."""

import time
from typing import Any

import pytest

from millstream.spark.client import Client
from millstream.spark.lag import Lag, LagListener, measure
from tests.spark.conftest import Topics
from tests.support.server_process import ServerProcess
from tests.support.waiting import eventually

_BASE_S = 1_700_000_000


def _position(server: ServerProcess, group: str, topic: str) -> int:
    with Client(server.kafka) as client:
        return client.committed(group, client.topics([topic]))[topic][0]


def test_records_bytes_and_seconds(broker: ServerProcess, topics: Topics) -> None:
    topic = topics.create("lag", partitions=3)
    topics.write_numbers(topic, range(1000), batch_num_messages=100)
    topics.write_numbers(topic, range(50), partition=1)
    with Client(broker.kafka) as client:
        sizes = client.sizes(client.topics([topic]))[topic]
        found = measure(client, {topic: {0: 400, 1: 50}, "not there": {0: 1}}, _BASE_S + 60.0)
        assert list(found) == [topic]
        assert found[topic].rows == 600
        assert found[topic].bytes == pytest.approx(sizes[0] * 0.6, rel=0.01)
        assert found[topic].seconds == pytest.approx(60 - 0.4, abs=0.2), "the first unread is 400 ms later"
        assert measure(client, {topic: {0: 1000, 1: 50}}, time.time()) == {topic: Lag(0, 0, 0.0)}
        topics.delete_before(topic, 500)
        assert measure(client, {topic: {0: 400, 1: 50}}, time.time())[topic].rows == 500, "what is gone is no lag"


def test_metrics_for_prometheus(broker: ServerProcess, topics: Topics) -> None:
    topic = topics.create("metrics")
    topics.write_numbers(topic, range(10))
    listener = LagListener(broker.kafka)
    assert "# TYPE millstream_spark_lag_records gauge\n#" in listener.metrics()
    listener.note('a "query"', {topic: {0: 4}})
    lines = listener.metrics().splitlines()
    assert f'millstream_spark_lag_records{{query="a \\"query\\"",topic="{topic}"}} 6' in lines
    assert any(line.startswith("millstream_spark_lag_seconds{") for line in lines)
    listener.close()


def test_a_broker_that_is_away_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    listener = LagListener("127.0.0.1:1", group="g")
    listener.note("query", {"topic": {0: 1}})
    assert listener.lag == {}
    assert "the lag of query query is not known: no Kafka broker answers at 127.0.0.1:1" in caplog.text


def test_a_query_that_runs(
    spark: Any, broker: ServerProcess, topics: Topics, tmp_path_factory: pytest.TempPathFactory
) -> None:
    topic = topics.create("watched")
    topics.write_numbers(topic, range(100))
    listener = LagListener(broker.kafka, group="watched-query", query="watched")
    spark.streams.addListener(listener)
    try:
        stream = spark.readStream.format("millstream").option("kafka.bootstrap.servers", broker.kafka)
        query = (
            stream.option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "60")
            .option("kafka.group.id", "watched-source")
            .load()
            .writeStream.format("noop")
            .queryName("watched")
            .option("checkpointLocation", str(tmp_path_factory.mktemp("watched")))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        eventually(lambda: listener.lag.get("watched", {}).get(topic) == Lag(0, 0, 0.0))
        # The last micro-batch counts too, whoever shows it.
        assert _position(broker, "watched-query", topic) == 100
        assert _position(broker, "watched-source", topic) == 100
        latest = [progress["sources"][0]["latestOffset"] for progress in query.recentProgress]
        assert latest[0] is not None
    finally:
        spark.streams.removeListener(listener)
        listener.close()
