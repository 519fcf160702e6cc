"""Pre-encoded sends and a bare poll loop in Iggy's protocol 0.11."""

import socket
import struct
import time
from collections.abc import Callable
from typing import Final

from bench.drivers.driver import Endpoint
from bench.drivers.iggy_frames import (
    SendAnswers,
    body_of,
    create_request,
    message_batch,
    poll_request,
    register_request,
    send_request,
)
from bench.drivers.pipeline import DriverError, Lane, connect, run_lanes
from bench.load import Budget, Load, Work

__all__ = ["IggyRaw"]

_STREAM: Final = "bench"
_SIZE_END: Final = 52
_ALREADY_THERE: Final = "1012"


class IggyRaw:
    """Writes and reads topics of one stream as fast as the server lets it; each has one partition.

    Args:
        endpoint: the server.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._socket, self._session = self._connect()
        self._buffer = memoryview(bytearray(4 << 20))
        try:
            self._ask(self._socket, create_request(_STREAM, None, session=self._session))
        except DriverError as error:
            if _ALREADY_THERE not in str(error):
                raise

    def _connect(self) -> tuple[socket.socket, int]:
        sock = connect(self._endpoint.host, self._endpoint.port)
        self._buffer = memoryview(bytearray(1 << 16))
        answer = self._ask(sock, register_request())
        return sock, struct.unpack_from("<Q", answer, 8)[0]

    def create(self, topic: str) -> None:
        """Create a topic with one partition."""
        self._ask(self._socket, create_request(_STREAM, topic, session=self._session))

    def produce(self, topic: str, load: Load, budget: Budget) -> Work:
        """Send batches until the budget is used up, `in_flight` of them unanswered at most."""
        sock, session = self._connect()
        batch = message_batch(load.value, load.batch_records)
        unit = send_request(_STREAM, topic, batch, load.batch_records, session=session)
        lane = Lane(sock, [unit], load.shape.in_flight, 1, SendAnswers())
        batches, seconds = run_lanes([lane], budget, budget.batches(load))
        records = batches * load.batch_records
        return Work(records=records, size_bytes=records * load.record_bytes, seconds=seconds)

    def consume(self, topic: str, load: Load, records: int, budget: Budget) -> Work:
        """Poll batch after batch of a topic of `records` messages, again and again, until the budget is used up."""
        read = offset = 0
        started = time.perf_counter()
        while True:
            count = self.poll(topic, offset, load.batch_records)
            read += count
            offset = (offset + count) % records
            seconds = time.perf_counter() - started
            if seconds >= budget.seconds or read * load.record_bytes >= budget.size_bytes:
                return Work(records=read, size_bytes=read * load.record_bytes, seconds=seconds)

    def poll(self, topic: str, offset: int, count: int) -> int:
        """Poll once; gives how many messages came, of which the first is that of the offset."""
        body = self._ask(self._socket, poll_request(_STREAM, topic, offset, count, session=self._session))
        (found,) = struct.unpack_from("<I", body, 12)
        if not found:
            raise DriverError(f"iggy: nothing at offset {offset}")
        base_offset, delta = struct.unpack_from("<Q", body, 24)[0], struct.unpack_from("<I", body, 16 + 256 + 24)[0]
        if base_offset + delta != offset:
            raise DriverError(f"iggy: offset {base_offset + delta} where {offset} was due")
        return int(found)

    def polling(self, topic: str, count: int) -> Callable[[int], int]:
        """What polls so many messages at an offset."""
        return lambda offset: self.poll(topic, offset, count)

    def sending(self, topic: str, load: Load) -> "Sending":
        """A connection that sends one batch at a time."""
        sock, session = self._connect()
        batch = message_batch(load.value, load.batch_records)
        return Sending(self, sock, send_request(_STREAM, topic, batch, load.batch_records, session=session))

    def _ask(self, sock: socket.socket, request: bytes) -> memoryview:
        sock.sendall(request)
        have, size = 0, _SIZE_END
        while have < size:
            count = sock.recv_into(self._buffer[have:])
            if not count:
                raise DriverError("the server closed the connection")
            have += count
            if size == _SIZE_END and have >= _SIZE_END:
                size = int.from_bytes(self._buffer[_SIZE_END - 4 : _SIZE_END], "little")
                if size > len(self._buffer):
                    larger = memoryview(bytearray(size))
                    larger[:have] = self._buffer[:have]
                    self._buffer = larger
        return body_of(self._buffer[:size])

    def close(self) -> None:
        """Close the connection that is kept."""
        self._socket.close()


class Sending:
    """Sends one batch over and over. Args: the driver, a connection, the request."""

    def __init__(self, driver: IggyRaw, sock: socket.socket, request: bytes) -> None:
        self._driver = driver
        self._socket = sock
        self._request = request

    def send(self) -> None:
        """Send it, and wait for the answer."""
        self._driver._ask(self._socket, self._request)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
