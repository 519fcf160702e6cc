"""What may stand before an encoded value: nothing, or the five bytes that Confluent's serializers write.

    magic: 0x00    schema id: int32, big-endian

For Protobuf the indexes of the message in its file follow, see `protobuf`.

Source: Confluent Schema Registry, "Wire format".
"""

from enum import StrEnum
from typing import Final

__all__ = ["CONFLUENT_BYTES", "Framing", "Undecodable", "unframed"]

CONFLUENT_BYTES: Final = 5


class Undecodable(Exception):
    """One value cannot be decoded; the text says why."""


class Framing(StrEnum):
    """The two."""

    NONE = "none"
    CONFLUENT = "confluent"


def unframed(value: bytes) -> tuple[int, bytes]:
    """Take the five bytes off.

    Returns:
        The schema id, and what stands behind.

    Raises:
        Undecodable: they are not there.
    """
    if len(value) < CONFLUENT_BYTES or value[0]:
        raise Undecodable("it does not begin with a schema id in Confluent's form")
    return int.from_bytes(value[1:CONFLUENT_BYTES], "big"), value[CONFLUENT_BYTES:]
