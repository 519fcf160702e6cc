"""The answers of Kafka 0.7, both directions. All integers are big-endian.

    FETCH         int32 length, int16 error, message set
    MULTIFETCH    int32 length, int16 error 0, then for each fetch: int32 size, int16 error, message set
    OFFSETS       int32 length, int16 error, int32 count, int64 addresses, descending

A length counts all behind it; a size in a MULTIFETCH answer counts its error too. PRODUCE and MULTIPRODUCE have no
answer.

Source: the Kafka 0.7 wire format page; for MULTIFETCH, kafka.server.MultiMessageSetSend.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from millstream.wire.kafka07.errors import MalformedRequest

__all__ = [
    "Fetched",
    "decode_fetch",
    "decode_multifetch",
    "decode_offsets",
    "encode_fetch",
    "encode_multifetch",
    "encode_offsets",
]

Buffer = bytes | bytearray | memoryview
_HEAD: Final = struct.Struct(">ih")
_OFFSETS_HEAD: Final = struct.Struct(">ihi")
_ERROR_BYTES: Final = 2


class Fetched(NamedTuple):
    """The answer to one fetch.

    Args:
        error: its code.
        messages: the bytes of the partition, in pieces; none with an error.
    """

    error: int
    messages: Sequence[Buffer] = ()

    @property
    def size(self) -> int:
        """Bytes of the error and the messages."""
        return _ERROR_BYTES + sum(map(len, self.messages))


def encode_fetch(fetched: Fetched) -> list[Buffer]:
    """The answer to a FETCH, as buffers to be written one after the other."""
    return [_HEAD.pack(fetched.size, fetched.error), *fetched.messages]


def encode_multifetch(parts: Sequence[Fetched]) -> list[Buffer]:
    """The answer to a MULTIFETCH, with a part for each of its fetches."""
    size = _ERROR_BYTES + sum(4 + part.size for part in parts)
    buffers: list[Buffer] = [_HEAD.pack(size, 0)]
    for part in parts:
        buffers += encode_fetch(part)
    return buffers


def encode_offsets(addresses: Sequence[int]) -> list[Buffer]:
    """The answer to an OFFSETS request."""
    count = len(addresses)
    head = _OFFSETS_HEAD.pack(_OFFSETS_HEAD.size - 4 + 8 * count, 0, count)
    return [head + struct.pack(f">{count}q", *addresses)]


def decode_fetch(answer: memoryview) -> Fetched:
    """Read the answer to a FETCH.

    Args:
        answer: without its length.

    Raises:
        MalformedRequest: it is shorter than its error code.
    """
    if len(answer) < _ERROR_BYTES:
        raise MalformedRequest("an answer is shorter than its error code")
    return Fetched(int.from_bytes(answer[:2], "big", signed=True), (answer[2:],))


def decode_multifetch(answer: memoryview) -> list[Fetched]:
    """Read the answer to a MULTIFETCH; as `decode_fetch`.

    Raises:
        MalformedRequest: a part is not whole.
    """
    decode_fetch(answer)
    parts: list[Fetched] = []
    position = _ERROR_BYTES
    while position < len(answer):
        size = int.from_bytes(answer[position : position + 4], "big", signed=True)
        position += 4
        if not _ERROR_BYTES <= size <= len(answer) - position:
            raise MalformedRequest("a part of an answer is not whole")
        parts.append(decode_fetch(answer[position : position + size]))
        position += size
    return parts


def decode_offsets(answer: memoryview) -> list[int]:
    """Read the answer to an OFFSETS request; as `decode_fetch`.

    Raises:
        MalformedRequest: it does not hold what it says it does.
    """
    if len(answer) < 6:
        raise MalformedRequest("an answer is shorter than its error code and count")
    count = int.from_bytes(answer[2:6], "big", signed=True)
    if len(answer) != 6 + 8 * count:
        raise MalformedRequest(f"an answer of {len(answer)} bytes does not hold {count} addresses")
    return list(struct.unpack_from(f">{count}q", answer, 6))
