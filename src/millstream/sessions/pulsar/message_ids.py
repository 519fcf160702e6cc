"""Message ids: how Pulsar clients name places that are offsets here.

    ledger id     a number made of the topic's id, the same for all its partitions and for ever
    entry id      offset of the entry's first message
    partition     number of the partition, -1 if the topic has none
    batch index   place in the entry, -1 in an entry that is no batch

A message's offset is its entry id plus its batch index. Two ids are not ids of messages: the earliest message, whose
numbers are both -1, unsigned and of 64 bits, and the latest, whose numbers are both 2^63 - 1.

Source: `MessageId` of the C++ and Java clients.
"""

import struct
from collections.abc import Sequence
from typing import Final

from millstream.broker.partition import Partition
from millstream.broker.topics import Topic
from millstream.wire.pulsar.limits import BATCH_MESSAGES_MAX
from millstream.wire.pulsar.pulsar_pb2 import MessageIdData

__all__ = ["BEFORE_THE_FIRST", "NO_REQUEST", "as_signed", "ledger_id_of", "place_of", "wanted_of"]

BEFORE_THE_FIRST: Final = 2**64 - 1
"""-1 as clients write it: as an entry id, what stands before the first entry."""
NO_REQUEST: Final = 2**64 - 1
"""The request id of what the broker sends unasked."""

_LATEST: Final = 2**63 - 1
_LEDGER_ID_BITS: Final = 42
"""Ledger ids take 6 bytes on the wire then, and are exact as floating-point numbers too, as JavaScript has them."""
_WORD_BITS: Final = 64
_WORDS_MAX: Final = BATCH_MESSAGES_MAX // _WORD_BITS


def ledger_id_of(topic: Topic) -> int:
    """The ledger id of a topic, from 1 on."""
    return (topic.id.int >> (128 - _LEDGER_ID_BITS)) + 1


def as_signed(number: int) -> int:
    """What a client means by an unsigned number of 64 bits: those above 2^63 - 1 are negative."""
    return number - 2**64 if number > _LATEST else number


def place_of(message_id: MessageIdData, ledger_id: int, partition: Partition) -> int:
    """The offset of the message that an id names; where a reader begins that is to begin there.

    An id of another ledger is one of a topic of this name that was deleted: all that there is came after it.

    Args:
        message_id: the id; instead of a batch index it may have the set of the messages that are not acknowledged,
            as the Java client writes it.
        ledger_id: of the topic.
        partition: which one.

    Returns:
        An offset, which may lie outside the log.
    """
    if message_id.ledgerId == _LATEST:
        return partition.log.end_offset
    if message_id.ledgerId != ledger_id or as_signed(message_id.entryId) < 0:
        return partition.log.start_offset
    wanted = wanted_of(message_id.ack_set)
    if message_id.batch_index < 0 and wanted:
        return message_id.entryId + (wanted & -wanted).bit_length() - 1
    return message_id.entryId + max(message_id.batch_index, 0)


def wanted_of(words: Sequence[int]) -> int | None:
    """The messages of an entry that are not acknowledged, bit n for message n; None if all of it is acknowledged.

    Args:
        words: of 64 bits, signed, lowest first.
    """
    count = min(len(words), _WORDS_MAX)
    return int.from_bytes(struct.pack(f"<{count}q", *words[:count]), "little") or None
