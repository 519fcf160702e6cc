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
        batch = record_batch(load.value, load.batch_records)
        window = load.shape.in_flight
        lanes = [
            Lane(
                connect(self._endpoint.host, self._endpoint.port),
                [produce_request(topic, batch, acks=self._endpoint.acks, correlation_id=i) for i in range(window)],
                window,
                1,
                ProduceAnswers(topic),
            )
            for topic in topics
        ]
        batches, seconds = run_lanes(lanes, budget, budget.batches(load))
        records = batches * load.batch_records
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
        batch_bytes = len(record_batch(load.value, load.batch_records))
        read = offset = 0
        with connect(self._endpoint.host, self._endpoint.port) as sock:
            started = time.perf_counter()
            while True:
                request = fetch_request(topic, offset, max_bytes=_FETCH_BYTES, wait_ms=wait_ms, correlation_id=0)
                sock.sendall(request)
                size = self._receive_frame(sock)
                answer = read_fetch_answer(self._buffer[:size], topic)
                got = _whole_batches(answer, offset, batch_bytes, load.batch_records) * load.batch_records
                read += got
                offset = (offset + got) % records
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
            self._wait_ms: dict[str, int] = {}
        self._buffer = memoryview(bytearray(size))
        have = 0
        while have < size:
            count = sock.recv_into(self._buffer[have:size])
            if count == 0:
                raise DriverError("the server closed the connection")
            have += count
        return size


def _whole_batches(answer: FetchAnswer, offset: int, batch_bytes: int, batch_records: int) -> int:
    """Count the whole batches of an answer and check that the first and the last are those expected."""
    count = len(answer.records) // batch_bytes
    if count == 0:
        raise DriverError(f"fetch: {len(answer.records)} bytes at offset {offset} of {answer.high_watermark}")
    for index in (0, count - 1):
        base_offset, length, _, magic = struct.unpack_from(">qiib", answer.records, index * batch_bytes)
        expected = offset + index * batch_records
        if (base_offset, length, magic) != (expected, batch_bytes - 12, 2):
            raise DriverError(f"fetch: batch at {base_offset} of {length} bytes, magic {magic}; expected {expected}")
    return count
