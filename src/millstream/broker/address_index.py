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
- What a transaction has not decided is not addressed yet, nor what is behind it. What one aborted takes up nothing.
- Records that were gone before the index came that way take up one address each, so that whoever stood at the end of
  the index before them is told that something is missing, and is not led past it.
- Compaction takes records away, not addresses: of the frames between two checkpoints, those that are left end where
  the second one begins. So a record's address only grows, and whoever has read up to an address misses nothing behind
  it. An address at which no message begins any more stands for the next at which one does, here and in all of the
  partition: who was led on has counted wrong from then on, and meets some records twice until it is right again.
- What the disk lost of the log's tail is forgotten: a checkpoint counts only if the frame before it has the checksum
  that the checkpoint names.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final, NamedTuple, Protocol

from millstream.broker.partition import Partition
from millstream.model.errors import MillstreamError
from millstream.model.frame import FrameHeader, base_offset_at, read_frame_header
from millstream.model.frame_span import FrameSpan, frame_of, take_span
from millstream.storage.address_file import AddressFile, Checkpoint
from millstream.storage.errors import DiskFull, OffsetOutOfRange

__all__ = ["AddressDamaged", "AddressIndex", "EncodedFrames", "Encoding"]

Buffer = bytes | bytearray | memoryview
INTERVAL_BYTES: Final = 16 * 1024
"""Bytes of log between two checkpoints at least: what a reader counts through, some ten microseconds' work. A
checkpoint takes 21 bytes of memory and 32 of disk."""
_READ_BYTES: Final = 64 * 1024
_NO_LIMIT: Final = 2**63
_KEPT_FRAME_BYTES_MIN: Final = 32 * 1024
"""Bytes of an encoded frame from which on it is worth keeping for the next answer."""
_REWRITE_RECORDS: Final = 4096
"""Checkpoints of removed records that may stand in the file before it is written anew: 128 KiB."""


class AddressDamaged(MillstreamError):
    """What stood at an address is damaged, and not served."""


class Encoding(Protocol):
    """The encoding whose bytes are addressed."""

    variant: int
    """How frames of other protocols are encoded now, 0 to 255."""

    def size(self, span: FrameSpan, variant: int) -> int:
        """Bytes of whole frames in a variant of the encoding."""

    def encode(self, where: str, span: FrameSpan, variant: int) -> Buffer:
        """Whole frames in a variant of the encoding: as many bytes as `size` says. `where` names the partition."""

    def position(self, frame: memoryview, header: FrameHeader, variant: int, offset: int) -> int:
        """Where in the bytes of a frame the record with an offset begins."""

    def boundary(self, content: memoryview, position: int) -> int:
        """The first position from one on at which a record begins in encoded frames; their end if there is none."""


class _Encoded(NamedTuple):
    """Frames in their encoding, and the offset behind them."""

    content: memoryview
    next_offset: int


class EncodedFrames:
    """Frames that were read and encoded, but did not fit into an answer whole: the next one begins with them.

    Args:
        bytes_max: of all that is kept, of all partitions; one frame is, whatever its size.
    """

    def __init__(self, bytes_max: int = 16 * 1024 * 1024) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._frames: OrderedDict[tuple[int, int], tuple[_Encoded, int]] = OrderedDict()
        self._owners = count()

    def owner(self) -> int:
        """A number for a partition; offsets are unique in it."""
        return next(self._owners)

    def find(self, owner: int, base_offset: int) -> _Encoded | None:
        """A frame that was kept."""
        found = self._frames.get((owner, base_offset))
        if found is None:
            return None
        self._frames.move_to_end((owner, base_offset))
        return found[0]

    def keep(self, owner: int, base_offset: int, encoded: _Encoded) -> None:
        """Keep a frame."""
        self._bytes -= self._frames.pop((owner, base_offset), (None, 0))[1]
        # A view keeps all that was read with it.
        size = len(memoryview(encoded.content.obj))
        self._frames[owner, base_offset] = encoded, size
        self._bytes += size
        while self._bytes > self._bytes_max and len(self._frames) > 1:
            self._bytes -= self._frames.popitem(last=False)[1][1]


