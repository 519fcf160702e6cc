"""Entries as compaction leaves them."""

from collections.abc import Container

from millstream.wire.pulsar.entry import CompactedEntry, Entry, read_messages

__all__ = ["compact_entry"]


def compact_entry(entry: Entry, kept: Container[int]) -> bytearray:
    """The entry with some of the messages of a batch only, by their indexes."""
    compacted = CompactedEntry(entry)
    for message in read_messages(entry):
        compacted.add(message, stays=message.batch_index in kept)
    return compacted.encode()
