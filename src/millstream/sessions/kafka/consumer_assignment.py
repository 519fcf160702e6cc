"""What a consumer of a group is assigned, as the members of a group tell each other.

    version: int16, topics: array of (topic: string, partitions: array of int32), user data: bytes

Source: Apache Kafka, ConsumerProtocolAssignment.json.
"""

import struct
from collections.abc import Mapping, Sequence

__all__ = ["encode_assignment"]

_NO_USER_DATA = struct.pack(">i", -1)


def encode_assignment(partitions: Mapping[str, Sequence[int]]) -> bytes:
    """An assignment of version 0.

    Args:
        partitions: by topic.
    """
    parts = [struct.pack(">hi", 0, len(partitions))]
    for topic, indexes in partitions.items():
        name = topic.encode()
        parts.append(struct.pack(">h", len(name)) + name)
        parts.append(struct.pack(f">i{len(indexes)}i", len(indexes), *indexes))
    return b"".join((*parts, _NO_USER_DATA))
