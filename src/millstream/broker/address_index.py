"""The byte addresses of one partition, for protocols that know no offsets.

Such a protocol sees a partition as one row of bytes, the frames in its own encoding one after the other, and a record
is where its bytes begin. So the address of a frame is that of the frame before, plus the bytes of that one:

    offset     0          10         25              25 = end of the log
    frame      |  A       |  B       |
    address    0          420        1037            1037 = end of the addresses

The index walks over the log once, in order, and keeps a checkpoint (an offset and its address) every 16 KiB of log.
From there on a reader counts again. What must hold for ever, a restart included:

- A frame's size does not change. Frames of other protocols are encoded in one of several *variants*, a setting. A new
  setting begins at the end of the log, where a checkpoint notes it; what stands before keeps its variant.
- Retention removes frames, not addresses: the first address is that of the first record left, counted back from the
  next checkpoint.
- Damage removes frames, not addresses, if a checkpoint behind it is known; its addresses are refused. Damage found
  when the index first comes that way takes up none, because nobody has been told any.
- Records that were gone before the index came that way take up one address each, so that whoever stood at the end of
  the index before them is told that something is missing, and is not led past it.
- What the disk lost of the log's tail is forgotten: a checkpoint counts only if the frame before it has the checksum
  that the checkpoint names.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from millstream.broker.errors import AddressDamaged
from millstream.model.frame import FrameHeader, read_frame_header
from millstream.storage.address_file import AddressFile, Checkpoint
from millstream.storage.errors import OffsetOutOfRange
from millstream.storage.log import PartitionLog

__all__ = ["AddressIndex", "Encoding"]

Buffer = bytes | bytearray | memoryview
INTERVAL_BYTES: Final = 16 * 1024
"""Bytes of log between two checkpoints at least: what a reader counts through, some ten microseconds' work. A
checkpoint takes 21 bytes of memory and 32 of disk."""
_READ_BYTES: Final = 64 * 1024
_REWRITE_RECORDS: Final = 4096
"""Checkpoints of removed records that may stand in the file before it is written anew: 128 KiB."""


class Encoding(Protocol):
    """The encoding whose bytes are addressed."""

    variant: int
    """How frames of other protocols are encoded now, 0 to 255."""

    def size(self, frame: memoryview, header: FrameHeader, variant: int) -> int:
        """Bytes of a whole frame in a variant of the encoding."""

    def encode(self, frame: memoryview, header: FrameHeader, variant: int) -> Buffer:
        """A whole frame in a variant of the encoding: as many bytes as `size` says."""

    def position(self, frame: memoryview, header: FrameHeader, variant: int, offset: int) -> int:
        """Where in those bytes the record with an offset begins."""


class _Frame(NamedTuple):
    """A frame on a walk, and where it stands."""

    frame: memoryview
    header: FrameHeader
    address: int
    size: int
    variant: int

    @property
    def stop(self) -> int:
        return self.address + self.size


class AddressIndex:
    """The addresses of one partition, on the loop's thread.

    Args:
        log: the partition's log.
        file: the journal, open.
        encoding: whose bytes are addressed.

    Raises:
        OSError, DiskFull: the journal cannot be read or written.
    """

    def __init__(self, log: PartitionLog, file: AddressFile, encoding: Encoding) -> None:
        self._log = log
        self._file = file
        self._encoding = encoding
        # Checkpoints, a column each; the last one read or written for good is before the tip, or is the tip.
        self._offsets = array("q")
        self._addresses = array("q")
        self._crcs = array("I")
        self._variants = array("B")
        # Numbers of checkpoints count from the first record of the first file: trimming changes neither.
        self._trimmed = 0
        self._first_in_file = 0
        self._rewriting = False
        self._written_tip: Checkpoint | None = None
        self._since_bytes = 0
        self._first: tuple[int, int] | None = None
        self._load()
        last = len(self._offsets) - 1
        self._tip = self._checkpoint(last) if last >= 0 else Checkpoint(0, 0, 0, encoding.variant)
        if last < 0:
            self._fix()
        self._switch_at = log.end_offset if self._tip.variant != encoding.variant else -1

    # Keeping up with the log

    @property
    def behind(self) -> bool:
        """Whether the log holds something that the index has not seen yet."""
        return self._tip.offset < self._log.end_offset or self._switch_at >= 0

    def catch_up(self, max_bytes: int) -> None:
        """Walk over what is new in the log.

        Args:
            max_bytes: about how much at a time; one frame at least.

        Raises:
            OSError, DiskFull: the journal cannot be written.
        """
        log = self._log
        left = max_bytes
        while self._tip.offset < log.end_offset and left > 0:
            data, next_offset = log.read(max(self._tip.offset, log.start_offset), min(left, _READ_BYTES))
            left -= max(len(data), 1)
            for frame, header in _frames(data):
                self._note(frame, header)
            if not data:  # all that is left is damaged
                self._tip = self._tip._replace(offset=next_offset, frame_crc=0)
        if 0 <= self._switch_at <= self._tip.offset:
            self._switch_at = -1
            self._fix()
            self._tip = self._tip._replace(variant=self._encoding.variant)
            self._fix()
        self._write_tip()

    def _note(self, frame: memoryview, header: FrameHeader) -> None:
        tip = self._tip
        address = tip.address
        if header.base_offset > tip.offset and tip.offset < self._log.start_offset:
            address += header.base_offset - tip.offset  # removed before it was seen: an address each
        if self._since_bytes >= INTERVAL_BYTES or header.base_offset != tip.offset:
            self._tip = Checkpoint(header.base_offset, address, tip.frame_crc, tip.variant)
            self._fix()
        size = self._encoding.size(frame, header, tip.variant)
        self._tip = Checkpoint(header.last_offset + 1, address + size, header.crc, tip.variant)
        self._since_bytes += header.size

    def _fix(self) -> None:
        """Make the tip a checkpoint that stays."""
        self._write_tip()
        self._append(self._tip)
        self._written_tip = None
        self._since_bytes = 0

    def _append(self, checkpoint: Checkpoint) -> None:
        self._offsets.append(checkpoint.offset)
        self._addresses.append(checkpoint.address)
        self._crcs.append(checkpoint.frame_crc)
        self._variants.append(checkpoint.variant)

    def _checkpoint(self, place: int) -> Checkpoint:
        return Checkpoint(self._offsets[place], self._addresses[place], self._crcs[place], self._variants[place])

    def _write_tip(self) -> None:
        """Write the tip behind the checkpoints that stay; the next one is written over it."""
        if self._written_tip == self._tip or self._rewriting:
            return
        self._file.write(self._trimmed + len(self._offsets) - self._first_in_file, [self._tip])
        self._written_tip = self._tip

    # What a start finds

    def _load(self) -> None:
        """Take the checkpoints that the log confirms, and drop the others from the file too."""
        found = self._file.read()
        count = len(found)
        while count and not self._confirmed(found[count - 1]):
            count -= 1
        self._file.cut(count)
        for checkpoint in found[:count]:
            self._append(checkpoint)

    def _confirmed(self, checkpoint: Checkpoint) -> bool:
        """Whether the frame before a checkpoint is the one that was there when it was written."""
        log = self._log
        if not checkpoint.offset <= log.end_offset:
            return False
        if checkpoint.offset <= log.start_offset or not checkpoint.frame_crc:
            return True
        data, _ = log.read(checkpoint.offset - 1, 1)
        if not data:
            return True  # damaged, which moves nothing
        header = read_frame_header(data)
        if header.base_offset >= checkpoint.offset:
            return True
        return header.last_offset + 1 == checkpoint.offset and header.crc == checkpoint.frame_crc

    # Reading

    @property
    def end_address(self) -> int:
        """The address behind the last record that the index has seen."""
        return self._tip.address

    def first_address(self) -> int:
        """The address of the first record that is left."""
        start = self._log.start_offset
        if self._first is None or self._first[0] != start:
            self._first = start, self._address_of_start(start)
        return self._first[1]

    def _address_of_start(self, start: int) -> int:
        """Find the address of the log's start, and let the first checkpoint be that of the frame it lies in."""
        if start >= self._tip.offset:
            return self._tip.address + start - self._tip.offset
        place = bisect_right(self._offsets, start) - 1
        data, _ = self._log.read(start, 1)
        header = read_frame_header(data) if data else None
        if header is None or header.base_offset >= self._tip.offset:
            return self._tip.address
        base, variant = header.base_offset, self._variants[place]
        if self._offsets[place] != base:
            # The frames between the checkpoint and here may be out of reach, but those up to the next are not.
            place = bisect_right(self._offsets, base) - 1
            address = self._counted_back(base, place + 1)
            variant = self._variants[place]
            self._set_checkpoint(place, Checkpoint(base, address, 0, variant))
        address = self._addresses[place]
        self._trim(place)
        if base < start:
            address += self._encoding.position(data[: header.size], header, variant, start)
        return address

    def _counted_back(self, offset: int, place: int) -> int:
        """The address of a frame, from the checkpoint behind it.

        Args:
            offset: with which the frame begins.
            place: of the next checkpoint; the tip if there is none.
        """
        anchor = self._checkpoint(place) if place < len(self._offsets) else self._tip
        variant = self._variants[place - 1]
        size = sum(self._encoding.size(frame, header, variant) for frame, header in self._walk(offset, anchor.offset))
        return max(anchor.address - size, self._addresses[place - 1])

    def _walk(self, offset: int, stop_offset: int) -> Iterator[tuple[memoryview, FrameHeader]]:
        """The frames from the one with an offset on, up to another offset."""
        while offset < stop_offset:
            data, offset = self._log.read(max(offset, self._log.start_offset), INTERVAL_BYTES)
            if not data:
                return
            for frame, header in _frames(data):
                if header.base_offset >= stop_offset:
                    return
                yield frame, header

    def read(self, address: int, max_bytes: int) -> list[Buffer]:
        """Read bytes.

        Args:
            address: where to begin; anywhere, also in the middle of a record.
            max_bytes: at most; at least 1.

        Returns:
            As many bytes as that or as there are, in pieces; fewer where damage follows.

        Raises:
            OffsetOutOfRange: the address lies before the first or behind the last.
            AddressDamaged: what stood there is damaged.
        """
        if not self.first_address() <= address <= self.end_address:
            raise OffsetOutOfRange(
                f"address {address} is not between {self.first_address()} and {self.end_address}"
            )
        out: list[Buffer] = []
        left = min(max_bytes, self.end_address - address)
        for one in self._frames_at(address, left):
            if one.address > address:
                break  # damage in between
            piece = memoryview(self._encoding.encode(one.frame, one.header, one.variant))
            piece = piece[address - one.address : address - one.address + left]
            out.append(piece)
            left -= len(piece)
            address += len(piece)
            if not left:
                return out
        if left and not out:
            raise AddressDamaged(f"what stood at address {address} is damaged")
        return out

    def _frames_at(self, address: int, wanted_bytes: int) -> Iterator[_Frame]:
        """The frames from the one that holds an address on."""
        log = self._log
        place = bisect_right(self._addresses, address) - 1
        offset, at, _, variant = self._checkpoint(place)
        while offset < self._tip.offset:
            data, next_offset = log.read(max(offset, log.start_offset), INTERVAL_BYTES + wanted_bytes)
            if not data:
                return
            for frame, header in _frames(data):
                base = header.base_offset
                place = max(bisect_right(self._offsets, base) - 1, place)
                if base >= self._tip.offset:
                    return
                if self._offsets[place] == base:
                    at, variant = self._addresses[place], self._variants[place]
                elif base > offset:
                    variant = self._variants[place]
                    at = max(self._counted_back(base, place + 1), at)
                size = self._encoding.size(frame, header, variant)
                offset = header.last_offset + 1
                if at + size > address:
                    yield _Frame(frame, header, at, size, variant)
                at += size
            offset = next_offset

    def segment_addresses(self, offsets: list[int]) -> list[int]:
        """The addresses of offsets with which frames begin, in the same order; each at or behind the first left."""
        return [self._address_of_frame(offset) for offset in offsets]

    def _address_of_frame(self, offset: int) -> int:
        if offset <= self._log.start_offset:
            return self.first_address()
        if offset >= self._tip.offset:
            return self.end_address
        place = bisect_left(self._offsets, offset)
        if place < len(self._offsets) and self._offsets[place] == offset:
            return self._addresses[place]
        return self._counted_back(offset, place)

    # Making room

    def _set_checkpoint(self, place: int, checkpoint: Checkpoint) -> None:
        self._offsets[place], self._addresses[place] = checkpoint.offset, checkpoint.address
        self._crcs[place], self._variants[place] = checkpoint.frame_crc, checkpoint.variant

    def _trim(self, place: int) -> None:
        """Forget the checkpoints before a place."""
        self._trimmed += place
        for column in (self._offsets, self._addresses, self._crcs, self._variants):
            del column[:place]

    def rewriting(self) -> Callable[[], None] | None:
        """What must run, off the loop's thread, to give the file without the checkpoints of removed records.

        `rewritten` is to be called when it is done. None if it is not worth it.
        """
        gone = self._trimmed - self._first_in_file
        if self._rewriting or gone < max(_REWRITE_RECORDS, len(self._offsets)):
            return None
        self._rewriting = True
        checkpoints = [self._checkpoint(place) for place in range(len(self._offsets))]
        self._rewritten_from = self._trimmed, len(checkpoints)
        return lambda: self._file.replace(checkpoints)

    def rewritten(self, error: BaseException | None) -> None:
        """Go on writing, to the new file unless it could not be made. Raises OSError, DiskFull."""
        self._rewriting = False
        first, count = self._rewritten_from
        if error is None:
            self._file.reopen()
            self._first_in_file = first
        # What was fixed meanwhile is in neither file. Checkpoints may have been trimmed away before it.
        begin = max(first + count, self._trimmed)
        missed = [self._checkpoint(place) for place in range(begin - self._trimmed, len(self._offsets))]
        self._file.write(begin - self._first_in_file, missed)
        self._written_tip = None
        self._write_tip()

    def sync_work(self) -> Callable[[], None]:
        """What must run, off the loop's thread, to put the checkpoints written so far on the disk."""
        return self._file.sync

    def close(self) -> None:
        """Close the journal."""
        self._file.close()


def _frames(data: memoryview) -> Iterator[tuple[memoryview, FrameHeader]]:
    position = 0
    while position < len(data):
        header = read_frame_header(data, position)
        yield data[position : position + header.size], header
        position += header.size
