"""Pre-encoded SENDs and bare consumers, for any broker that speaks Pulsar's binary protocol."""

import selectors
import socket
import time
from collections.abc import Sequence
from typing import Final

from bench.drivers import pulsar_frames as frames
from bench.drivers.driver import Endpoint
from bench.drivers.pipeline import DriverError, Lane, connect, run_lanes
from bench.load import Budget, Work

__all__ = ["PulsarRaw", "RawConsumer", "drain"]

_RECEIVE_BYTES: Final = 1 << 20
_STALL_SECONDS: Final = 5.0
_PERMITS: Final = 2_000_000
_IN_FLIGHT_BYTES: Final = 1_000_000
_IN_FLIGHT_MAX: Final = 500


def _open(endpoint: Endpoint) -> socket.socket:
    sock = connect(endpoint.host, endpoint.port)
    sock.sendall(frames.connect())
    _await(sock, frames.CONNECTED)
    return sock


def _await(sock: socket.socket, kind: int) -> None:
    counter = frames.FrameCounter(kind)
    sock.settimeout(_STALL_SECONDS)
    while True:
        data = sock.recv(_RECEIVE_BYTES)
        if not data:
            raise DriverError("the server closed the connection")
        if counter.feed(memoryview(data)):
            return


class RawConsumer:
    """A consumer of a new subscription, from the first message on.

    Args:
        endpoint: the broker.
        topic, subscription: what it reads.
        kind: a key of `pulsar_frames.KINDS`.
        keeps_ids: whether it will acknowledge.
    """

    def __init__(
        self, endpoint: Endpoint, topic: str, subscription: str, kind: str, *, keeps_ids: bool = False
    ) -> None:
        self.sock = _open(endpoint)
        self.sock.sendall(frames.subscribe(topic, subscription, kind))
        _await(self.sock, frames.SUCCESS)
        self.counter = frames.FrameCounter(frames.MESSAGE, keeps_ids=keeps_ids)
        self.entries = 0

    def start(self) -> None:
        """Ask for messages."""
        self.sock.sendall(frames.flow(_PERMITS))

    def receive(self, buffer: bytearray) -> int:
        """Take what has arrived; returns the entries received in all."""
        size = self.sock.recv_into(buffer)
        if not size:
            raise DriverError("the server closed the connection")
        self.entries += self.counter.feed(memoryview(buffer)[:size])
        while self.counter.pings:
            self.counter.pings -= 1
            self.sock.sendall(frames.pong())
        return self.entries

    def acknowledge(self, message_ids: Sequence[bytes]) -> None:
        """Acknowledge messages one by one, a hundred in a command."""
        for start in range(0, len(message_ids), 100):
            self.sock.sendall(frames.ack(message_ids[start : start + 100]))

    def close(self) -> None:
        """Close the connection."""
        self.sock.close()


class PulsarRaw:
    """Writes and reads with as little time of its own as it can.

    Args:
        endpoint: the broker.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def produce(self, topic: str, record_bytes: int, batch_records: int, budget: Budget) -> Work:
        """Write entries of so many messages over one connection, 1 MB of them, but 500 at most, unanswered."""
        sock = _open(self._endpoint)
        sock.sendall(frames.producer(topic))
        _await(sock, frames.PRODUCER_SUCCESS)
        value = (b"abcdefghijklmnopqrstuvwxyz" * (record_bytes // 26 + 1))[:record_bytes]
        window = max(4, min(_IN_FLIGHT_MAX, _IN_FLIGHT_BYTES // (record_bytes * batch_records)))
        units = [frames.send(number, value, batch_records) for number in range(window)]
        lane = Lane(sock, units, window, 1, frames.FrameCounter(frames.SEND_RECEIPT))
        limit = max(1, budget.size_bytes // (record_bytes * batch_records))
        batches, seconds = run_lanes([lane], budget, limit)
        records = batches * batch_records
        return Work(records=records, size_bytes=records * record_bytes, seconds=seconds)

    def consumer(self, topic: str, subscription: str, kind: str, *, keeps_ids: bool = False) -> RawConsumer:
        """A consumer of a new subscription."""
        return RawConsumer(self._endpoint, topic, subscription, kind, keeps_ids=keeps_ids)


def drain(consumers: Sequence[RawConsumer], entries: int) -> float:
    """Let every consumer receive so many entries; returns the seconds from their first FLOW on."""
    buffer = bytearray(_RECEIVE_BYTES)
    with selectors.DefaultSelector() as selector:
        for consumer in consumers:
            selector.register(consumer.sock, selectors.EVENT_READ, consumer)
        left = len(consumers)
        started = time.perf_counter()
        for consumer in consumers:
            consumer.start()
        while left:
            events = selector.select(_STALL_SECONDS)
            if not events:
                raise DriverError(f"nothing came for {_STALL_SECONDS:.0f} s")
            for key, _ in events:
                consumer = key.data
                if consumer.receive(buffer) >= entries:
                    selector.unregister(consumer.sock)
                    left -= 1
        return time.perf_counter() - started
