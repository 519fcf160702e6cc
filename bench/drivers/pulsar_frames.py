"""The few commands of Pulsar's binary protocol that the raw driver speaks, written by hand.

Numbers in a SEND are varints of five bytes, whatever their value, so that all have one size.
"""

import struct
from collections.abc import Iterable
from typing import Final

from crc32c import crc32c

from bench.drivers.pipeline import DriverError

__all__ = ["KINDS", "FrameCounter", "ack", "connect", "flow", "pong", "producer", "send", "subscribe"]

KINDS: Final = {"exclusive": 0, "shared": 1, "failover": 2, "key_shared": 3}
"""Subscription types, as SUBSCRIBE numbers them."""
_CONNECT, _SUBSCRIBE, _PRODUCER, _SEND = 2, 4, 5, 6
SEND_RECEIPT, SEND_ERROR, MESSAGE = 7, 8, 9
_ACK, _FLOW = 10, 11
CONNECTED, SUCCESS, ERROR, PRODUCER_SUCCESS = 3, 13, 14, 17
_PING, _PONG = 18, 19
_PROTOCOL_VERSION: Final = 21
_UINT32: Final = struct.Struct(">I")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _wide(value: int) -> bytes:
    """A varint of five bytes."""
    return bytes([*(value >> 7 * n & 127 | 128 for n in range(4)), value >> 28])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _frame(kind: int, body: bytes, payload: bytes = b"") -> bytes:
    command = _number(1, kind) + _text(kind, body)
    return _UINT32.pack(4 + len(command) + len(payload)) + _UINT32.pack(len(command)) + command + payload


def connect() -> bytes:
    """CONNECT."""
    return _frame(_CONNECT, _text(1, b"bench") + _number(4, _PROTOCOL_VERSION))


def pong() -> bytes:
    """PONG."""
    return _frame(_PONG, b"")


def producer(topic: str) -> bytes:
    """PRODUCER, number 0."""
    return _frame(_PRODUCER, _text(1, topic.encode()) + _number(2, 0) + _number(3, 1))


def send(sequence_id: int, value: bytes, count: int) -> bytes:
    """SEND of producer 0: a message, or a batch of them if there are several."""
    numbers = b"\x10" + _wide(sequence_id) + b"\x18" + _number(3, 1_700_000_000_000)[1:]
    metadata = _text(1, b"bench") + numbers
    payload = value
    if count > 1:
        metadata += _number(11, count)
        single = _number(3, len(value))
        payload = (_UINT32.pack(len(single)) + single + value) * count
    checked = _UINT32.pack(len(metadata)) + metadata + payload
    body = _number(1, 0) + b"\x10" + _wide(sequence_id) + _number(3, count)
    return _frame(_SEND, body, b"\x0e\x01" + _UINT32.pack(crc32c(checked)) + checked)


def subscribe(topic: str, name: str, kind: str) -> bytes:
    """SUBSCRIBE of consumer 0, from the earliest message on."""
    body = _text(1, topic.encode()) + _text(2, name.encode()) + _number(3, KINDS[kind])
    return _frame(_SUBSCRIBE, body + _number(4, 0) + _number(5, 1) + _text(6, b"bench") + _number(13, 1))


def flow(permits: int) -> bytes:
    """FLOW for consumer 0."""
    return _frame(_FLOW, _number(1, 0) + _number(2, permits))


def ack(message_ids: Iterable[bytes]) -> bytes:
    """An individual ACK of consumer 0, of message ids as they came."""
    return _frame(_ACK, _number(1, 0) + _number(2, 0) + b"".join(_text(3, one) for one in message_ids))


class FrameCounter:
    """Finds commands of one type in a stream of bytes; an `AnswerCounter`.

    Args:
        wanted: the type that is counted.
        keeps_ids: whether the message ids of MESSAGEs are kept, in `message_ids`.
    """

    def __init__(self, wanted: int, *, keeps_ids: bool = False) -> None:
        self._wanted = wanted
        self._keeps_ids = keeps_ids
        self._rest = b""
        self.message_ids: list[bytes] = []
        self.pings = 0
        self.payload_bytes = 0

    def feed(self, data: memoryview) -> int:
        """Take the next bytes and return how many more commands of the type are complete."""
        buffer = memoryview(self._rest + data) if self._rest else data
        position, end, found = 0, len(buffer), 0
        while end - position >= 10:
            behind = position + 4 + _UINT32.unpack_from(buffer, position)[0]
            if behind > end:
                break
            kind = buffer[position + 9]
            if kind == self._wanted:
                found += 1
                self.payload_bytes += behind - position
                if self._keeps_ids:
                    self.message_ids.append(_message_id(buffer[position + 8 : behind]))
            elif kind == _PING:
                self.pings += 1
            elif kind in (SEND_ERROR, ERROR):
                raise DriverError(f"refused: {bytes(buffer[position:behind])!r}")
            position = behind
        self._rest = bytes(buffer[position:])
        return found


def _message_id(command: memoryview) -> bytes:
    """The message id of a MESSAGE: behind its type, its length and the consumer's number 0."""
    position = 3
    while command[position] > 127:
        position += 1
    position += 1
    if bytes(command[position : position + 3]) != b"\x08\x00\x12":
        raise DriverError("a MESSAGE does not begin with its consumer and its id")
    size = command[position + 3]
    return bytes(command[position + 4 : position + 4 + size])
