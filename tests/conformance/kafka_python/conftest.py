"""Clients of kafka-python: producers, consumers, members of groups and an admin client."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from tests.support.server_process import ServerProcess

TIMEOUT_S = 60.0
Listener: Any = ConsumerRebalanceListener


@pytest.fixture(scope="session")
def admin(broker: ServerProcess) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=broker.kafka)
    yield client
    client.close()


@pytest.fixture
def new_topic(admin: Any, unique: Callable[[str], str]) -> Callable[..., str]:
    """Creates a topic and returns its name."""

    def create(partitions: int = 1, client: Any = None, **configs: str) -> str:
        name = unique("kp")
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        wanted = {name: {"num_partitions": partitions, "replication_factor": 1, "configs": settings}}
        (admin if client is None else client).create_topics(wanted)
        return name

    return create


@contextlib.contextmanager
def producing(server: ServerProcess, **config: Any) -> Iterator[Any]:
    """A producer that is flushed and closed at the end."""
    producer = KafkaProducer(bootstrap_servers=server.kafka, **config)
    try:
        yield producer
    finally:
        producer.close(timeout=TIMEOUT_S)


def send_values(server: ServerProcess, topic: str, values: Iterable[bytes], partitions: int = 1) -> None:
    """Produce values to the partitions in turn."""
    with producing(server) as producer:
        sent = [producer.send(topic, value, partition=n % partitions) for n, value in enumerate(values)]
        for future in sent:
            future.get(TIMEOUT_S)


@contextlib.contextmanager
def consuming(server: ServerProcess, *topics: str, **config: Any) -> Iterator[Any]:
    """A consumer that is closed at the end."""
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "fetch_max_wait_ms": 50, **config}
    consumer = KafkaConsumer(*topics, bootstrap_servers=server.kafka, **settings)
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Any, count: int) -> list[Any]:
    """Read so many records."""
    records: list[Any] = []
    deadline_s = time.monotonic() + TIMEOUT_S
    while len(records) < count:
        for found in consumer.poll(500, max_records=count - len(records)).values():
            records += found
        assert time.monotonic() < deadline_s, f"{len(records)} of {count} records came"
    return records


class Member(Listener):  # type: ignore[misc]  # the client's class has no types
    """A member of a group that polls on a thread of its own, and commits what it has read."""

    def __init__(self, server: ServerProcess, topic: str, group: str, **config: Any) -> None:
        self.assignments: list[set[int]] = []
        self.revocations: list[set[int]] = []
        self.partitions: set[int] = set()
        self.values: list[bytes] = []
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._server, self._topic, self._group = server, topic, group
        self._config = {"heartbeat_interval_ms": 200, "metadata_max_age_ms": 1000, **config}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self.assignments.append({one.partition for one in assigned})

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self.revocations.append({one.partition for one in revoked})

    def _run(self) -> None:
        try:
            with consuming(self._server, group_id=self._group, **self._config) as consumer:
                # A leader that has not heard of the topic yet assigns nothing, and may not notice when it does hear.
                assert consumer.partitions_for_topic(self._topic)
                consumer.subscribe([self._topic], listener=self)
                while not self._stop.is_set():
                    # With a short time the client drops the outcome of a join when its machine is busy.
                    for records in consumer.poll(400).values():
                        self.values += [record.value for record in records]
                        consumer.commit_async()
                    self.partitions = {one.partition for one in consumer.assignment()}
        except BaseException as error:  # noqa: BLE001 - raised again by `stop`
            self._error = error

    def stop(self) -> None:
        """Leave the group."""
        self._stop.set()
        self._thread.join(TIMEOUT_S)
        if self._error is not None:
            raise self._error


@pytest.fixture
def join(broker: ServerProcess) -> Iterator[Callable[..., Member]]:
    """Starts members of groups, and lets all go in the end."""
    members: list[Member] = []

    def start(topic: str, group: str, server: ServerProcess = broker, **config: Any) -> Member:
        members.append(Member(server, topic, group, **config))
        return members[-1]

    yield start
    for member in members:
        member.stop()


def place(topic: str, partition: int = 0) -> Any:
    """A partition, as the client names it."""
    return TopicPartition(topic, partition)
