"""The key by which Key_Shared subscriptions divide entries among consumers, and its hash.

Source: the consumers of Apache Pulsar; MurmurHash3_x86_32 with seed 0, of which Pulsar keeps 31 bits.
"""

import base64
import binascii
from typing import Final

import mmh3

from millstream.wire.pulsar.pulsar_pb2 import MessageMetadata, SingleMessageMetadata

__all__ = ["HASH_SLOTS", "partition_key", "sticky_hash", "sticky_key", "sticky_slot"]

HASH_SLOTS: Final = 65536
"""Slots of the ring that Key_Shared consumers share, numbered from 0."""

_HASH_MASK: Final = 0x7FFFFFFF


def partition_key(metadata: MessageMetadata | SingleMessageMetadata) -> bytes | None:
    """The key of a message, or of all messages of a batch; None if there is none.

    A key that says it is base64 and is not counts as it stands.
    """
    if metadata.null_partition_key or not metadata.HasField("partition_key"):
        return None
    key = metadata.partition_key
    if metadata.partition_key_b64_encoded:
        try:
            return base64.b64decode(key, validate=True)
        except binascii.Error:
            return key
    return key


def sticky_key(metadata: MessageMetadata | SingleMessageMetadata) -> bytes | None:
    """The ordering key if there is one, else the partition key; None if there is neither.

    Consumers are chosen by the metadata of an entry, so that producers make a batch of one key's messages.
    """
    return metadata.ordering_key if metadata.HasField("ordering_key") else partition_key(metadata)


def sticky_hash(key: bytes) -> int:
    """The hash of a key, from 0 to 2^31 - 1; partitions are chosen by it too."""
    return mmh3.hash(key, 0, signed=False) & _HASH_MASK


def sticky_slot(key: bytes) -> int:
    """The slot of a key, from 0 to HASH_SLOTS - 1."""
    return sticky_hash(key) % HASH_SLOTS
