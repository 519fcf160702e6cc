"""Bounds on what a Pulsar peer sends, each with its unit and its reason."""

from typing import Final

__all__ = [
    "BATCH_MESSAGES_MAX",
    "COMMAND_BYTES_MAX",
    "ENTRY_BYTES_MAX",
    "FRAME_BYTES_MAX",
    "MESSAGE_BYTES_MAX",
    "METADATA_BYTES_MAX",
]

MESSAGE_BYTES_MAX: Final = 5 * 1024 * 1024
"""Bytes of metadata and payload of one entry, as the specification has it; CONNECTED tells clients."""

FRAME_BYTES_MAX: Final = MESSAGE_BYTES_MAX + 10 * 1024
"""Bytes of a frame behind its total size: the room that Apache Pulsar's decoder leaves for the command itself."""

ENTRY_BYTES_MAX: Final = FRAME_BYTES_MAX - 4 * 1024
"""Bytes of an entry that is taken: what is left of a frame for the MESSAGE that delivers it, which may have to say
which messages of a batch it is for."""

COMMAND_BYTES_MAX: Final = 1024 * 1024
"""Bytes of a command: a schema or a thousand message ids with their bitmaps fit many times. An empty element of a
list takes two bytes on the wire and some seventy in memory, so that the limit of the frame is none for memory."""

METADATA_BYTES_MAX: Final = 1024 * 1024
"""Bytes of an entry's metadata, and of one message's in a batch; properties are lists too."""

BATCH_MESSAGES_MAX: Final = 128 * 1024
"""Messages that an entry may say it holds: clients batch 1,000 by default, and each costs readers of other protocols
microseconds, however well it was compressed."""
