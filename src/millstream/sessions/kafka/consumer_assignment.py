"""What a consumer of a group is assigned, as the members of a group tell each other.

    version: int16, topics: array of (topic: string, partitions: array of int32), user data: bytes

Source: Apache Kafka, ConsumerProtocolAssignment.json.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from millstream.sessions.kafka.consumer_fields import ConsumerFields

__all__ = ["ConsumerAssignment", "decode_assignment", "encode_assignment"]

_NO_USER_DATA = struct.pack(">i", -1)


def encode_assignment(partitions: Mapping[str, Sequence[int]], version: int = 0) -> bytes:
    """An assignment.

    Args:
        partitions: by topic.
        version: of the message; all have the same fields.
    """
    parts = [struct.pack(">hi", version, len(partitions))]
    for topic, indexes in partitions.items():
        name = topic.encode()
        parts.append(struct.pack(">h", len(name)) + name)
        parts.append(struct.pack(f">i{len(indexes)}i", len(indexes), *indexes))
    return b"".join((*parts, _NO_USER_DATA))


class ConsumerAssignment(NamedTuple):
    """An assignment.

    Args:
        partitions: the number of each with its topic.
        has_user_data: whether the assignor tells its member more than that.
    """

    partitions: frozenset[tuple[str, int]]
    has_user_data: bool


def decode_assignment(content: bytes) -> ConsumerAssignment | None:
    """An assignment; None if it is not one."""
    fields = ConsumerFields(content)
    try:
        fields.int16()
        return ConsumerAssignment(fields.partitions(), fields.bytes_follow())
    except (struct.error, UnicodeDecodeError, ValueError):
        return None
