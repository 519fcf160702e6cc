"""Pre-encoded requests over non-blocking sockets, with a bounded number of them unanswered.

All the client does while the clock runs is to hand out slices of a buffer made beforehand and to count answers, so
what is measured is the server.
"""

import selectors
import socket
import time
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from bench.load import Budget

__all__ = ["AnswerCounter", "DriverError", "Lane", "connect", "run_lanes"]

_RECEIVE_BYTES: Final = 1 << 20
_STALL_SECONDS: Final = 20.0


class DriverError(Exception):
    """A server refused, disconnected, stalled, or answered with something else than was asked for."""


class AnswerCounter(Protocol):
    """Counts complete answers in a stream of bytes."""

    def feed(self, data: memoryview) -> int:
        """Take the next bytes of the stream and return how many more answers are complete.

        Raises:
            DriverError: an answer is an error.
        """
        ...


def connect(host: str, port: int) -> socket.socket:
    """Open a TCP connection without Nagle's delay."""
    sock = socket.create_connection((host, port), timeout=10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Lane:
    """One connection: its requests, and how far they have been sent and answered.

    Args:
        sock: connected; made non-blocking here and closed by `close`.
        units: pre-encoded requests of equal size, sent round and round.
        window: units unanswered at most.
        answers_per_unit: answers the server gives to one unit.
        counter: finds the answers.
    """

    def __init__(
        self, sock: socket.socket, units: Sequence[bytes], window: int, answers_per_unit: int, counter: AnswerCounter
    ) -> None:
        self.sock = sock
        sock.setblocking(False)
        self._unit_bytes = len(units[0])
        if any(len(unit) != self._unit_bytes for unit in units):
            raise ValueError("units differ in size")
        # At least a window of them, so that one send can fill it.
        rounds = -(-window // len(units))
        self._ring = memoryview(b"".join(units) * rounds)
        self._window = window
        self._answers_per_unit = answers_per_unit
        self._counter = counter
        self._sent_bytes = 0
        self._answers = 0

    @property
    def answered(self) -> int:
        """Units answered so far."""
        return self._answers // self._answers_per_unit

    def started(self) -> int:
        """Units begun so far."""
        return -(-self._sent_bytes // self._unit_bytes)

    def fill(self, limit: int) -> bool:
        """Send what the window and `limit`, the number of units ever to be sent, allow.

        Returns:
            Whether the socket is full, with more to be sent.
        """
        goal = min(self.answered + self._window, limit) * self._unit_bytes
        ring_bytes = len(self._ring)
        while self._sent_bytes < goal:
            at = self._sent_bytes % ring_bytes
            try:
                self._sent_bytes += self.sock.send(self._ring[at : at + goal - self._sent_bytes])
            except BlockingIOError:
                return True
        return False

    def receive(self, buffer: bytearray) -> None:
        """Take what has arrived."""
        count = self.sock.recv_into(buffer)
        if count == 0:
            raise DriverError("the server closed the connection")
        self._answers += self._counter.feed(memoryview(buffer)[:count])

    def close(self) -> None:
        """Close the connection."""
        self.sock.close()


def run_lanes(lanes: Iterable[Lane], budget: Budget, unit_limit: int) -> tuple[int, float]:
    """Drive connections until the budget is used up and everything sent has been answered.

    Args:
        lanes: the connections; all are closed at the end.
        budget: its time; what it says about bytes is `unit_limit` here.
        unit_limit: units to send on each connection at most.

    Returns:
        Units answered over all connections, and seconds from the first byte to the last answer.

    Raises:
        DriverError: an answer is an error, or none came for 20 s.
    """
    lanes = list(lanes)
    buffer = bytearray(_RECEIVE_BYTES)
    started = time.perf_counter()
    deadline = started + budget.seconds
    try:
        with selectors.DefaultSelector() as selector:
            for lane in lanes:
                selector.register(lane.sock, selectors.EVENT_READ, lane)
            open_lanes = set(lanes)
            for lane in lanes:
                _advance(selector, lane, unit_limit)
            while open_lanes:
                events = selector.select(_STALL_SECONDS)
                if not events:
                    raise DriverError(f"no answer for {_STALL_SECONDS:.0f} s")
                expired = time.perf_counter() >= deadline
                for key, mask in events:
                    lane = key.data
                    if mask & selectors.EVENT_READ:
                        lane.receive(buffer)
                    limit = min(unit_limit, lane.started()) if expired else unit_limit
                    _advance(selector, lane, limit)
                    if lane.answered >= limit:
                        selector.unregister(lane.sock)
                        open_lanes.discard(lane)
        return sum(lane.answered for lane in lanes), time.perf_counter() - started
    finally:
        for lane in lanes:
            lane.close()


def _advance(selector: selectors.BaseSelector, lane: Lane, limit: int) -> None:
    full = lane.fill(limit)
    wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if full else 0)
    if selector.get_key(lane.sock).events != wanted:
        selector.modify(lane.sock, wanted, lane)
