"""The key by which Key_Shared subscriptions divide entries among consumers.

Source: the consumers of Apache Pulsar.
"""

import base64
import binascii

from millstream.wire.pulsar.pulsar_pb2 import MessageMetadata, SingleMessageMetadata

__all__ = ["partition_key", "sticky_key"]


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
