"""What a consumer of a group is assigned, as the members of a group tell each other.

    version: int16, topics: array of (topic: string, partitions: array of int32), user data: bytes

Source: Apache Kafka, ConsumerProtocolAssignment.json.
"""

import struct
from collections.abc import Mapping, Sequence

from millstream.sessions.kafka.consumer_fields import ConsumerFields

__all__ = ["decode_assignment", "encode_assignment"]

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


def decode_assignment(content: bytes) -> frozenset[tuple[str, int]] | None:
    """The partitions in an assignment; None if it is not one."""
    fields = ConsumerFields(content)
    try:
        fields.int16()
        return fields.partitions()
    except (struct.error, UnicodeDecodeError, ValueError):
        return None
