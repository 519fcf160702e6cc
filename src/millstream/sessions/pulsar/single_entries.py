"""The messages of a batch as entries of their own, for clients that know no batches."""

from millstream.wire.pulsar.entry import Entry, encode_entry, read_messages
from millstream.wire.pulsar.errors import InvalidEntry
from millstream.wire.pulsar.pulsar_pb2 import MessageMetadata, SingleMessageMetadata

__all__ = ["single_entries"]

_OF_THE_BATCH = ("num_messages_in_batch", "compression", "uncompressed_size", "compacted_batch_indexes")
_OF_A_MESSAGE = (
    "partition_key",
    "partition_key_b64_encoded",
    "ordering_key",
    "event_time",
    "sequence_id",
    "null_value",
    "null_partition_key",
)


def single_entries(entry: Entry) -> list[bytearray | None] | None:
    """Take a batch apart.

    Args:
        entry: any entry.

    Returns:
        An entry for each message, without compression; None in the place of one that compaction has taken out. None
        for what is no batch, or can be read by its consumers only.
    """
    if not entry.is_batch or entry.is_encrypted or entry.is_chunk:
        return None
    found: list[bytearray | None] = []
    try:
        for index, single, content in read_messages(entry):
            assert isinstance(single, SingleMessageMetadata), "as in every batch"
            found.append(None if single.compacted_out else encode_entry(_metadata(entry, index, single), content))
    except InvalidEntry:
        return None
    return found


def _metadata(entry: Entry, index: int, single: SingleMessageMetadata) -> MessageMetadata:
    """What stands before a message: what its batch says of all, and what it says of itself."""
    metadata = MessageMetadata()
    metadata.CopyFrom(entry.metadata)
    for field in _OF_THE_BATCH:
        metadata.ClearField(field)
    metadata.sequence_id = entry.metadata.sequence_id + index
    for field in _OF_A_MESSAGE:
        if single.HasField(field):
            setattr(metadata, field, getattr(single, field))
    metadata.properties.extend(single.properties)
    return metadata
