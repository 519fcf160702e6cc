"""What consumers say of themselves when they join, in all versions of that message.

    version: int16, topics: array of string, user data: bytes
    since 1: owned partitions: array of (topic: string, partitions: array of int32)
    later versions only add behind

Source: Apache Kafka, ConsumerProtocolSubscription.json.
"""

import struct
from typing import Final

from millstream.broker.consumer_groups import Subscription
from millstream.sessions.kafka.consumer_fields import ConsumerFields

__all__ = ["decode_subscription", "subscribed_topics", "subscription_version"]

_OWNED_SINCE: Final = 1
_ERRORS: Final = (struct.error, UnicodeDecodeError, ValueError)


def subscription_version(metadata: bytes) -> int:
    """The version of a subscription; 0 if it is not one."""
    return max(int.from_bytes(metadata[:2], signed=True), 0) if len(metadata) > 1 else 0


def subscribed_topics(metadata: bytes) -> set[str]:
    """The topics in a subscription; none if it is not one."""
    fields = ConsumerFields(metadata)
    try:
        fields.int16()
        return set(fields.strings())
    except _ERRORS:
        return set()


def decode_subscription(metadata: bytes) -> Subscription | None:
    """The topics in a subscription, and the partitions that its member keeps while it joins; None if it is none."""
    fields = ConsumerFields(metadata)
    try:
        version = fields.int16()
        topics = frozenset(fields.strings())
        fields.skip_bytes()
        owned = fields.partitions() if version >= _OWNED_SINCE else frozenset()
    except _ERRORS:
        return None
    return Subscription(topics, owned)