class _Piece(NamedTuple):
    """Frames in their encoding on a walk, and where they begin."""

    address: int
    base_offset: int
    encoded: _Encoded


class AddressIndex:
    """The addresses of one partition, on the loop's thread.

    Args:
        partition: whose.
        file: the journal, open.
        encoding: whose bytes are addressed.
        encoded: keeps what was encoded last.

    Raises:
        OSError: the journal cannot be read.
    """

    def __init__(self, partition: Partition, file: AddressFile, encoding: Encoding, encoded: EncodedFrames) -> None:
        self._partition = partition
        self._log = partition.log
        self._file = file
        self._encoding = encoding
        self._encoded = encoded
        self._owner = encoded.owner()
        # Checkpoints, a column each; the last one read or written for good is before the tip, or is the tip.
        self._offsets = array("q")
        self._addresses = array("q")
        self._crcs = array("I")
        self._variants = array("B")
        self._rewritten = array("B")
        # How many records of the file stay, and how many of the first checkpoints here are among them.
        self._file_records = 0
        self._stored = 0
        self._stored_tip: Checkpoint | None = None
        self._rewriting = False
        self._since_bytes = 0
        self._first: tuple[int, int] | None = None
        self._load()
        last = len(self._offsets) - 1
        self._tip = self._checkpoint(last) if last >= 0 else Checkpoint(0, 0, 0, encoding.variant)
        self._tip = self._tip._replace(rewritten=0)
        if last < 0:
            self._fix()
        self._switch_at = partition.stable_offset if self._tip.variant != encoding.variant else -1

    # Keeping up with the log

    @property
    def behind(self) -> bool:
        """Whether the log holds something decided that the index has not seen yet."""
        return self._tip.offset < self._partition.stable_offset or self._switch_at >= 0

    @property
    def seen_offset(self) -> int:
        """The offset up to which the index knows the addresses."""
        return self._tip.offset

    def catch_up(self, max_bytes: int) -> None:
        """Walk over what is new in the log.

        Args:
            max_bytes: about how much at a time; one frame at least.

        Raises:
            OSError, DiskFull: the journal cannot be written.
        """
        log = self._log
        left = max_bytes
        stable_offset = self._partition.stable_offset
        while self._tip.offset < stable_offset and left > 0:
            data, _ = log.read(max(self._tip.offset, log.start_offset), min(left, _READ_BYTES))
            left -= max(len(data), 1)
            is_last = not data
            position = 0
            while position < len(data):
                # As if frames were counted one by one: a checkpoint is due before the next one.
                until_due = INTERVAL_BYTES - self._since_bytes
                span = self._take(data, position, stable_offset, until_due if until_due > 0 else INTERVAL_BYTES)
                is_last = span.base_offset >= stable_offset
                if is_last:
                    break
                self._note(span)
                position += len(span.data)
            if is_last and self._tip.offset < stable_offset:  # all that is left is damaged, or was removed
                gone = max(min(log.start_offset, stable_offset) - self._tip.offset, 0)
                self._tip = self._tip._replace(offset=stable_offset, address=self._tip.address + gone, frame_crc=0)
        if 0 <= self._switch_at <= self._tip.offset:
            self._switch_at = -1
            self._fix()
            self._tip = self._tip._replace(variant=self._encoding.variant)
            self._fix()
        self._store()

    def _take(self, data: memoryview, position: int, end_offset: int, bytes_max: int) -> FrameSpan:
        """The frames at a position that can be counted together: none that was aborted is among several."""
        span = take_span(data, position, end_offset=end_offset, bytes_max=bytes_max)
        if span.count > 1 and self._partition.has_aborted(span.base_offset, span.end_offset):
            return frame_of(span.data)
        return span

    def _note(self, span: FrameSpan) -> None:
        base_offset = span.base_offset
        if base_offset < self._tip.offset:
            # Empty frames on both sides of the tip have become one.
            self._tip = self._tip._replace(offset=span.end_offset, frame_crc=span.last_crc)
            return
        if base_offset != self._tip.offset:
            was_removed = self._tip.offset < self._log.start_offset
            gone = base_offset - self._tip.offset if was_removed else 0
            self._tip = Checkpoint(base_offset, self._tip.address + gone, 0, self._tip.variant)
            self._fix()
        elif self._since_bytes >= INTERVAL_BYTES:
            self._fix()
        tip = self._tip
        size = self._size(span, tip.variant)
        self._tip = Checkpoint(span.end_offset, tip.address + size, span.last_crc, tip.variant)
        self._since_bytes += len(span.data)

    def _size(self, span: FrameSpan, variant: int) -> int:
        return 0 if self._is_aborted(span.end_offset) else self._encoding.size(span, variant)

    def _is_aborted(self, end_offset: int) -> bool:
        # A log that begins within a frame knows it by its end only.
        return self._partition.is_aborted(end_offset - 1)

    def _fix(self) -> None:
        """Make the tip a checkpoint that stays."""
        self._append(self._tip)
        self._since_bytes = 0

    def _append(self, checkpoint: Checkpoint) -> None:
        self._offsets.append(checkpoint.offset)
        self._addresses.append(checkpoint.address)
        self._crcs.append(checkpoint.frame_crc)
        self._variants.append(checkpoint.variant)
        self._rewritten.append(checkpoint.rewritten)

    def _checkpoint(self, place: int) -> Checkpoint:
        return Checkpoint(
            self._offsets[place],
            self._addresses[place],
            self._crcs[place],
            self._variants[place],
            self._rewritten[place],
        )

    @property
    def _columns(self) -> tuple["array[int]", ...]:
        return self._offsets, self._addresses, self._crcs, self._variants, self._rewritten

    def _store(self) -> None:
        """Write what is new to the file: checkpoints that stay, and the tip, which the next one is written over."""
        if self._rewriting or (self._stored == len(self._offsets) and self._stored_tip == self._tip):
            return
        new = [self._checkpoint(place) for place in range(self._stored, len(self._offsets))]
        try:
            self._file.write(self._file_records, [*new, self._tip])
        except DiskFull:
            return  # reading needs no room; the next time all of it is tried again
        self._file_records += len(new)
        self._stored = len(self._offsets)
        self._stored_tip = self._tip

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
        self._file_records = self._stored = count

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
        if start >= self._tip.offset:
            return self._tip.address + start - self._tip.offset
        if self._first is None or self._first[0] != start:
            self._first = start, self._address_of_start(start)
        return self._first[1]

    def _address_of_start(self, start: int) -> int:
        """Find the address of the log's start, and let the first checkpoint be that of the frame it lies in."""
        data, _ = self._log.read(start, 1)
        header = read_frame_header(data) if data else None
        if header is None or header.base_offset >= self._tip.offset:
            return self._tip.address  # all of it is damaged
        base = header.base_offset
        place = bisect_right(self._offsets, base) - 1
        if place < 0:
            return self._addresses[0]  # between it and there is damage: where it stood is not certain any more
        variant = self._variants[place]
        if self._offsets[place] != base:
            # The frames between the checkpoint and here may be out of reach, but those up to the next are not.
            offset, address = self._whole_from(base, place + 1)
            self._set_checkpoint(place, Checkpoint(offset, address, 0, variant, self._rewritten[place]))
        self._trim(place)
        address = self._addresses[0]
        if base < start and self._offsets[0] == base and not self._is_aborted(header.last_offset + 1):
            address += self._encoding.position(data[: header.size], header, variant, start)
        return address

    def _whole_from(self, offset: int, place: int) -> tuple[int, int]:
        """Where the log is whole again, up to the next checkpoint, and the address there, counted back from that.

        Args:
            offset: with which a frame begins, to look from.
            place: of the next checkpoint; the tip if there is none.

        Returns:
            An offset with which a frame begins, and its address. It is not the one looked from if more is damaged.
        """
        anchor = self._checkpoint(place) if place < len(self._offsets) else self._tip
        variant = self._variants[place - 1]
        size, whole_from, expected = 0, offset, offset
        for span in self._walk(offset, anchor.offset):
            if span.base_offset > expected:
                size, whole_from = 0, span.base_offset
            size += self._size(span, variant)
            expected = span.end_offset
        if expected < anchor.offset:
            return anchor.offset, anchor.address
        return whole_from, max(anchor.address - size, self._addresses[place - 1])

    def _walk(self, offset: int, stop_offset: int) -> Iterator[FrameSpan]:
        """The frames from the one with an offset on, up to another offset."""
        while offset < stop_offset:
            data, offset = self._log.read(max(offset, self._log.start_offset), INTERVAL_BYTES)
            if not data:
                return
            position = 0
            while position < len(data):
                span = self._take(data, position, stop_offset, INTERVAL_BYTES)
                if span.base_offset >= stop_offset:
                    return
                yield span
                position += len(span.data)

    def read(self, address: int, max_bytes: int) -> list[Buffer]:
        """Read bytes.

        Args:
            address: where to begin; anywhere, also in the middle of a record.
            max_bytes: at most.

        Returns:
            As many bytes as that or as there are, in pieces; fewer where damage follows.

        Raises:
            OffsetOutOfRange: the address lies before the first or behind the last.
            AddressDamaged: what stood there is damaged.
        """
        if not self.first_address() <= address <= self.end_address:
            raise OffsetOutOfRange(f"address {address} is not between {self.first_address()} and {self.end_address}")
        if 1 in self._rewritten:
            address = self._next_record(address)
        out: list[Buffer] = []
        stop = min(address + max(max_bytes, 0), self.end_address)
        if address >= stop:
            return out
        for piece in self._pieces(address, stop):
            if piece.address > address:
                break  # damage in between
            content = piece.encoded.content
            part = content[address - piece.address : stop - piece.address]
            out.append(part)
            address += len(part)
            if address >= stop:
                if piece.address + len(content) > stop and len(content) >= _KEPT_FRAME_BYTES_MIN:
                    self._encoded.keep(self._owner, piece.base_offset, piece.encoded)
                return out
        if not out:
            raise AddressDamaged(f"what stood at address {address} is damaged")
        return out

    def _next_record(self, address: int) -> int:
        """The first address from one on at which a record begins; the same where there is damage."""
        is_gap = self._rewritten[bisect_right(self._addresses, address) - 1]
        for piece in self._pieces(address, self.end_address, INTERVAL_BYTES):
            if piece.address >= address:
                return piece.address if is_gap else address
            content = piece.encoded.content
            begins = self._encoding.boundary(content, address - piece.address)
            address = piece.address + begins
            if begins < len(content):
                return address
        return self.end_address if is_gap else address

    def _pieces(self, address: int, stop_address: int, read_bytes_max: int = _NO_LIMIT) -> Iterator[_Piece]:
        """The frames from the one that holds an address on, up to the one that holds another, or further; with reads
        of the log of about so many bytes."""
        log = self._log
        place = bisect_right(self._addresses, address) - 1
        offset, at, _, variant, rewritten = self._checkpoint(place)
        following = self._offset_behind(place)
        kept = None if rewritten else self._encoded.find(self._owner, offset)
        if kept is not None:
            if at + len(kept.content) > address:
                yield _Piece(at, offset, kept)
            offset, at = kept.next_offset, at + len(kept.content)
        while offset < self._tip.offset:
            # Frames take more room in the log than what is addressed of them; small ones cost a second read.
            wanted_bytes = (stop_address - at) + (stop_address - at) // 32 + INTERVAL_BYTES
            data, next_offset = log.read(max(offset, log.start_offset), min(wanted_bytes, read_bytes_max))
            if not data:
                return
            position = 0
            while position < len(data):
                base = base_offset_at(data, position)
                if base >= self._tip.offset or at >= stop_address:
                    return
                if base >= following:
                    place = bisect_right(self._offsets, base) - 1
                    following = self._offset_behind(place)
                    variant, rewritten = self._variants[place], self._rewritten[place]
                span = self._take(data, position, following, INTERVAL_BYTES)
                position += len(span.data)
                if base > offset or rewritten:  # behind damage, or behind what was taken away
                    rewritten = 0
                    whole_from, at = self._whole_from(base, place + 1)
                    if base < whole_from:
                        continue
                offset = span.end_offset
                if at < address:
                    size = self._size(span, variant)
                    if at + size <= address:
                        at += size
                        continue
                if self._is_aborted(offset):
                    continue
                content = memoryview(self._encoding.encode(self._log.directory, span, variant))
                if content:
                    yield _Piece(at, base, _Encoded(content, offset))
                at += len(content)
            offset = next_offset

    def _offset_behind(self, place: int) -> int:
        """The offset of the checkpoint behind one, where another variant may begin."""
        return self._offsets[place + 1] if place + 1 < len(self._offsets) else self._tip.offset

    def segments(self) -> list[tuple[int, int]]:
        """Offset and address of the first record that is left of each segment, ascending."""
        start = self._log.start_offset
        bases = [base for base, _ in self._log.segment_starts if start < base <= self._tip.offset]
        return [(start, self.first_address()), *((base, self._address_of_frame(base)) for base in bases)]

    def _address_of_frame(self, offset: int) -> int:
        """The address of an offset with which a frame begins, behind the log's start."""
        if offset >= self._tip.offset:
            return self.end_address
        place = bisect_left(self._offsets, offset)
        if place < len(self._offsets) and self._offsets[place] == offset:
            return self._addresses[place]
        return self._whole_from(offset, place)[1]

    # Making room

    def _set_checkpoint(self, place: int, checkpoint: Checkpoint) -> None:
        self._offsets[place], self._addresses[place] = checkpoint.offset, checkpoint.address
        self._crcs[place], self._variants[place] = checkpoint.frame_crc, checkpoint.variant
        self._rewritten[place] = checkpoint.rewritten

    def _trim(self, place: int) -> None:
        """Forget the checkpoints before a place."""
        self._stored = max(self._stored - place, 0)
        for column in self._columns:
            del column[:place]

    def rewriting(self) -> Callable[[], None] | None:
        """What must run, off the loop's thread, to make the file anew without the checkpoints of removed records.

        `rewritten` is to be called when it is done. None if it is not worth it.
        """
        count = len(self._offsets)
        if self._rewriting or self._file_records - count < max(_REWRITE_RECORDS, count):
            return None
        return self._begin_rewriting()

    def replacing(self, start_offset: int, end_offset: int) -> Callable[[], None] | None:
        """What must run, off the loop's thread, before the frames between two offsets are written anew.

        `rewritten` is to be called when it is done. None if no address of theirs is known. The file is not being made
        anew already.

        Args:
            start_offset, end_offset: with which frames begin, before and after that.
        """
        start_offset = max(start_offset, self._offsets[0])
        if start_offset >= self._tip.offset:
            return None
        if self._offsets[-1] < self._tip.offset:
            self._fix()  # what is counted back from must last
        place = bisect_left(self._offsets, start_offset)
        if self._offsets[place] != start_offset:
            before = self._checkpoint(place - 1)
            added = before._replace(offset=start_offset, address=self._address_of_frame(start_offset), frame_crc=0)
            for column, value in zip(self._columns, added, strict=True):
                column.insert(place, value)
        while place < len(self._offsets) and self._offsets[place] <= end_offset:
            self._crcs[place] = 0
            self._rewritten[place] |= self._offsets[place] < end_offset
            place += 1
        if self._tip.offset <= end_offset:
            self._tip = self._tip._replace(frame_crc=0)
        self._first = None
        return self._begin_rewriting()

    def _begin_rewriting(self) -> Callable[[], None]:
        count = len(self._offsets)
        self._rewriting = True
        # What is trimmed from now on counts as stored, and is subtracted from this.
        self._stored = count
        self._rewritten_records = count
        checkpoints = [self._checkpoint(place) for place in range(count)]
        return lambda: self._file.replace(checkpoints)

    def rewritten(self) -> Callable[[], None]:
        """Go on writing, to the new file; returns what closes the old one, to be run where it may still be in use.

        Raises:
            OSError, DiskFull: the new file cannot be opened.
        """
        self._rewriting = False
        close = self._file.reopen()
        self._file_records = self._rewritten_records
        self._store()
        return close
