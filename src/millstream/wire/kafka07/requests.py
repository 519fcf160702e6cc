"""The five requests of Kafka 0.7, both directions. All integers are big-endian.

    PRODUCE       type 0, topic, partition, int32 length and message set
    FETCH         type 1, topic, partition, int64 offset, int32 max_size
    MULTIFETCH    type 2, int16 count, then for each: topic, partition, offset, max_size
    MULTIPRODUCE  type 3, int16 count, then for each: topic, partition, int32 length and message set
    OFFSETS       type 4, topic, partition, int64 time, int32 max count

The type is an int16, a topic an int16 length and UTF-8, a partition an int32. An int32 length precedes each request;
it is not part of what is decoded here.

Source: the Kafka 0.7 wire format page; for the multi requests, kafka.api.MultiFetchRequest and MultiProducerRequest.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from millstream.wire.kafka07.errors import MalformedRequest

__all__ = [
    "ANY_PARTITION",
    "EARLIEST",
    "LATEST",
    "FetchRequest",
    "MultiFetchRequest",
    "MultiProduceRequest",
    "OffsetsRequest",
    "ProduceRequest",
    "Request",
    "RequestType",
    "decode_request",
    "encode_request",
]

Buffer = bytes | bytearray | memoryview

ANY_PARTITION: Final = -1
"""The partition of a produce that the broker is to choose."""
LATEST: Final = -1
EARLIEST: Final = -2

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_FETCH: Final = struct.Struct(">iqi")


class RequestType(IntEnum):
    """What a request asks for."""

    PRODUCE = 0
    FETCH = 1
    MULTIFETCH = 2
    MULTIPRODUCE = 3
    OFFSETS = 4


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """Append a message set.

    Args:
        topic: its name.
        partition: its number, or ANY_PARTITION.
        messages: the message set as sent; a view of the request when it was decoded.
    """

    topic: str
    partition: int
    messages: Buffer


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Read bytes of a partition.

    Args:
        topic, partition: which.
        offset: byte address to read from; not checked, it may be negative.
        max_size: bytes at most; not checked, it may be negative.
    """

    topic: str
    partition: int
    offset: int
    max_size: int


@dataclass(frozen=True, slots=True)
class MultiFetchRequest:
    """Several fetches that are answered together."""

    fetches: Sequence[FetchRequest]


@dataclass(frozen=True, slots=True)
class MultiProduceRequest:
    """Several produces in one request."""

    produces: Sequence[ProduceRequest]


@dataclass(frozen=True, slots=True)
class OffsetsRequest:
    """Ask for addresses before a time.

    Args:
        topic, partition: which.
        time_ms: ms since 1970, LATEST or EARLIEST.
        max_count: addresses at most.
    """

    topic: str
    partition: int
    time_ms: int
    max_count: int


Request = ProduceRequest | FetchRequest | MultiFetchRequest | MultiProduceRequest | OffsetsRequest


class _Cursor:
    """Reads fields of a request one after the other, and nothing beyond its end."""

    __slots__ = ("_buffer", "_position")

    def __init__(self, buffer: memoryview) -> None:
        self._buffer = buffer
        self._position = 0

    def unpack(self, fields: struct.Struct) -> tuple[int, ...]:
        if len(self._buffer) - self._position < fields.size:
            raise MalformedRequest(f"a request ends in the middle of a field, at byte {self._position}")
        values = fields.unpack_from(self._buffer, self._position)
        self._position += fields.size
        return values

    def view(self, size: int) -> memoryview:
        if not 0 <= size <= len(self._buffer) - self._position:
            raise MalformedRequest(f"a field of {size} bytes at byte {self._position} is not whole")
        start = self._position
        self._position += size
        return self._buffer[start : self._position]

    def topic(self) -> str:
        (size,) = self.unpack(_INT16)
        try:
            return str(self.view(size), "utf-8")
        except UnicodeDecodeError:
            raise MalformedRequest("the name of a topic is not UTF-8") from None

    def count(self) -> int:
        (count,) = self.unpack(_INT16)
        if count < 0:
            raise MalformedRequest(f"a request of {count} parts")
        return count


def _produce(cursor: _Cursor) -> ProduceRequest:
    topic = cursor.topic()
    partition, size = cursor.unpack(_PARTITION_AND_SIZE)
    return ProduceRequest(topic, partition, cursor.view(size))


def _fetch(cursor: _Cursor) -> FetchRequest:
    topic = cursor.topic()
    partition, offset, max_size = cursor.unpack(_FETCH)
    return FetchRequest(topic, partition, offset, max_size)


def _offsets(cursor: _Cursor) -> OffsetsRequest:
    topic = cursor.topic()
    partition, time_ms, max_count = cursor.unpack(_FETCH)
    return OffsetsRequest(topic, partition, time_ms, max_count)


_PARTITION_AND_SIZE: Final = struct.Struct(">ii")
_DECODERS: Final[Mapping[int, Callable[[_Cursor], Request]]] = {
    RequestType.PRODUCE: _produce,
    RequestType.FETCH: _fetch,
    RequestType.MULTIFETCH: lambda cursor: MultiFetchRequest([_fetch(cursor) for _ in range(cursor.count())]),
    RequestType.MULTIPRODUCE: lambda cursor: MultiProduceRequest([_produce(cursor) for _ in range(cursor.count())]),
    RequestType.OFFSETS: _offsets,
}


def decode_request(frame: memoryview) -> Request:
    """Decode a request.

    Args:
        frame: the request without its length. Bytes behind its last field are passed over, as in the original.

    Raises:
        MalformedRequest: an unknown type, or a field that is not whole.
    """
    cursor = _Cursor(frame)
    (kind,) = cursor.unpack(_INT16)
    decode = _DECODERS.get(kind)
    if decode is None:
        raise MalformedRequest(f"there is no request of type {kind}")
    return decode(cursor)


def encode_request(request: Request) -> bytes:
    """Encode a request, with its length in front."""
    match request:
        case ProduceRequest():
            parts = [_INT16.pack(RequestType.PRODUCE), *_produce_parts(request)]
        case FetchRequest():
            parts = [_INT16.pack(RequestType.FETCH), *_fetch_parts(request)]
        case MultiFetchRequest(fetches):
            parts = [_INT16.pack(RequestType.MULTIFETCH), _INT16.pack(len(fetches))]
            parts += [part for fetch in fetches for part in _fetch_parts(fetch)]
        case MultiProduceRequest(produces):
            parts = [_INT16.pack(RequestType.MULTIPRODUCE), _INT16.pack(len(produces))]
            parts += [part for produce in produces for part in _produce_parts(produce)]
        case OffsetsRequest(topic, partition, time_ms, max_count):
            parts = [_INT16.pack(RequestType.OFFSETS), _topic(topic), _FETCH.pack(partition, time_ms, max_count)]
    body = b"".join(parts)
    return _INT32.pack(len(body)) + body


def _topic(name: str) -> bytes:
    encoded = name.encode()
    return _INT16.pack(len(encoded)) + encoded


def _produce_parts(request: ProduceRequest) -> list[bytes]:
    head = _PARTITION_AND_SIZE.pack(request.partition, len(request.messages))
    return [_topic(request.topic), head, bytes(request.messages)]


def _fetch_parts(request: FetchRequest) -> list[bytes]:
    return [_topic(request.topic), _FETCH.pack(request.partition, request.offset, request.max_size)]
