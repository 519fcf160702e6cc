"""What stands before the entries in the MESSAGE frames of one consumer: almost the same bytes each time.

Of an entry that is sent whole and for the first time, only the total size and the entry id differ. An entry id is a
varint, whose first byte has the lowest seven bits: the others are those of the entry before, most of the time.

Field numbers are those of `proto/pulsar.proto`; a test holds the bytes against protobuf's.
"""

import struct
from typing import Final

from millstream.wire.pulsar.entry_messages import write_messages
from millstream.wire.pulsar.entry_run import EntryRun
from millstream.wire.pulsar.frames import varint

__all__ = ["MessageHeads"]

_HEAD_BYTES_MAX: Final = 128
_SIZE: Final = struct.Struct(">I")
_LOW_BITS: Final = 128
_LOW: Final = [bytes((number | _LOW_BITS,)) for number in range(_LOW_BITS)]
"""First bytes of varints that have more than one, by their seven bits."""


class MessageHeads:
    """Writes the heads of frames.

    Args:
        consumer_id, ledger_id: from 0 on, below 2^64.
        partition: -1 for a topic that has none.
        epoch: the consumer's; None if it has given none.
    """

    __slots__ = ("_before", "_behind", "_fixed_bytes", "_high", "_parts", "epoch")

    def __init__(self, consumer_id: int, ledger_id: int, partition: int, epoch: int | None) -> None:
        self.epoch = epoch
        self._parts = (
            b"\x08" + varint(consumer_id) + b"\x12",
            b"\x08" + varint(ledger_id) + b"\x10",
            b"" if partition < 0 else b"\x18" + varint(partition),
            b"" if epoch is None else b"\x28" + varint(epoch),
        )
        self._high = -1
        self._before = self._behind = b""
        self._fixed_bytes = 0

    def head(self, entry_id: int, payload_bytes: int) -> bytes:
        """Build what stands before an entry.

        Args:
            entry_id: from 0 on.
            payload_bytes: of all that will be written behind it.
        """
        high = entry_id >> 7
        if high != self._high or not high:
            self._prepare(entry_id)
        if not high:
            return _SIZE.pack(self._fixed_bytes + payload_bytes) + self._before + self._behind
        return b"".join(
            (
                _SIZE.pack(self._fixed_bytes + payload_bytes),
                self._before,
                _LOW[entry_id & 127],
                self._behind,
            )
        )

    def frames(self, run: EntryRun) -> memoryview:
        """Build the frames of several entries, with the entries in them.

        Args:
            run: the entries.
        """
        out = memoryview(bytearray(len(run.data) + _HEAD_BYTES_MAX * len(run.offsets)))
        return out[: write_messages(run.data, run.starts, run.offsets, *self._parts, out)]

    def _prepare(self, entry_id: int) -> None:
        """Build what is the same for all entries whose ids differ in their lowest bits alone."""
        self._high = high = entry_id >> 7
        of_consumer, of_ledger, of_partition, of_epoch = self._parts
        whole_id = varint(entry_id)
        rest = whole_id[1:] if high else b""
        id_bytes = len(of_ledger) + len(whole_id) + len(of_partition)
        body_bytes = len(of_consumer) + 1 + id_bytes + len(of_epoch)
        command_start = b"\x08\x09\x4a" + varint(body_bytes)
        command_bytes = len(command_start) + body_bytes
        self._before = _SIZE.pack(command_bytes) + command_start + of_consumer + varint(id_bytes) + of_ledger
        if not high:
            self._before += whole_id
        self._behind = rest + of_partition + of_epoch
        self._fixed_bytes = 4 + command_bytes
