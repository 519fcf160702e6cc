"""Message sets of Kafka 0.7 for tests."""

from collections.abc import Iterable

from millstream.wire.compression import Codec
from millstream.wire.kafka07.messages import encode_message, encode_wrapper

__all__ = ["message_set", "wrapper"]


def message_set(*payloads: bytes, magic: int = 0) -> bytes:
    """A set of plain messages."""
    return b"".join(encode_message(payload, magic) for payload in payloads)


def wrapper(payloads: Iterable[bytes], codec: Codec = Codec.GZIP, magic: int = 0) -> bytes:
    """A set of one compressed message with plain messages inside."""
    return encode_wrapper([encode_message(payload, magic) for payload in payloads], codec)
