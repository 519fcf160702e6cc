"""The two commands that every message costs, written without making protobuf messages, which takes twice as long.

Field numbers are those of `proto/pulsar.proto`; a test holds the bytes against protobuf's.
"""

import struct
from collections.abc import Sequence
from typing import Final

from millstream.wire.pulsar.frames import varint

__all__ = ["encode_message", "encode_send_receipt"]

_SIZES: Final = struct.Struct(">II")
_UINT64: Final = 0xFFFFFFFFFFFFFFFF
_SMALL: Final = [bytes((value,)) for value in range(128)]
"""Varints of one byte, and lengths, made once."""


def _varint(value: int) -> bytes:
    return _SMALL[value] if value < 128 else varint(value)


def _message_id(ledger_id: int, entry_id: int, partition: int) -> bytes:
    content = b"\x08" + _varint(ledger_id) + b"\x10" + _varint(entry_id)
    return content if partition < 0 else content + b"\x18" + _varint(partition)


def encode_message(
    consumer_id: int,
    ledger_id: int,
    entry_id: int,
    partition: int,
    payload_bytes: int,
    redelivery_count: int = 0,
    ack_set: Sequence[int] = (),
    consumer_epoch: int | None = None,
) -> bytes:
    """Build what stands before the entry in the frame of a MESSAGE.

    Args:
        consumer_id, ledger_id, entry_id: from 0 on, below 2^64.
        partition: -1 for a topic that has none.
        payload_bytes: of all that will be written behind this: broker entry metadata, if any, and the entry.
        redelivery_count: how often the entry was sent before; below 2^32.
        ack_set: words of 64 bits, signed; see `ack_set.encode_ack_set`. None for an entry sent whole.
        consumer_epoch: the epoch that the consumer gave; None if it gave none.
    """
    message_id = _message_id(ledger_id, entry_id, partition)
    body = b"\x08" + _varint(consumer_id) + b"\x12" + _SMALL[len(message_id)] + message_id
    if redelivery_count:
        body += b"\x18" + _varint(redelivery_count)
    for word in ack_set:
        body += b"\x20" + _varint(word & _UINT64)
    if consumer_epoch is not None:
        body += b"\x28" + _varint(consumer_epoch)
    command = b"\x08\x09\x4a" + _varint(len(body)) + body
    return _SIZES.pack(4 + len(command) + payload_bytes, len(command)) + command


def encode_send_receipt(
    producer_id: int,
    sequence_id: int,
    ledger_id: int,
    entry_id: int,
    partition: int,
    highest_sequence_id: int = 0,
) -> bytes:
    """Build the frame of a SEND_RECEIPT.

    Args:
        producer_id, sequence_id: of the SEND.
        ledger_id, entry_id: of the entry as stored; both -1 for a message that was a duplicate.
        partition: -1 for a topic that has none.
        highest_sequence_id: of the SEND; 0 if it had none.
    """
    message_id = _message_id(ledger_id & _UINT64, entry_id & _UINT64, partition)
    body = b"\x08" + _varint(producer_id) + b"\x10" + _varint(sequence_id)
    body += b"\x1a" + _SMALL[len(message_id)] + message_id
    if highest_sequence_id:
        body += b"\x20" + _varint(highest_sequence_id)
    command = b"\x08\x07\x3a" + _SMALL[len(body)] + body
    return _SIZES.pack(4 + len(command), len(command)) + command
