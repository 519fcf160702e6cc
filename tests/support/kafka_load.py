"""Steady load from a real Kafka client, with everything that it was told, and reading all of it back."""

import threading
import time
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.history import History, Read, Sent

__all__ = ["Load", "create_topic", "read_topic"]

_SETTLE_S: Final = 30.0
_FAST_RETRIES: Final[dict[str, Any]] = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "linger.ms": 2,
    "log_level": 0,
}


def create_topic(bootstrap: str, name: str, partitions: int, config: dict[str, str]) -> None:
    """Create a topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic(name, partitions, 1, config=config)]).values():
        made.result(timeout=_SETTLE_S)


class Load:
    """One producer that sends numbered values to a topic until it is told to stop.

    Args:
        bootstrap: the server; it may go away and come back.
        topic: where to.
        partitions: of the topic; values go to each in turn.
        history: what is sent and answered is written there.
        rate: values in a second, about.
        settings: of the client.
    """

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, history: History, rate: int, settings: dict[str, Any]
    ) -> None:
        self.errors: list[KafkaError] = []
        self._topic = topic
        self._partitions = partitions
        self._sends = history.sends[topic]
        self._pause_s = 0.01
        self._burst = max(rate // 100, 1)
        self._stop = threading.Event()
        self._producer = Producer({"bootstrap.servers": bootstrap, **_FAST_RETRIES, **settings})
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def finish(self) -> int:
        """Stop sending, and wait for the answers that are due; returns how many did not come."""
        self._stop.set()
        self._thread.join()
        left: int = self._producer.flush(_SETTLE_S)
        return left

    def _run(self) -> None:
        while not self._stop.is_set():
            for _ in range(self._burst):
                self._send(Sent(len(self._sends), len(self._sends) % self._partitions))
            self._producer.poll(0)
            time.sleep(self._pause_s)

    def _send(self, sent: Sent) -> None:
        def answered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.errors.append(error)
            else:
                sent.offset = message.offset()

        self._sends.append(sent)
        value = b"%d " % sent.value + b"." * (sent.value % 400)
        while True:
            try:
                self._producer.produce(self._topic, value, partition=sent.partition, on_delivery=answered)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return


def read_topic(bootstrap: str, topic: str, partitions: int, history: History, consumer: str) -> list[int]:
    """Read all of a topic with a consumer of its own; returns where each partition ends."""
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": consumer, "enable.auto.commit": False})
    try:
        ends = [
            client.get_watermark_offsets(TopicPartition(topic, n), timeout=_SETTLE_S)[1] for n in range(partitions)
        ]
        client.assign([TopicPartition(topic, n, 0) for n in range(partitions)])
        left = {n for n, end in enumerate(ends) if end > 0}
        deadline = time.monotonic() + _SETTLE_S
        while left:
            assert time.monotonic() < deadline, f"partitions {left} of {topic} end before {ends}"
            for message in client.consume(1000, timeout=0.2):
                assert message.error() is None, message.error()
                read = Read(message.partition(), message.offset(), int(message.value().split()[0]))
                history.polls[consumer].append(read)
                if read.offset + 1 >= ends[read.partition]:
                    left.discard(read.partition)
        return ends
    finally:
        client.close()
