"""What a partition's log should hold, kept as a plain list: the reference that the real one is held against."""

from dataclasses import dataclass, field

from millstream.model.frame import FrameHeader, read_frame_header

__all__ = ["ReferenceLog", "StoredBatch"]

REMEMBERED_BATCHES = 5


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch as it must come back."""

    frame: bytes
    header: FrameHeader


@dataclass(slots=True)
class ReferenceLog:
    """The reference.

    Args:
        batches: all that was appended, in order. Those before `start_offset` are deleted, but may come back.
        end_offset: what the next record gets.
        flushed_offset: everything before it must survive everything.
        start_offset: what lies before it is not read.
        kept_start_offset: the last start that was made to last.
        doubtful: producers of which nobody can tell what the log knows: of their deleted batches some came back.
    """

    batches: list[StoredBatch] = field(default_factory=list)
    end_offset: int = 0
    flushed_offset: int = 0
    start_offset: int = 0
    kept_start_offset: int = 0
    doubtful: frozenset[int] = frozenset()

    def append(self, frame: bytes) -> None:
        """Take a batch that the log has placed."""
        header = read_frame_header(frame)
        assert header.base_offset == self.end_offset, "offsets are dense"
        self.batches.append(StoredBatch(frame, header))
        self.end_offset = header.last_offset + 1

    def from_offset(self, offset: int) -> list[bytes]:
        """The frames that a reader gets who begins at an offset."""
        return [batch.frame for batch in self.batches if batch.header.last_offset >= offset]

    def for_time(self, timestamp_ms: int) -> bytes | None:
        """The first frame that is as late as a time."""
        left = (batch for batch in self.batches if batch.header.last_offset >= self.start_offset)
        return next((batch.frame for batch in left if batch.header.max_timestamp >= timestamp_ms), None)

    def remembered(self, producer_id: int) -> list[StoredBatch]:
        """The batches of a producer that must be known again: of its last five, those that are not deleted."""
        if producer_id in self.doubtful:
            return []
        last = [batch for batch in self.batches if batch.header.producer_id == producer_id][-REMEMBERED_BATCHES:]
        return [batch for batch in last if batch.header.base_offset >= self.start_offset]

    def next_sequence(self, producer_id: int) -> int | None:
        """The sequence number that a producer's next batch must have; None if what it wrote last is deleted, and may
        be forgotten or not."""
        headers = [batch.header for batch in self.batches if batch.header.producer_id == producer_id]
        if not headers and producer_id not in self.doubtful:
            return 0
        if not headers:
            return None
        return headers[-1].base_sequence + headers[-1].record_count if self.remembered(producer_id) else None

    def delete_before(self, offset: int, start_offset: int) -> None:
        """The log deleted up to an offset, and perhaps on over records that a power loss has taken."""
        wanted = max(offset, self.start_offset)
        assert wanted <= start_offset
        assert self.from_offset(wanted) == self.from_offset(start_offset)
        self.start_offset = start_offset

    def go_on_after_kill(self, found: list[bytes], start_offset: int, end_offset: int) -> None:
        """The process died: nothing may be lost, but for a start that had not been made to last."""
        assert end_offset == self.end_offset
        flushed_offset = self.flushed_offset
        self.flushed_offset = self.end_offset
        self.go_on_after_power_loss(found, start_offset, end_offset)
        self.flushed_offset = flushed_offset

    def go_on_after_power_loss(self, found: list[bytes], start_offset: int, end_offset: int) -> None:
        """The power failed: all that was flushed must be there, and nothing that was not written.

        What was deleted may be back, wholly or in part.
        """
        flushed = [batch for batch in self.batches if batch.header.last_offset < self.flushed_offset]
        kept = set(found)
        assert {batch.frame for batch in flushed if batch.header.last_offset >= self.start_offset} <= kept
        written = [batch.frame for batch in self.batches if batch.frame in kept]
        assert found == written, "what is served was written, in this order, and each once"
        assert self.flushed_offset <= end_offset <= self.end_offset
        assert self.kept_start_offset <= start_offset <= end_offset
        self.doubtful |= {batch.header.producer_id for batch in flushed if batch.frame not in kept}
        self.start_offset, self.end_offset, self.flushed_offset = start_offset, end_offset, end_offset
        self.batches = [b for b in self.batches if b.frame in kept or b.header.last_offset < start_offset]
