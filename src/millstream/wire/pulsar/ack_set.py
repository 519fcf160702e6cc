"""Which messages of a batch are still to be acknowledged: bit i of the set is message i, and 1 means "still open".

On the wire it is a list of signed words of 64 bits, lowest first, without zero words at the end. Here it is one int.
Clients leave out messages whose bit is 0 in a MESSAGE. The C++ client and those built on it look at nothing else: a
message that compaction took out of a batch is given to the application, empty, unless its bit is 0.

Source: the ack sets of the C++ client; java.util.BitSet, whose form it is.
"""

import struct
from collections.abc import Iterable, Sequence

from millstream.wire.pulsar.entry import Entry

__all__ = ["decode_ack_set", "encode_ack_set", "open_messages"]

_WORD_BYTES = 8


def open_messages(entry: Entry, acknowledged: Iterable[int] = ()) -> int:
    """The set of an entry's messages, without those that compaction took out and those acknowledged.

    Args:
        entry: the entry.
        acknowledged: indexes of messages in it; what is no such index does not count.
    """
    count = entry.message_count
    bits = bytearray(((1 << count) - 1).to_bytes((count + 7) // 8, "little"))
    for index in (*entry.metadata.compacted_batch_indexes, *acknowledged):
        if 0 <= index < count:
            bits[index >> 3] &= ~(1 << (index & 7))
    return int.from_bytes(bits, "little")


def encode_ack_set(open_bits: int) -> list[int]:
    """Turn a set into words."""
    count = (open_bits.bit_length() + 63) // 64
    return list(struct.unpack(f"<{count}q", open_bits.to_bytes(count * _WORD_BYTES, "little")))


def decode_ack_set(words: Sequence[int], message_count: int) -> int:
    """Turn words into a set.

    Args:
        words: signed, as protobuf gives them.
        message_count: of the batch; bits beyond it are dropped, and words beyond it not looked at.
    """
    count = min(len(words), (message_count + 63) // 64)
    bits = int.from_bytes(struct.pack(f"<{count}q", *words[:count]), "little")
    return bits & ((1 << message_count) - 1)
