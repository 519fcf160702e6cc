"""librdkafka, through its Python binding."""

import time
from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka import Message as Found
from confluent_kafka.admin import AdminClient, NewTopic

from tests.matrix.message import Message

__all__ = ["Kafka"]

TIMEOUT_S: Final = 20.0


class Kafka:
    """A client of today's Kafka.

    Args:
        address: HOST:PORT of the server.
    """

    def __init__(self, address: str) -> None:
        self._servers = {"bootstrap.servers": address, "log_level": 0}
        self.admin: Any = AdminClient(self._servers)

    def create(self, *topics: str, partitions: int = 1) -> None:
        """Make topics."""
        for made in self.admin.create_topics([NewTopic(topic, partitions) for topic in topics]).values():
            made.result(TIMEOUT_S)

    def write(self, topic: str, messages: Sequence[Message], **settings: Any) -> None:
        """Write messages to their partitions, in one batch for each if nothing else is said."""
        names = {name.replace("_", "."): value for name, value in settings.items()}
        producer = Producer({**self._servers, "linger.ms": 30, **names})
        for one in messages:
            times = {} if one.time_us is None else {"timestamp": one.time_us // 1000}
            producer.produce(
                topic, one.value, one.key, partition=one.partition, headers=list(one.headers) or None, **times
            )
        assert producer.flush(TIMEOUT_S) == 0

    def read(self, topics: dict[str, int], group: str = "matrix", **settings: Any) -> dict[str, list[Message]]:
        """Read topics from beginning to end.

        Args:
            topics: their names, and how many messages each has.
            group: the name of a group, which nobody joins.
            settings: of the client.
        """
        consumer = self._consumer(group, **settings)
        partitions = consumer.list_topics(timeout=TIMEOUT_S).topics
        consumer.assign([TopicPartition(name, index, 0) for name in topics for index in partitions[name].partitions])
        return _taken(consumer, topics)

    def read_from(self, topic: str, offset: int, count: int, partition: int = 0, **settings: Any) -> list[Message]:
        """Read some messages from an offset on."""
        consumer = self._consumer("matrix", **settings)
        consumer.assign([TopicPartition(topic, partition, offset)])
        return _taken(consumer, {topic: count})[topic][:count]

    def offset_for_time(self, topic: str, time_ms: int, partition: int = 0) -> int:
        """The offset from which on messages are as late as a time."""
        consumer = self._consumer("matrix")
        try:
            [found] = consumer.offsets_for_times([TopicPartition(topic, partition, time_ms)], TIMEOUT_S)
            return int(found.offset)
        finally:
            consumer.close()

    def _consumer(self, group: str, **settings: Any) -> Any:
        names = {name.replace("_", "."): value for name, value in settings.items()}
        fixed = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "error"}
        return Consumer({**self._servers, **fixed, "fetch.wait.max.ms": 20, **names})


def _taken(consumer: Any, topics: dict[str, int]) -> dict[str, list[Message]]:
    found: dict[str, list[Message]] = {topic: [] for topic in topics}
    left = sum(topics.values())
    deadline_s = time.monotonic() + TIMEOUT_S
    while left > 0:
        assert time.monotonic() < deadline_s, f"{left} messages did not come"
        for one in consumer.consume(500, 0.1):
            assert one.error() is None, one.error()
            found[one.topic()].append(_message(one))
            left -= 1
    consumer.close()
    return found


def _message(found: Found) -> Message:
    _, time_ms = found.timestamp()
    return Message(
        value=found.value(),
        key=found.key(),
        headers=tuple((name, value) for name, value in found.headers() or ()),
        time_us=time_ms * 1000,
        partition=found.partition(),
        offset=found.offset(),
    )
