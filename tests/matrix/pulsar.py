"""The C++ client of Apache Pulsar, through its Python binding."""

import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pulsar

from tests.matrix.message import Message

__all__ = ["Pulsar"]

TIMEOUT_MS: Final = 20_000


class Pulsar:
    """A Pulsar client.

    Args:
        address: HOST:PORT of the server.
    """

    def __init__(self, address: str) -> None:
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        self.client: Any = pulsar.Client(f"pulsar://{address}", logger=logger, operation_timeout_seconds=15)

    def write(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        batch: int = 0,
        compression: Any = pulsar.CompressionType.NONE,
        partitions: int = 1,
    ) -> None:
        """Write messages to their partitions, one by one, or in batches of so many."""
        for partition in sorted({one.partition for one in messages}):
            producer = self.client.create_producer(
                _name(topic, partition, partitions),
                batching_enabled=batch > 0,
                batching_max_messages=max(batch, 2),
                batching_max_publish_delay_ms=1000,
                compression_type=compression,
                block_if_queue_full=True,
            )
            _send(producer, [one for one in messages if one.partition == partition])
            producer.close()

    def read(self, topics: dict[str, int], partitions: int) -> dict[str, list[Message]]:
        """Read topics from beginning to end."""
        return {topic: self._taken(topic, range(partitions), partitions, count) for topic, count in topics.items()}

    def _taken(self, topic: str, wanted: Iterable[int], partitions: int, count: int) -> list[Message]:
        found: list[Message] = []
        for partition in wanted:
            reader = self.client.create_reader(_name(topic, partition, partitions), pulsar.MessageId.earliest)
            while len(found) < count and reader.has_message_available():
                found.append(message_of(reader.read_next(TIMEOUT_MS), partition))
            reader.close()
        assert len(found) == count, topic
        return found

    def close(self) -> None:
        """End the connection."""
        self.client.close()


def _name(topic: str, partition: int, partitions: int) -> str:
    return topic if partitions == 1 else f"{topic}-partition-{partition}"


def _send(producer: Any, messages: list[Message]) -> None:
    done = threading.Semaphore(0)
    failures: list[Any] = []

    def note(result: Any, _: Any) -> None:
        if result != pulsar.Result.Ok:
            failures.append(result)
        done.release()

    for one in messages:
        producer.send_async(
            one.value,
            note,
            properties={name: (value or b"").decode() for name, value in one.headers} or None,
            partition_key=None if one.key is None else one.key.decode(),
            event_timestamp=None if one.time_us is None else one.time_us // 1000,
            **one.more,
        )
    producer.flush()
    for _ in messages:
        assert done.acquire(timeout=TIMEOUT_MS / 1000)
    assert failures == []


def message_of(found: Any, partition: int = 0) -> Message:
    """A message as the client gives it; a key that is not there is empty to it."""
    message_id = found.message_id()
    key = found.partition_key()
    return Message(
        value=None if found.has_null_value() else found.data(),
        key=key.encode() if key else None,
        headers=tuple((name, value.encode()) for name, value in found.properties().items()),
        time_us=(found.event_timestamp() or found.publish_timestamp()) * 1000,
        more={"ordering_key": found.ordering_key(), "published": str(found.publish_timestamp())},
        partition=partition,
        offset=message_id.entry_id() + max(message_id.batch_index(), 0),
    )
