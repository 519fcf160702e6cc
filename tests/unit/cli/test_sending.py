"""The sender, in front of a producer that does as it is told."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from millstream.cli.connection import Connection
from millstream.cli.errors import CliError
from millstream.cli.record_json import Outgoing
from millstream.cli.sending import Sender


class Producer:
    """Holds records until `flush`, which acknowledges all of them, or fails those it is told to."""

    def __init__(self, *, room: int = 10, failing: bytes = b"nothing", deaf: bool = False) -> None:
        self.sent: list[tuple[Any, ...]] = []
        self._room = room
        self._failing = failing
        self._deaf = deaf
        self._pending: list[tuple[bytes | None, Callable[[Any, Any], None]]] = []

    def __len__(self) -> int:
        return len(self._pending)

    def produce(self, topic: str, value: bytes | None, key: bytes | None, partition: int, **options: Any) -> None:
        if len(self._pending) >= self._room:
            raise BufferError
        if partition > 8:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        on_delivery = options.pop("on_delivery")
        self.sent.append((topic, value, key, partition, options))
        self._pending.append((value, on_delivery))

    def poll(self, timeout_s: float) -> int:
        return 0

    def flush(self, timeout_s: float) -> int:
        if self._deaf:
            return len(self._pending)
        pending, self._pending = self._pending, []
        for value, on_delivery in pending:
            if value == self._failing:
                on_delivery(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), None)
        return 0


def sender(producer: Producer) -> Sender:
    return Sender(producer, Connection("127.0.0.1:9092", {}), "orders", show_progress=False)


def test_records_and_bytes_are_counted() -> None:
    producer = Producer()
    sending = sender(producer)
    sending.send(Outgoing(value=b"abc", key=b"k", headers=[("a", b"1")], timestamp_ms=5, partition=2))
    sending.send(Outgoing(value=None))
    sending.finish()
    assert (sending.record_count, sending.byte_count) == (2, 4)
    assert producer.sent == [
        ("orders", b"abc", b"k", 2, {"headers": [("a", b"1")], "timestamp": 5}),
        ("orders", None, None, -1, {}),
    ]


def test_a_full_queue_is_waited_for() -> None:
    producer = Producer(room=2)
    sending = sender(producer)
    for _ in range(7):
        sending.send(Outgoing(value=b"x"))
    sending.finish()
    assert len(producer.sent) == 7


def test_a_failed_record_is_reported() -> None:
    sending = sender(Producer(failing=b"bad"))
    sending.send(Outgoing(value=b"good"))
    sending.send(Outgoing(value=b"bad"))
    with pytest.raises(CliError, match="1 of 2 records were not written to 'orders'"):
        sending.finish()


def test_a_record_the_library_refuses_is_reported() -> None:
    with pytest.raises(CliError, match="1 of 1 records were not written"):
        sender(Producer()).send(Outgoing(value=b"x", partition=9))


def test_a_broker_that_stops_acknowledging_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.cli.sending._STALL_TIMEOUT_S", 0.0)
    connection = Connection("127.0.0.1:9092", {})
    monkeypatch.setattr(connection, "unreachable", lambda: None)
    sending = Sender(Producer(deaf=True), connection, "orders", show_progress=False)
    sending.send(Outgoing(value=b"x"))
    with pytest.raises(CliError, match="1 of 1 records may be missing"):
        sending.finish()
