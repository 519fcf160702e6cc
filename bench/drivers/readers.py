"""A reader of every protocol over a bare socket, that goes through a topic from its first record to its last, piece
by piece, so that several can take turns.

Records are counted, not taken apart, but for what shows that none is missing.
"""

import struct
from collections.abc import Callable
from typing import Final, Protocol

from bench.drivers.driver import Endpoint
from bench.drivers.iggy_raw import IggyRaw
from bench.drivers.kafka07_raw import Kafka07Raw
from bench.drivers.kafka_frames import fetch_request, read_fetch_answer
from bench.drivers.pipeline import DriverError, connect
from bench.drivers.pulsar_raw import RawConsumer

__all__ = ["READERS", "STREAM", "Reader"]

STREAM: Final = "bench"
"""The stream of the topics, which is the namespace of their names in all other protocols."""
_FETCH_BYTES: Final = 1 << 20
_POLL_MESSAGES: Final = 1000
"""Messages of one poll, the default of Iggy's clients."""
_NOBODY: Final = "nobody-has-this-topic"
_BATCH_START: Final = struct.Struct(">qi4xb6xi")
"""Base offset, length, magic, and the delta of the last offset."""


class Reader(Protocol):
    """One connection that reads one topic."""

    def step(self) -> bool:
        """Take the next piece; tells whether all has been read."""

    def close(self) -> None:
        """Close the connection."""


class _Kafka:
    def __init__(self, endpoint: Endpoint, topic: str, records: int, batches: int) -> None:
        self._socket = connect(endpoint.host, endpoint.port)
        self._topic, self._records, self._offset = f"{STREAM}.{topic}", records, 0
        self._buffer = memoryview(bytearray(4 << 20))
        # Says what it speaks: who waits for its turn is not to be taken for somebody who has nothing to say.
        self._socket.sendall(fetch_request(_NOBODY, 0, max_bytes=1, wait_ms=0, correlation_id=0))
        self._receive()

    def step(self) -> bool:
        request = fetch_request(self._topic, self._offset, max_bytes=_FETCH_BYTES, wait_ms=0, correlation_id=0)
        self._socket.sendall(request)
        records = read_fetch_answer(self._receive(), self._topic).records
        position = 0
        while position + 61 <= len(records):
            base_offset, length, magic, delta = _BATCH_START.unpack_from(records, position)
            position += length + 12
            if base_offset != self._offset or magic != 2:
                raise DriverError(f"kafka: a batch at {base_offset} where {self._offset} was due")
            if position > len(records):
                break
            self._offset += delta + 1
        if not position:
            raise DriverError(f"kafka: nothing at offset {self._offset}")
        return self._offset >= self._records

    def _receive(self) -> memoryview:
        have, size = 0, 4
        while have < size:
            count = self._socket.recv_into(self._buffer[have:])
            if not count:
                raise DriverError("the server closed the connection")
            have += count
            if have >= 4 and size == 4:
                size = 4 + int.from_bytes(self._buffer[:4], "big")
                if size > len(self._buffer):
                    larger = memoryview(bytearray(size))
                    larger[:have] = self._buffer[:have]
                    self._buffer = larger
        return self._buffer[4:size]

    def close(self) -> None:
        self._socket.close()


class _Kafka07:
    def __init__(self, endpoint: Endpoint, topic: str, records: int, batches: int) -> None:
        self._raw = Kafka07Raw(endpoint.host, endpoint.port)
        self._topic, self._position = f"{STREAM}.{topic}", 0
        self._end: int | None = None
        self._raw.fetch(_NOBODY, 0, 1)  # says what it speaks

    def step(self) -> bool:
        if self._end is None:
            self._end = self._raw.end(self._topic)
        got = self._raw.fetch(self._topic, self._position, _FETCH_BYTES)
        if not got:
            raise DriverError(f"kafka07: nothing at {self._position} of {self._end}")
        self._position += got
        return self._position >= self._end

    def close(self) -> None:
        self._raw.close()


class _Pulsar:
    _names = 0

    def __init__(self, endpoint: Endpoint, topic: str, records: int, batches: int) -> None:
        _Pulsar._names += 1
        name = f"persistent://public/{STREAM}/{topic}"
        self._consumer = RawConsumer(endpoint, name, f"reader-{_Pulsar._names}", "exclusive")
        self._batches = batches
        self._buffer = bytearray(1 << 20)
        self._begun = False

    def step(self) -> bool:
        if not self._begun:
            self._begun = True
            self._consumer.start()
        try:
            return self._consumer.receive(self._buffer) >= self._batches
        except TimeoutError:
            raise DriverError("pulsar: nothing came any more") from None

    def close(self) -> None:
        self._consumer.close()


class _Iggy:
    def __init__(self, endpoint: Endpoint, topic: str, records: int, batches: int) -> None:
        self._raw = IggyRaw(endpoint)
        self._topic, self._records, self._offset = topic, records, 0

    def step(self) -> bool:
        self._offset += self._raw.poll(self._topic, self._offset, _POLL_MESSAGES)
        return self._offset >= self._records

    def close(self) -> None:
        self._raw.close()


READERS: Final[dict[str, Callable[[Endpoint, str, int, int], Reader]]] = {
    "kafka": _Kafka,
    "kafka07": _Kafka07,
    "pulsar": _Pulsar,
    "iggy": _Iggy,
}
"""By protocol: makes a reader of a topic with so many records, in so many batches."""
