"""The frames of Iggy's protocol 0.11 that the raw driver needs, encoded and decoded by hand.

Every frame begins with 256 bytes of header. All numbers are little-endian. A batch carries one checksum for each
message and one for all, which the server verifies.
"""

import os
import struct
import time
from typing import Final

import xxhash

from bench.drivers.pipeline import DriverError

__all__ = [
    "HEADER_BYTES",
    "POLL",
    "SendAnswers",
    "body_of",
    "create_request",
    "message_batch",
    "poll_request",
    "register_request",
    "send_request",
]

HEADER_BYTES: Final = 256
_HEADER: Final = struct.Struct("<48xI8xB67x16s24xQB7xQ4xI56x")
_REQUEST: Final = 5
_REGISTER, _READ = 1, 2
_CREATE_STREAM, _CREATE_TOPIC, _DELETE_STREAM, _SEND = 128, 132, 130, 160
POLL: Final = 100
_SIZE_AT: Final = 48
_STATUS_AT: Final = 216
_PROTOCOL: Final = 11 << 10
_CLIENT: Final = os.urandom(16)
_BATCH_HEADER: Final = struct.Struct("<QQQQQQI204x")
_BATCH_SUMMED: Final = struct.Struct("<QQQQQI")


def _request(operation: int, body: bytes, *, session: int, number: int, code: int = 0) -> bytes:
    size = HEADER_BYTES + len(body)
    return _HEADER.pack(size, _REQUEST, _CLIENT, number, operation, session, code) + body


def _name(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()


def _named(text: str) -> bytes:
    return b"\x02" + _name(text)


def register_request() -> bytes:
    """A login as the root user; the session is at 8 in what answers it."""
    login = struct.pack("<I", _PROTOCOL) + _name("bench") + _name("0") + _name("iggy") + _name("iggy")
    return _request(_REGISTER, login + bytes(4), session=0, number=1)


def create_request(stream: str, topic: str | None, *, session: int) -> bytes:
    """Make a stream, or a topic of it with one partition."""
    if topic is None:
        return _request(_CREATE_STREAM, _name(stream), session=session, number=2)
    return _request(_CREATE_TOPIC, _named(stream) + struct.pack("<I", 1) + _name(topic), session=session, number=3)


def message_batch(value: bytes, count: int) -> bytes:
    """A batch of messages with the same payload, each with an id of its own."""
    parts, checksums = [], []
    for index in range(count):
        summed = os.urandom(16) + struct.pack("<IIIIQ", index, 0, 0, len(value), 0) + value
        checksums.append(struct.pack("<Q", xxhash.xxh3_64_intdigest(summed)))
        parts.append(checksums[-1] + summed)
    blob = b"".join(parts)
    fields = 0, 0, 0, time.time_ns() // 1000, HEADER_BYTES + len(blob)
    checksum = xxhash.xxh3_64_intdigest(_BATCH_SUMMED.pack(*fields, count) + b"".join(checksums))
    return _BATCH_HEADER.pack(*fields, checksum, count) + blob


def send_request(stream: str, topic: str, batch: bytes, count: int, *, session: int) -> bytes:
    """Send a batch to partition 0."""
    place = _named(stream) + _named(topic) + b"\x02\x04" + bytes(4)
    metadata = struct.pack("<I", len(place) + 4) + place + struct.pack("<I", count)
    return _request(_SEND, metadata + batch, session=session, number=4)


def poll_request(stream: str, topic: str, offset: int, count: int, *, session: int) -> bytes:
    """Poll from an offset of partition 0 on, as a single consumer, without storing anything."""
    consumer = b"\x01\x01\x04" + struct.pack("<I", 1)
    place = _named(stream) + _named(topic) + b"\x01" + bytes(4)
    strategy = struct.pack("<BQIB", 1, offset, count, 0)
    return _request(_READ, consumer + place + strategy, session=session, number=5, code=POLL)


def body_of(frame: memoryview) -> memoryview:
    """What follows the header of an answer. Raises DriverError if it says that something went wrong."""
    (status,) = struct.unpack_from("<I", frame, _STATUS_AT)
    if status:
        raise DriverError(f"iggy: error {status}")
    return frame[HEADER_BYTES:]


class SendAnswers:
    """Counts answers to sends, which all have one size, and checks every one."""

    _BYTES: Final = HEADER_BYTES + 24

    def __init__(self) -> None:
        self._phase = 0

    def feed(self, data: memoryview) -> int:
        """Count the answers completed by `data`; see `AnswerCounter`."""
        for at in (_STATUS_AT, _STATUS_AT + 1):
            failed = bytes(data[(at - self._phase) % self._BYTES :: self._BYTES]).strip(b"\x00")
            if failed:
                raise DriverError(f"iggy: a send was refused with an error ending in {failed[0]}")
        sizes = bytes(data[(_SIZE_AT - self._phase) % self._BYTES :: self._BYTES])
        if sizes.count(self._BYTES & 0xFF) != len(sizes):
            raise DriverError("iggy: answers differ in size")
        total = self._phase + len(data)
        self._phase = total % self._BYTES
        return total // self._BYTES
