"""The four Kafka messages that the raw driver needs, encoded and decoded by hand.

Versions: Produce 9 and Fetch 12, the newest that name topics by name, carry flexible fields and are old enough for
every broker of the last years.

Source: Apache Kafka, "Protocol Guide": ProduceRequest, ProduceResponse, FetchRequest, FetchResponse; "Record Batch".
"""

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import crc32c

from bench.drivers.pipeline import DriverError

__all__ = ["FetchAnswer", "ProduceAnswers", "fetch_request", "produce_request", "read_fetch_answer", "record_batch"]

_PRODUCE: Final = 0
_FETCH: Final = 1
_PRODUCE_VERSION: Final = 9
_FETCH_VERSION: Final = 12
_CLIENT_ID: Final = b"bench"
_TIMEOUT_MS: Final = 30_000
_NO_TAGS: Final = b"\x00"
_ONE_ELEMENT: Final = b"\x02"
_MAGIC: Final = 2


def _unsigned_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varint(value: int) -> bytes:
    return _unsigned_varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _compact(data: bytes) -> bytes:
    return _unsigned_varint(len(data) + 1) + data


def record_batch(values: Sequence[bytes]) -> bytes:
    """Encode an uncompressed batch of records without keys and headers."""
    now_ms = int(time.time() * 1000)
    records = bytearray()
    count = len(values)
    for index, value in enumerate(values):
        body = b"\x00" + _varint(0) + _varint(index) + _varint(-1) + _varint(len(value)) + value + _varint(0)
        records += _varint(len(body)) + body
    # From the attributes on, which is where the checksum begins.
    checked = struct.pack(">hiqqqhii", 0, count - 1, now_ms, now_ms, -1, -1, -1, count) + records
    # Partition leader epoch, magic, checksum; the base offset and length stand before them.
    return struct.pack(">qiibI", 0, len(checked) + 9, -1, _MAGIC, crc32c.crc32c(checked)) + checked


def _request(api_key: int, version: int, correlation_id: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", api_key, version, correlation_id, len(_CLIENT_ID)) + _CLIENT_ID + _NO_TAGS
    return struct.pack(">i", len(header) + len(body)) + header + body


def produce_request(topic: str, batch: bytes, *, acks: int, correlation_id: int) -> bytes:
    """Encode a framed Produce request with one batch for partition 0.

    Args:
        topic: name of an existing topic.
        batch: from `record_batch`.
        acks: 1 or -1.
        correlation_id: returned in the answer.
    """
    partition = struct.pack(">i", 0) + _compact(batch) + _NO_TAGS
    topics = _ONE_ELEMENT + _compact(topic.encode()) + _ONE_ELEMENT + partition + _NO_TAGS
    body = b"\x00" + struct.pack(">hi", acks, _TIMEOUT_MS) + topics + _NO_TAGS
    return _request(_PRODUCE, _PRODUCE_VERSION, correlation_id, body)


class ProduceAnswers:
    """Counts Produce answers for one topic, which all have one size, and checks every one.

    Args:
        topic: the topic written to.
    """

    def __init__(self, topic: str) -> None:
        # Length, correlation id, tags, array of topics, topic name, array of partitions, partition index.
        self._error_at = 4 + 4 + 1 + 1 + 1 + len(topic) + 1 + 4
        self._head = b""
        self._size = 0
        self._phase = 0

    def feed(self, data: memoryview) -> int:
        """Count the answers completed by `data`; see `AnswerCounter`."""
        if not self._size:
            self._head += data
            if len(self._head) < 4:
                return 0
            self._size = 4 + int.from_bytes(self._head[:4], "big")
            data = memoryview(self._head)
        for at in (self._error_at, self._error_at + 1):
            failed = bytes(data[(at - self._phase) % self._size :: self._size]).strip(b"\x00")
            if failed:
                raise DriverError(f"produce: error code {failed[0]}")
        lowest = bytes(data[(3 - self._phase) % self._size :: self._size])
        if lowest.count((self._size - 4) & 0xFF) != len(lowest):
            raise DriverError("produce: answers differ in size")
        total = self._phase + len(data)
        self._phase = total % self._size
        return total // self._size


def fetch_request(topic: str, offset: int, *, max_bytes: int, wait_ms: int, correlation_id: int) -> bytes:
    """Encode a framed Fetch request for partition 0 that is content with one byte, and waits so long for it."""
    partition = struct.pack(">iiqiqi", 0, -1, offset, -1, -1, max_bytes) + _NO_TAGS
    topics = _ONE_ELEMENT + _compact(topic.encode()) + _ONE_ELEMENT + partition + _NO_TAGS
    body = struct.pack(">iiiibii", -1, wait_ms, 1, max_bytes, 0, 0, -1) + topics + b"\x01" + _compact(b"") + _NO_TAGS
    return _request(_FETCH, _FETCH_VERSION, correlation_id, body)


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """What one Fetch brought for its partition.

    Args:
        high_watermark: offset after the last readable record.
        records: whole batches, perhaps with a torn one at the end.
    """

    high_watermark: int
    records: memoryview


def read_fetch_answer(frame: memoryview, topic: str) -> FetchAnswer:
    """Decode a Fetch answer without its length prefix.

    Raises:
        DriverError: the answer carries an error code, or no partition.
    """
    (error,) = struct.unpack_from(">h", frame, 9)
    if error:
        raise DriverError(f"fetch: error code {error}")
    # Correlation id, tags, throttle time, error, session id, array of topics.
    at = 4 + 1 + 4 + 2 + 4
    if frame[at] != 2:
        raise DriverError("fetch: no topic in the answer")
    at += 1 + 1 + len(topic) + 1
    _, error, high_watermark = struct.unpack_from(">ihq", frame, at)
    if error:
        raise DriverError(f"fetch: error code {error} for the partition")
    at += 4 + 2 + 8 + 8 + 8
    aborted, at = _read_unsigned_varint(frame, at)
    if aborted > 1:
        raise DriverError("fetch: aborted transactions where there were none")
    size, at = _read_unsigned_varint(frame, at + 4)
    return FetchAnswer(high_watermark=high_watermark, records=frame[at : at + max(0, size - 1)])


def _read_unsigned_varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
