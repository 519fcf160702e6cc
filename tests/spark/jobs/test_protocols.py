"""Records that clients of all four protocols have written, archived and replayed: all of them read them as before."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millstream.spark.jobs import archive, replay
from tests.matrix.iggy import Iggy
from tests.matrix.kafka07 import Kafka07
from tests.matrix.message import Message
from tests.matrix.pulsar import Pulsar
from tests.spark.conftest import Read, Topics
from tests.spark.jobs.conftest import Rows
from tests.support.sample_records import Sample
from tests.support.server_process import ServerProcess


@pytest.fixture(scope="module")
def pulsar_client(broker: ServerProcess) -> Iterator[Pulsar]:
    made = Pulsar(broker.kafka)
    yield made
    made.close()


@pytest.fixture(scope="module")
def iggy(broker: ServerProcess) -> Iterator[Iggy]:
    made = Iggy(broker.kafka)
    yield made
    made.close()


@pytest.fixture(scope="module")
def kafka07(broker: ServerProcess) -> Iterator[Kafka07]:
    made = Kafka07(broker.kafka)
    yield made
    made.close()


@pytest.mark.timeout(600)
def test_records_of_all_protocols(
    spark: Any, broker: ServerProcess, topics: Topics, held: Rows, read: Read, tmp_path: Path,
    pulsar_client: Pulsar, iggy: Iggy, kafka07: Kafka07,
) -> None:  # fmt: skip
    topic, again = topics.create("protocols"), topics.create("protocols-again")
    topics.write(
        topic, [Sample(b"k", b"kafka", (("h", b"1"), ("h", b"2")), 1_700_000_000_001), Sample(b"", None, (), 5)]
    )
    pulsar_client.write(
        topic,
        [Message(value=b"pulsar", key=b"p", headers=(("color", b"red"), ("n", b"")), time_us=1_700_000_000_777_000)],
        batch=2,
    )
    iggy.write(topic, [Message(value=b"iggy", headers=(("n", b"\x07"),), kinds={"n": "uint8"}, number=77)])
    kafka07.write(topic, [Message(value=b"old"), Message(value=b"")])

    table = os.fspath(tmp_path / "table")
    assert archive(spark, servers=broker.kafka, topics=[topic], path=table, checkpoint=f"{table}.job").rows == 6
    frame = spark.read.format("millstream-table").load(table)
    protocols = [row.protocol for row in frame.orderBy("offset").select("protocol").collect()]
    assert protocols == ["kafka", "kafka", "pulsar", "iggy", "kafka07", "kafka07"]
    told = "*, headers, protocol, codec, producerId, producerEpoch"
    direct, network = (
        read(topic, columns=told, direct=direct).orderBy("offset").collect() for direct in ("always", "never")
    )
    assert direct == network
    assert [row.protocol for row in network] == protocols
    assert [row.codec for row in network] == ["none", "none", None, None, None, None]
    replay(spark, path=table, servers=broker.kafka, checkpoint=f"{table}.again", topic=again)
    assert held.of(again) == held.of(topic)

    for client in (pulsar_client, iggy):
        found = client.read({topic: 6, again: 6}, 1)
        assert [_told(one) for one in found[again]] == [_told(one) for one in found[topic]]
    found = kafka07.read({topic: 6, again: 6}, 1)
    assert [one.value for one in found[again]] == [one.value for one in found[topic]]


def _told(one: Message) -> tuple[Any, ...]:
    return one.value, one.key, one.headers, one.kinds
