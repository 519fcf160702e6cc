"""Clients of librdkafka: a producer, consumers and an admin client."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.server_process import ServerProcess

TIMEOUT_S = 60.0


@pytest.fixture(scope="session")
def admin(broker: ServerProcess) -> Any:
    return AdminClient({"bootstrap.servers": broker.kafka})


@pytest.fixture
def new_topic(admin: Any, unique: Callable[[str], str]) -> Callable[..., str]:
    """Creates a topic and returns its name."""

    def create(partitions: int = 1, client: Any = None, **configs: str) -> str:
        name = unique("ck")
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        # A client is false as long as it has nothing to send.
        futures = (admin if client is None else client).create_topics([NewTopic(name, partitions, config=settings)])
        futures[name].result(TIMEOUT_S)
        return name

    return create


def send(server: ServerProcess, messages: list[dict[str, Any]], **config: Any) -> list[Any]:
    """Produce messages, and wait until all are acknowledged; returns what was delivered."""
    delivered: list[Any] = []
    producer = Producer({"bootstrap.servers": server.kafka, "linger.ms": 20, **config})

    def note(error: Any, message: Message) -> None:
        delivered.append(error or message)

    for message in messages:
        while True:
            try:
                producer.produce(**message, on_delivery=note)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(TIMEOUT_S) == 0
    return delivered


@contextlib.contextmanager
def consuming(server: ServerProcess, group: str = "nobody", **config: Any) -> Iterator[Any]:
    """A consumer that is closed at the end."""
    settings = {"bootstrap.servers": server.kafka, "group.id": group, "enable.auto.commit": False, **config}
    consumer = Consumer({"auto.offset.reset": "earliest", "fetch.wait.max.ms": 50, **settings})
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Any, count: int) -> list[Any]:
    """Read so many messages."""
    messages: list[Any] = []
    deadline_s = time.monotonic() + TIMEOUT_S
    while len(messages) < count:
        for message in consumer.consume(count - len(messages), 0.5):
            if message.error():
                raise KafkaException(message.error())
            messages.append(message)
        assert time.monotonic() < deadline_s, f"{len(messages)} of {count} messages came"
    return messages


class Member:
    """A member of a group that polls on a thread of its own."""

    def __init__(self, server: ServerProcess, topic: str, group: str, **config: Any) -> None:
        self.assignments: list[set[int]] = []
        self.revocations: list[set[int]] = []
        self.lost: list[set[int]] = []
        self.partitions: set[int] = set()
        self.values: list[bytes] = []
        consumer_group = config.get("group.protocol") == "consumer"
        pace = {} if consumer_group else {"heartbeat.interval.ms": 200}  # of a consumer group, the server says it
        settings = {"bootstrap.servers": server.kafka, "group.id": group, **pace, **config}
        self._cooperative = consumer_group or "cooperative" in str(config.get("partition.assignment.strategy"))
        self._consumer = Consumer(
            {"auto.offset.reset": "earliest", "enable.auto.commit": False, "fetch.wait.max.ms": 50, **settings}
        )
        self._consumer.subscribe(
            [topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost_partitions
        )
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _assigned(self, _: Any, partitions: list[Any]) -> None:
        given = {one.partition for one in partitions}
        self.assignments.append(given)
        self.partitions = self.partitions | given if self._cooperative else given

    def _revoked(self, _: Any, partitions: list[Any]) -> None:
        taken = {one.partition for one in partitions}
        self.revocations.append(taken)
        self.partitions = self.partitions - taken

    def _lost_partitions(self, _: Any, partitions: list[Any]) -> None:
        taken = {one.partition for one in partitions}
        self.lost.append(taken)
        self.partitions = self.partitions - taken

    def _poll(self) -> None:
        try:
            while not self._stop.is_set():
                message = self._consumer.poll(0.05)
                if message is not None and not message.error():
                    self.values.append(message.value())
                    self._consumer.commit(message, asynchronous=True)
        except BaseException as error:  # noqa: BLE001 - raised again by `stop`
            self._error = error

    def stop(self, *, leave: bool = True) -> None:
        """Stop polling; leave the group, unless it is to look as if the member had died."""
        self._stop.set()
        self._thread.join(TIMEOUT_S)
        if leave:
            self._consumer.close()
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
