"""The last messages of a batch as an entry of their own."""

from millstream.wire.pulsar.compression import compress
from millstream.wire.pulsar.entry import Entry, encode_entry, read_messages
from millstream.wire.pulsar.errors import InvalidEntry
from millstream.wire.pulsar.pulsar_pb2 import NONE, MessageMetadata, SingleMessageMetadata

__all__ = ["entry_tail"]

_LENGTH_BYTES = 4


def entry_tail(entry: Entry, start: int) -> bytearray | None:
    """Build the entry of the messages from a place in a batch on; all that the batch says of itself stays.

    Args:
        entry: a batch.
        start: the first message's place.

    Returns:
        The entry; None if the batch can be read by its consumers only.
    """
    if not entry.is_batch or entry.is_encrypted or entry.is_chunk:
        return None
    payload = bytearray()
    sequence_id = entry.metadata.sequence_id
    try:
        for index, metadata, content in read_messages(entry):
            if index < start:
                continue
            if index == start and isinstance(metadata, SingleMessageMetadata) and metadata.HasField("sequence_id"):
                sequence_id = metadata.sequence_id
            head = metadata.SerializeToString()
            payload += len(head).to_bytes(_LENGTH_BYTES, "big") + head + content
    except InvalidEntry:
        return None
    whole = MessageMetadata()
    whole.CopyFrom(entry.metadata)
    whole.sequence_id = sequence_id
    whole.num_messages_in_batch = entry.message_count - start
    taken_out = [index - start for index in entry.metadata.compacted_batch_indexes if index >= start]
    whole.compacted_batch_indexes[:] = taken_out
    if whole.compression != NONE:
        whole.uncompressed_size = len(payload)
    return encode_entry(whole, compress(whole.compression, payload))
