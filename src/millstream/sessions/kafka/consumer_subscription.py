"""What consumers say of themselves when they join: the topics they subscribe to, in all versions of that message.

    version: int16, topics: array of string, ... (later versions only add behind)

Source: Apache Kafka, ConsumerProtocolSubscription.json.
"""

import struct

__all__ = ["subscribed_topics"]


def subscribed_topics(metadata: bytes) -> set[str]:
    """The topics in a subscription; none if it is not one."""
    try:
        _, count = struct.unpack_from(">hi", metadata)
        position, topics = 6, set()
        for _ in range(count):
            (size,) = struct.unpack_from(">h", metadata, position)
            if size < 0:
                return set()
            topics.add(metadata[position + 2 : position + 2 + size].decode())
            position += 2 + size
    except (struct.error, UnicodeDecodeError):
        return set()
    return topics
