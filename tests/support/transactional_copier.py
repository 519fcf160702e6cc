"""Consume, transform, produce, with the offsets in the same transaction: what is to happen exactly once."""

import threading
from random import Random
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

__all__ = ["Copier"]

_TIMEOUT_S: Final = 20.0
_CLIENT: Final[dict[str, Any]] = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    # Without it librdkafka drops the only broker while it is down, and its send_offsets_to_transaction may then wait
    # for that broker for ever, whatever its time limit (librdkafka issues 5511 and 5456).
    "metadata.recovery.strategy": "none",
    "log_level": 0,
}


class Copier:
    """Copies a topic to another of as many partitions, in transactions of some records each, some of them aborted.

    What fails is begun again: from the last committed offsets, with new clients if need be.

    Args:
        bootstrap: the server; it may go away and come back.
        source, sink: the topics.
        name: of the group, and the transactional id.
        count: how many records are to be copied.
        random: decides what is aborted, and when the copier itself dies.
    """

    def __init__(self, bootstrap: str, source: str, sink: str, name: str, count: int, random: Random) -> None:
        self.commits = self.aborts = self.lives = 0
        self.failure: BaseException | None = None
        self._bootstrap = bootstrap
        self._source = source
        self._sink = sink
        self._name = name
        self._count = count
        self._random = random
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Copier":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(2 * _TIMEOUT_S)

    @property
    def is_done(self) -> bool:
        """Whether everything is copied, or nothing goes any more."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stop.is_set() and not self._live():
                pass
        except BaseException as error:  # noqa: BLE001 - raised again by the test
            self.failure = error

    def _live(self) -> bool:
        """One life, with clients of its own; whether there is nothing left to do."""
        self.lives += 1
        settings = {"bootstrap.servers": self._bootstrap, **_CLIENT}
        consumer: Any = Consumer(
            {
                **settings,
                "group.id": self._name,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 200,
            }
        )
        producer: Any = Producer({**settings, "transactional.id": self._name, "transaction.timeout.ms": 30_000})
        try:
            producer.init_transactions(_TIMEOUT_S)
            consumer.subscribe([self._source])
            while not self._stop.is_set():
                if self._is_all_committed(consumer):
                    return True
                if self._random.random() < 0.01 or not self._copy(consumer, producer):
                    return False
        except KafkaException:
            return False
        finally:
            consumer.close()
        return True

    def _is_all_committed(self, consumer: Any) -> bool:
        assignment = consumer.assignment()
        if not assignment:
            return False
        positions = consumer.committed(assignment, _TIMEOUT_S)
        return sum(max(int(one.offset), 0) for one in positions) >= self._count

    def _copy(self, consumer: Any, producer: Any) -> bool:
        """One transaction; whether the clients are good for another."""
        messages = [one for one in consumer.consume(self._random.randrange(1, 40), 0.1) if one.error() is None]
        if not messages:
            return True
        producer.begin_transaction()
        try:
            for message in messages:
                producer.produce(self._sink, message.value(), partition=message.partition())
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), _TIMEOUT_S
            )
            if self._random.random() < 0.2:
                producer.abort_transaction(_TIMEOUT_S)
                self.aborts += 1
                _rewind(consumer)
                return True
            producer.commit_transaction(_TIMEOUT_S)
            self.commits += 1
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if not reason.txn_requires_abort():
                return False
            producer.abort_transaction(_TIMEOUT_S)
            _rewind(consumer)
        return True


def _rewind(consumer: Any) -> None:
    """Go back to what was committed last."""
    for place in consumer.committed(consumer.assignment(), _TIMEOUT_S):
        consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))
