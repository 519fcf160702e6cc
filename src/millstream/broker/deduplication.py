"""Telling messages that come again from new ones, by their producer's name and their sequence id.

For each producer the highest sequence id that came (*pushed*) and the highest that is on the disk (*persisted*) are
kept in memory. What is persisted is saved from time to time; after a crash, what the log got since is read again.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final
from uuid import UUID

from millstream.broker.documents import Documents
from millstream.broker.partition import Partition
from millstream.model.frame import FrameHeader, read_frame_header
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Runtime, Timer

__all__ = ["Deduplication", "Deduplicator", "Verdict"]

DEDUPLICATION_DOCUMENT: Final = "deduplication"
_SAVE_ENTRIES: Final = 1000
"""Entries after which the sequence ids are saved: about what a crash has read again at most."""
_SAVE_S: Final = 120.0
"""Seconds after which they are saved at the latest."""
_IDLE_MS: Final = 360 * 60 * 1000
"""Ms after which a producer that sends nothing is forgotten."""
_NAMES_MAX: Final = 10_000
"""Producers that are remembered for one partition; those that were silent for longest go first."""
_READ_BYTES: Final = 1024 * 1024

WriterOf = Callable[[FrameHeader, memoryview], tuple[str, int] | None]
"""Reads from a stored frame the producer's name and the highest sequence id; None if it has none."""


class Verdict(Enum):
    """What is to be done with a message."""

    NEW = "new"
    DUPLICATE = "it is on the disk"
    UNKNOWN = "it came, and is not on the disk yet: the producer has to ask again"


class Deduplicator:
    """The sequence ids of one partition.

    Args:
        partition: whose.
        writer_of: reads frames.
        save: makes a state last: an offset, and the sequence ids of everything before it.
        runtime: time.
        saved: the last such state; None if there is none, and then what is in the log already does not count.

    `ready` resolves once a start after a crash knows where to read on; messages sent before that would be forgotten.
    """

    def __init__(
        self,
        partition: Partition,
        writer_of: WriterOf,
        save: Callable[[int, dict[str, int]], Pending[None]],
        runtime: Runtime,
        saved: tuple[int, dict[str, int]] | None,
    ) -> None:
        self._save = save
        self._runtime = runtime
        self._partition = partition
        self._pushed: dict[str, int] = {}
        self._persisted: dict[str, int] = {}
        self._heard_ms: dict[str, int] = {}
        self._persisted_offset = partition.log.end_offset
        self._unsaved = 0
        self._timer: Timer | None = None
        self.ready: Pending[None] = settled(None)
        if saved is None:
            self.ready = self._save_now()
        else:
            self._read_again(saved, writer_of)

    def _read_again(self, saved: tuple[int, dict[str, int]], writer_of: WriterOf) -> None:
        offset, sequences = saved
        for name, sequence in sequences.items():
            self._note(name, sequence)
        log = self._partition.log
        offset = max(min(offset, log.end_offset), log.start_offset)
        while offset < log.end_offset:
            data, offset = log.read(offset, _READ_BYTES)
            position = 0
            while position < len(data):
                header = read_frame_header(data, position)
                writer = writer_of(header, data[position : position + header.size])
                if writer is not None:
                    self._note(*writer)
                    self._unsaved += 1
                position += header.size
        if self._unsaved:
            self._save_now()

    def _note(self, name: str, sequence: int) -> None:
        persisted = self._persisted[name] = max(sequence, self._persisted.get(name, -1))
        # More may be on its way, or less: a later message that failed has set it back.
        self._pushed[name] = max(persisted, self._pushed.get(name, -1))
        self._heard_ms[name] = self._runtime.monotonic_ms()

    def last_sequence(self, name: str) -> int:
        """The highest sequence id that a producer has sent, -1 for none: what it is told when it connects."""
        return self._pushed.get(name, -1)

    def judge(self, name: str, sequence: int) -> Verdict:
        """Say whether a message, or a batch, is new.

        Args:
            name: its producer's.
            sequence: the sequence id of its first message.
        """
        if sequence > self._pushed.get(name, -1):
            return Verdict.NEW
        return Verdict.DUPLICATE if sequence <= self._persisted.get(name, -1) else Verdict.UNKNOWN

    def pushed(self, name: str, highest: int) -> None:
        """A message was written, or is about to be; `highest` is the sequence id of its last part."""
        self._pushed[name] = max(highest, self._pushed.get(name, -1))

    def persisted(self, name: str, highest: int, next_offset: int) -> None:
        """It is on the disk, and the log goes on at an offset."""
        self._note(name, highest)
        self._persisted_offset = max(self._persisted_offset, next_offset)
        self._unsaved += 1
        if self._unsaved >= _SAVE_ENTRIES:
            self._save_now()
        elif self._timer is None:
            self._timer = self._runtime.call_later(_SAVE_S, self._save_now)

    def failed(self, name: str) -> None:
        """Writing failed: what was pushed and did not arrive may come again."""
        self._pushed[name] = self._persisted.get(name, -1)

    def _save_now(self) -> Pending[None]:
        self.close()
        self._unsaved = 0
        before_ms = self._runtime.monotonic_ms() - _IDLE_MS
        by_silence = sorted(self._heard_ms, key=self._heard_ms.__getitem__, reverse=True)
        kept = {name for name in by_silence[:_NAMES_MAX] if self._heard_ms[name] >= before_ms}
        for name in by_silence:
            if name not in kept:
                for sequences in (self._pushed, self._persisted, self._heard_ms):
                    sequences.pop(name, None)
        return self._save(self._persisted_offset, dict(self._persisted))

    def close(self) -> None:
        """Let no timer run any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Deduplication:
    """The deduplicators of all partitions that have one.

    Args:
        runtime: time.
        documents: where the sequence ids are saved.
    """

    def __init__(self, runtime: Runtime, documents: Documents) -> None:
        self._runtime = runtime
        self._documents = documents
        self._open: dict[tuple[UUID, int], Deduplicator] = {}

    def of(self, topic_id: UUID, partition: Partition, writer_of: WriterOf) -> Deduplicator:
        """The deduplicator of a partition; at first use, the log's end is read for what was not saved."""
        place = topic_id, partition.index
        found = self._open.get(place)
        if found is None or found.ready.failed:
            key = f"{topic_id}/{partition.index}"

            def save(offset: int, sequences: dict[str, int]) -> Pending[None]:
                if partition.deleted:
                    return settled(None)
                return self._documents.put(DEDUPLICATION_DOCUMENT, key, {"offset": offset, "sequences": sequences})

            document = self._documents.find(DEDUPLICATION_DOCUMENT, key)
            saved = None if document is None else (int(document["offset"]), dict(document["sequences"]))
            found = self._open[place] = Deduplicator(partition, writer_of, save, self._runtime, saved)
        return found

    def forget_topic(self, topic_id: UUID, first: int = 0) -> None:
        """Drop what is known of a topic that is gone, or of its partitions from one on."""
        for place in [place for place in self._open if place[0] == topic_id and place[1] >= first]:
            self._open.pop(place).close()
        for key in list(self._documents.of_kind(DEDUPLICATION_DOCUMENT)):
            owner, _, index = key.partition("/")
            if owner == str(topic_id) and int(index) >= first:
                self._documents.delete(DEDUPLICATION_DOCUMENT, key)

    def close(self) -> None:
        """Let no timer run any more."""
        for one in self._open.values():
            one.close()
