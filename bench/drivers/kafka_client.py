"""librdkafka, through confluent-kafka: what most applications in Python use."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from bench.drivers.driver import Endpoint
from bench.drivers.kafka_admin import create_topic, delete_topic
from bench.drivers.pacing import PacedSender
from bench.drivers.pipeline import DriverError
from bench.load import Budget, Load, Work

__all__ = ["KafkaClient"]

_TIMEOUT_SECONDS: Final = 20.0
_CALL_RECORDS: Final = 1_000
_LINGER_MS: Final = 5
_QUEUE_RECORDS: Final = 1_000_000
# The default of librdkafka and of Kafka's own consumer.
_FETCH_WAIT_MS: Final = 500
_DEFAULT_FETCHING: Final[Mapping[str, int]] = {}
# A throughput run must not wait: by default a client whose queue is full pauses for 1 s.
_EAGER_FETCHING: Final[Mapping[str, int]] = {
    "fetch.queue.backoff.ms": 0,
    "queued.min.messages": _QUEUE_RECORDS,
}


class KafkaClient:
    """A `ClientDriver` that sets librdkafka so that its batches have the shape asked for.

    Args:
        endpoint: the broker.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._common = {"bootstrap.servers": f"{endpoint.host}:{endpoint.port}", "log_level": 0}

    def create(self, topic: str) -> None:
        """Create a topic with one partition."""
        create_topic(self._endpoint, topic)

    def drop(self, topic: str) -> None:
        """Delete a topic."""
        delete_topic(self._endpoint, topic)

    def produce(self, topics: Sequence[str], load: Load, budget: Budget) -> Work:
        """See `Driver`; takes one topic. Only failed deliveries are reported, which spares the client's time."""
        (topic,) = topics
        shape = load.shape
        batching = {
            "batch.num.messages": shape.records or _QUEUE_RECORDS,
            "batch.size": shape.size_bytes or 1_000_000,
            "linger.ms": 0 if shape.records == 1 else _LINGER_MS,
        }
        producer = self._producer(batching)
        producer.list_topics(topic, timeout=_TIMEOUT_SECONDS)
        values = [{"value": load.value} for _ in range(_CALL_RECORDS)]
        calls = max(1, budget.size_bytes // (load.record_bytes * _CALL_RECORDS))
        sent = 0
        errors: list[KafkaError] = []

        def report(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                errors.append(error)

        started = time.perf_counter()
        deadline = started + budget.seconds
        while sent < calls * _CALL_RECORDS and time.perf_counter() < deadline:
            # A short queue, so that little is left to be sent when time is up.
            if len(producer) > max(4 * load.batch_records, 10 * _CALL_RECORDS):
                producer.poll(0.001)
                continue
            sent += producer.produce_batch(topic, values, partition=0, on_delivery=report)
        undelivered = producer.flush(_TIMEOUT_SECONDS)
        seconds = time.perf_counter() - started
        if undelivered or errors:
            raise DriverError(f"{undelivered + len(errors)} of {sent} records were not delivered: {errors[:1]}")
        return Work(records=sent, size_bytes=sent * load.record_bytes, seconds=seconds)

    def consume(self, topic: str, load: Load, records: int, budget: Budget) -> Work:
        """See `Driver`; each pass has a consumer of its own, whose clock runs from its assignment to its last record.

        A consumer that is sent back to the beginning would first wait for the request it has left at the end.
        """
        read = 0
        seconds = 0.0
        while seconds < budget.seconds and read * load.record_bytes < budget.size_bytes:
            consumer = self._consumer(_EAGER_FETCHING)
            try:
                consumer.list_topics(topic, timeout=_TIMEOUT_SECONDS)
                started = time.perf_counter()
                _rewind(consumer, topic)
                passed = 0
                while passed < records:
                    passed += len(_consume_some(consumer, min(10_000, records - passed)))
                seconds += time.perf_counter() - started
                read += passed
            finally:
                consumer.close()
        return Work(records=read, size_bytes=read * load.record_bytes, seconds=seconds)

    def round_trip(self, topic: str) -> None:
        """Connect, create the topic, write one record and read it back."""
        self.create(topic)
        producer = self._producer({"linger.ms": 0})
        producer.produce(topic, b"first", partition=0)
        if producer.flush(_TIMEOUT_SECONDS):
            raise DriverError("the first record was not delivered")
        consumer = self._consumer()
        try:
            _rewind(consumer, topic)
            _consume_some(consumer, 1)
        finally:
            consumer.close()

    def deliveries(self, topic: str, sender: PacedSender, fetch_wait_ms: int = _FETCH_WAIT_MS) -> list[float]:
        """See `ClientDriver`.

        Args:
            topic, sender: as there.
            fetch_wait_ms: how long the broker may hold a request that finds nothing.
        """
        producer = self._producer({"linger.ms": 0})
        consumer = self._consumer({"fetch.wait.max.ms": fetch_wait_ms})
        latencies: list[float] = []
        failed = threading.Event()

        def receive() -> None:
            while len(latencies) < sender.count and not failed.is_set():
                message = consumer.poll(1.0)
                if message is not None and message.error() is None:
                    latencies.append(sender.age(_value(message)))

        try:
            _rewind(consumer, topic)
            producer.produce(topic, sender.warm_up, partition=0)
            producer.flush(_TIMEOUT_SECONDS)
            _consume_some(consumer, 1)
            receiver = threading.Thread(target=receive)
            receiver.start()
            sender.run(_produce_and_poll(producer, topic))
            producer.flush(_TIMEOUT_SECONDS)
            receiver.join(_TIMEOUT_SECONDS)
            failed.set()
            receiver.join()
        finally:
            consumer.close()
        if len(latencies) < sender.count:
            raise DriverError(f"{len(latencies)} of {sender.count} records arrived")
        return latencies

    def _producer(self, settings: Mapping[str, int]) -> Producer:
        return Producer(
            {
                **self._common,
                "acks": self._endpoint.acks,
                "delivery.report.only.error": True,
                "queue.buffering.max.messages": _QUEUE_RECORDS,
                **settings,
            }
        )

    def _consumer(self, settings: Mapping[str, int] = _DEFAULT_FETCHING) -> Consumer:
        return Consumer(
            {
                **self._common,
                **settings,
                "group.id": "bench",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
            }
        )


def _produce_and_poll(producer: Producer, topic: str) -> Callable[[bytes], None]:
    def send(value: bytes) -> None:
        producer.produce(topic, value, partition=0)
        producer.poll(0)

    return send


def _rewind(consumer: Consumer, topic: str) -> None:
    consumer.assign([TopicPartition(topic, 0, 0)])


def _value(message: Message) -> bytes:
    value = message.value()
    if not isinstance(value, bytes):
        raise DriverError("a record without a value arrived")
    return value


def _consume_some(consumer: Consumer, count: int) -> Sequence[Message]:
    """Wait for at least one record and return up to `count` of those at hand."""
    deadline = time.perf_counter() + _TIMEOUT_SECONDS
    while time.perf_counter() < deadline:
        first = consumer.poll(1.0)
        if first is None:
            continue
        rest = consumer.consume(count - 1, 0) if count > 1 else []
        messages = [first, *rest]
        for message in messages:
            error = message.error()
            if error is not None:
                raise DriverError(f"consume: {error}")
        return messages
    raise DriverError(f"no record for {_TIMEOUT_SECONDS:.0f} s")
