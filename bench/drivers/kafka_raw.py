"""Pre-encoded Produce requests and a bare Fetch loop, for any broker that speaks the Kafka protocol."""

import socket
import struct
import time
from collections.abc import Sequence
from typing import Final

from bench.drivers.driver import Endpoint
from bench.drivers.kafka_admin import create_topic, delete_topic
from bench.drivers.kafka_frames import (
    FetchAnswer,
    ProduceAnswers,
    fetch_request,
    produce_request,
    read_fetch_answer,
    record_batch,
)
from bench.drivers.pipeline import DriverError, Lane, connect, run_lanes
from bench.load import Budget, Load, Work

__all__ = ["KafkaRaw"]

# The default of Kafka's consumers for one partition.
_FETCH_BYTES: Final = 1 << 20
_RECEIVE_BYTES: Final = 4 << 20
_WAITS_MS: Final = (500, 50, 0)
# Of a record batch: base offset, length and magic, with the leader epoch between; where the length begins to count;
# the offset of the last record from the first; and where the records begin.
_BATCH_START: Final = struct.Struct(">qi4xb")
_LENGTH_END: Final = 12
_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT: Final = 23
_RECORDS_START: Final = 61
_MAGIC: Final = 2
_PROBE: Final = Budget(seconds=0.06)


class KafkaRaw:
    """A `Driver` that spends as little time of its own as it can.

    Args:
        endpoint: the broker.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._wait_ms: dict[str, int] = {}
        self._buffer = memoryview(bytearray(_RECEIVE_BYTES))

    def create(self, topic: str) -> None:
        """Create a topic with one partition."""
        create_topic(self._endpoint, topic)

    def drop(self, topic: str) -> None:
        """Delete a topic."""
        delete_topic(self._endpoint, topic)

    def produce(self, topics: Sequence[str], load: Load, budget: Budget) -> Work:
        """See `Driver`; up to the shape's `in_flight` requests are unanswered on each connection."""
        window = load.shape.in_flight
        batches = [record_batch(load.values()) for _ in range(window if load.varied else 1)]
        lanes = [
            Lane(
                connect(self._endpoint.host, self._endpoint.port),
                [
                    produce_request(topic, batches[i % len(batches)], acks=self._endpoint.acks, correlation_id=i)
                    for i in range(window)
                ],
                window,
                1,
                ProduceAnswers(topic),
            )
            for topic in topics
        ]
        sent, seconds = run_lanes(lanes, budget, budget.batches(load))
        records = sent * load.batch_records
        return Work(records=records, size_bytes=records * load.record_bytes, seconds=seconds)

    def consume(self, topic: str, load: Load, records: int, budget: Budget) -> Work:
        """See `Driver`; one request at a time, as a consumer sends them.

        Some brokers sit out the time that a request allows even if there is data, others return early without any if
        it is short. Each gets the time that serves it best, found before the clock starts.
        """
        if topic not in self._wait_ms:
            self._wait_ms[topic] = self._best_wait_ms(topic, load, records)
        return self._fetch(topic, load, records, budget, self._wait_ms[topic])

    def _best_wait_ms(self, topic: str, load: Load, records: int) -> int:
        rates: dict[int, float] = {}
        refused: DriverError | None = None
        for wait_ms in _WAITS_MS:
            try:
                rates[wait_ms] = self._fetch(topic, load, records, _PROBE, wait_ms).metrics()["records_s"]
            except DriverError as error:
                refused = error
        if not rates:
            raise refused or DriverError("no fetch was tried")
        return max(rates, key=lambda wait_ms: rates[wait_ms])

    def _fetch(self, topic: str, load: Load, records: int, budget: Budget, wait_ms: int) -> Work:
        batch_bytes = len(record_batch(load.values()))
        read = offset = 0
        with connect(self._endpoint.host, self._endpoint.port) as sock:
            started = time.perf_counter()
            while True:
                request = fetch_request(topic, offset, max_bytes=_FETCH_BYTES, wait_ms=wait_ms, correlation_id=0)
                sock.sendall(request)
                size = self._receive_frame(sock)
                answer = read_fetch_answer(self._buffer[:size], topic)
                reached = _next_offset(answer, offset, batch_bytes, load.batch_records)
                read += reached - offset
                offset = reached % records
                seconds = time.perf_counter() - started
                if seconds >= budget.seconds or read * load.record_bytes >= budget.size_bytes:
                    return Work(records=read, size_bytes=read * load.record_bytes, seconds=seconds)

    def _receive_frame(self, sock: socket.socket) -> int:
        """Receive one answer into the buffer, without its length, and return its length."""
        prefix = bytearray()
        while len(prefix) < 4:
            part = sock.recv(4 - len(prefix))
            if not part:
                raise DriverError("the server closed the connection")
            prefix += part
        size = int.from_bytes(prefix, "big")
        if size > len(self._buffer):
            self._buffer = memoryview(bytearray(size))
        have = 0
        while have < size:
            count = sock.recv_into(self._buffer[have:size])
            if count == 0:
                raise DriverError("the server closed the connection")
            have += count
        return size


def _next_offset(answer: FetchAnswer, offset: int, batch_bytes: int, batch_records: int) -> int:
    """Return the offset after the last whole batch of an answer.

    If the last batch is where it is in an answer of batches as they were written, those between need no look.

    Raises:
        DriverError: there is no whole batch, or the records do not follow `offset` without a gap.
    """
    records = answer.records
    count = len(records) // batch_bytes
    if count:
        last = offset + (count - 1) * batch_records
        found = _BATCH_START.unpack_from(records, (count - 1) * batch_bytes)
        if found == (last, batch_bytes - _LENGTH_END, _MAGIC) and _BATCH_START.unpack_from(records)[0] == offset:
            return last + batch_records
    return _walk(records, offset)


def _walk(records: memoryview, offset: int) -> int:
    """Do as `_next_offset` does for a broker that returns other batches than were written."""
    position = 0
    reached = offset
    while position + _RECORDS_START <= len(records):
        base_offset, length, magic = _BATCH_START.unpack_from(records, position)
        if base_offset != reached or magic != _MAGIC:
            raise DriverError(f"fetch: a batch of magic {magic} at offset {base_offset} where {reached} was due")
        if position + _LENGTH_END + length > len(records):
            break
        (last_offset_delta,) = _LAST_OFFSET_DELTA.unpack_from(records, position + _LAST_OFFSET_DELTA_AT)
        reached += last_offset_delta + 1
        position += _LENGTH_END + length
    if reached == offset:
        raise DriverError(f"fetch: no whole batch in {len(records)} bytes at offset {offset}")
    return reached
