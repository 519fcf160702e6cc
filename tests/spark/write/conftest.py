"""What the tests of the sink share: a server that can be killed, and looking at what is in a topic."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from millstream.spark.write.options import WriteOptions
from tests.support.server_process import ServerProcess, lasting_listener, serving

_POLL_S = 30
ReadTopic = dict[int, list[Any]]
"""Messages by partition."""


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server for one test, which may kill it."""
    data_dir = str(tmp_path_factory.mktemp("sink") / "data")
    with serving(data_dir, lasting_listener()) as server:
        yield server


def options_for(server: str, **options: object) -> WriteOptions:
    """Options of the sink; dots in names are written as _."""
    given = {name.replace("_", "."): str(value) for name, value in options.items()}
    return WriteOptions.of({"kafka.bootstrap.servers": server, **given})


def messages(server: str, topic: str, *, committed: bool = True) -> ReadTopic:
    """All messages of a topic that there are now, as confluent-kafka reads them."""
    consumer = Consumer(
        {
            "bootstrap.servers": server,
            "group.id": "looks",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "log_level": 0,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=_POLL_S).topics[topic].partitions
        found: ReadTopic = {index: [] for index in partitions}
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in partitions])
        open_partitions = set(partitions)
        while open_partitions:
            message = consumer.poll(_POLL_S)
            assert message is not None, "the broker sends nothing"
            if message.error() is None:
                found[message.partition()].append(message)
            else:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                open_partitions.discard(message.partition())
        return found
    finally:
        consumer.close()


def values(server: str, topic: str, *, committed: bool = True) -> list[bytes]:
    """The values of all messages of a topic, sorted."""
    found = messages(server, topic, committed=committed)
    return sorted(message.value() for each in found.values() for message in each)
