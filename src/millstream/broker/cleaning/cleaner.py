"""The cleaner: looks for partitions that are dirty, cleans the dirtiest first, and looks again; after a rest if there
were none.

What is clean is known from a document for each partition: the offset up to which every key has one record, and when
the first tombstone in there goes. It is stored behind what it speaks of, so that after a crash some of it is done
again.
"""

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from millstream.broker.cleaning.run import Cleaned, CleaningRun, NotCompacted, Replacing
from millstream.broker.documents import Document, DocumentChange, Documents
from millstream.broker.keyed_frames import FrameRecords
from millstream.broker.partition import Partition
from millstream.broker.settings import BrokerSettings
from millstream.broker.steps import take_steps
from millstream.broker.topics import UPKEEP_LANE, Topic, Topics
from millstream.model.errors import MillstreamError
from millstream.model.frame import MAGICS, read_frame_header
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Runtime, Timer
from millstream.storage.files import Files

__all__ = ["CLEANED_DOCUMENT", "CleanerFigures", "LogCleaner"]

_log = logging.getLogger(__name__)
CLEANED_DOCUMENT: Final = "log-cleaned"
_READ_BEFORE_S: Final = 60
"""For so long, frames may be looked at that were read before the file they came from was replaced: of those that were
aborted, it has to be known that they are for nobody."""

Place = tuple[UUID, int]


class AbortedOffsets(Protocol):
    """What is remembered of aborted transactions."""

    def emptied(self, place: Place, offset: int) -> Sequence[DocumentChange]:
        """What is to be stored once nothing is left of what was aborted before an offset of a partition."""

    def forget_before(self, place: Place, offset: int) -> None:
        """Nobody asks any more about offsets before one of a partition."""


class _NoAborted:
    def emptied(self, place: Place, offset: int) -> Sequence[DocumentChange]:
        return ()

    def forget_before(self, place: Place, offset: int) -> None:
        return


@dataclass(slots=True)
class CleanerFigures:
    """What was done since the start.

    Args:
        runs: over a partition each.
        failures: runs that ended with an error.
        before_bytes, after_bytes: of the segments that were written anew.
        time_ms: that runs took, waiting for the disk and for others included.
    """

    runs: int = 0
    failures: int = 0
    before_bytes: int = 0
    after_bytes: int = 0
    time_ms: int = 0


class _Dirty(NamedTuple):
    """A partition that may be cleaned.

    Args:
        urgency: whether it must be, whatever its share; then the share of its bytes that is dirty, 0 to 1.
        topic, partition: which.
        dirty_offset: where what is dirty begins.
        end_offset: where what may be cleaned ends.
    """

    urgency: tuple[bool, float]
    topic: Topic
    partition: Partition
    dirty_offset: int
    end_offset: int


class LogCleaner:
    """Cleans the partitions of all topics whose `cleanup.policy` has `compact` in it.

    Args:
        runtime: time and waiting.
        files: the door to the disk.
        topics: all topics.
        documents: where it is kept what is clean.
        settings: the server's.

    `readers` gets what reads frames, by their magic value, from the session layers. `replacing` is told of what is
    about to change, by whoever depends on where frames stand. `aborted` forgets what has no records any more.
    """

    def __init__(
        self, runtime: Runtime, files: Files, topics: Topics, documents: Documents, settings: BrokerSettings
    ) -> None:
        self._runtime = runtime
        self._files = files
        self._topics = topics
        self._documents = documents
        self._settings = settings
        self._failed: set[Partition] = set()
        self._put_off: set[Partition] = set()
        self._due: deque[tuple[Topic, Partition]] = deque()
        self._timer: Timer | None = None
        self._closed = False
        self.readers: dict[int, FrameRecords] = {}
        self.replacing: Replacing = lambda *_: settled(None)
        self.aborted: AbortedOffsets = _NoAborted()
        self.figures = CleanerFigures()
        if settings.cleaner_enabled:
            self._rest()

    def cleaned_offset(self, topic: Topic, index: int) -> int:
        """The offset up to which a partition is clean."""
        offset: int = self._document(topic, index).get("offset", 0)
        return min(offset, topic.partitions[index].log.end_offset)

    def _document(self, topic: Topic, index: int) -> Document:
        return self._documents.find(CLEANED_DOCUMENT, _key(topic, index)) or {}

    def close(self) -> None:
        """Let nothing run any more. What a run has begun is found, old or new, at the next start."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def forget_topic(self, topic_id: UUID, first: int = 0) -> None:
        """Drop what is kept of a topic that is gone, or of its partitions from one on."""
        for key in list(self._documents.of_kind(CLEANED_DOCUMENT)):
            owner, _, index = key.partition("/")
            if owner == str(topic_id) and int(index) >= first:
                self._documents.delete(CLEANED_DOCUMENT, key)
        self._failed = {partition for partition in self._failed if not partition.deleted}

    def _rest(self) -> None:
        self._put_off.clear()
        self._timer = self._runtime.call_later(self._settings.cleaner_backoff_ms / 1000, self._look)

    def _look(self) -> None:
        """See which partitions are to be cleaned, and begin with the one that needs it most."""
        self._timer = None
        if self._closed:
            return
        # While a protocol is not loaded, records of its clients would be passed over.
        found = list(self._dirty()) if self.readers.keys() >= MAGICS else []
        found.sort(key=lambda dirty: dirty.urgency, reverse=True)
        self._due.extend((dirty.topic, dirty.partition) for dirty in found)
        if found:
            self._clean_next()
        else:
            self._rest()

    def _clean_next(self) -> None:
        """Clean the next partition that is due, as it is by now; look again if there is none left."""
        now_ms = self._runtime.now_ms()
        while self._due:
            dirty = self._looked_at(*self._due.popleft(), now_ms)
            if dirty is not None:
                self._clean(dirty)
                return
        self._look()

    def _dirty(self) -> Iterator[_Dirty]:
        now_ms = self._runtime.now_ms()
        for topic in self._topics:
            for partition in topic.partitions:
                dirty = self._looked_at(topic, partition, now_ms)
                if dirty is not None:
                    yield dirty

    def _looked_at(self, topic: Topic, partition: Partition, now_ms: int) -> _Dirty | None:
        """What is to be cleaned of a partition; None if nothing is, or if that cannot be told."""
        if not self._may_clean(partition):
            return None
        try:
            return self._dirty_part(topic, partition, now_ms)
        except Exception as error:  # noqa: BLE001 - as when a run ends with it
            self._leave(partition, error)
            return None

    def _may_clean(self, partition: Partition) -> bool:
        is_out = partition in self._failed or partition in self._put_off or partition.log.failure is not None
        return partition.settings.compacted and not partition.deleted and not is_out

    def _dirty_part(self, topic: Topic, partition: Partition, now_ms: int) -> _Dirty | None:
        """What is to be cleaned of a partition; None if nothing is yet."""
        log, settings = partition.log, partition.settings
        partition.seal_old()
        dirty_offset = max(self.cleaned_offset(topic, partition.index), log.start_offset)
        end_offset, clean_bytes, dirty_bytes = log.start_offset, 0, 0
        for segment in log.sealed_segments:
            too_young = settings.compaction_lag_min_ms and now_ms - segment.latest_ms < settings.compaction_lag_min_ms
            if segment.next_offset > partition.stable_offset or too_young:
                break
            end_offset = max(segment.next_offset, end_offset)
            if segment.next_offset <= dirty_offset:
                clean_bytes += segment.log_bytes
            else:
                dirty_bytes += segment.log_bytes
        share = dirty_bytes / max(clean_bytes + dirty_bytes, 1)
        go_ms = self._document(topic, partition.index).get("tombstones_go_ms")
        must = go_ms is not None and go_ms <= now_ms
        if dirty_bytes and not must:
            must = self._is_overdue(partition, dirty_offset, now_ms)
        if not must and (not dirty_bytes or share < settings.dirty_ratio_min):
            return None
        return _Dirty((must, share), topic, partition, min(dirty_offset, end_offset), end_offset)

    def _is_overdue(self, partition: Partition, dirty_offset: int, now_ms: int) -> bool:
        """Whether the first dirty record has waited as long as it may."""
        lag_max_ms = partition.settings.compaction_lag_max_ms
        if lag_max_ms > now_ms:
            return False
        try:
            data, _ = partition.log.read(dirty_offset, 1)
        except (MillstreamError, OSError):
            return False
        return bool(data) and now_ms - read_frame_header(data).max_timestamp > lag_max_ms

    def _clean(self, dirty: _Dirty) -> None:
        partition = dirty.partition
        run = CleaningRun(
            self._runtime.now_ms(),
            self._files,
            partition,
            self.readers,
            dirty_offset=dirty.dirty_offset,
            end_offset=dirty.end_offset,
            keys_bytes_max=self._settings.cleaner_keys_bytes,
            replacing=self.replacing,
        )
        began_ms = self._runtime.monotonic_ms()

        def note(cleaned: Cleaned) -> Pending[None]:
            figures = self.figures
            figures.before_bytes += cleaned.before_bytes
            figures.after_bytes += cleaned.after_bytes
            if partition.deleted:
                return settled(None)
            _log.info(
                "cleaned directory=%s offset=%d before_bytes=%d after_bytes=%d",
                partition.log.directory,
                cleaned.offset,
                cleaned.before_bytes,
                cleaned.after_bytes,
            )
            return self._note(dirty.topic, partition, cleaned)

        def end(outcome: Pending[None]) -> None:
            self.figures.runs += 1
            self.figures.time_ms += self._runtime.monotonic_ms() - began_ms
            try:
                outcome.result()
            except Exception as error:  # noqa: BLE001 - a fault of ours, too, costs no other partition its cleaning
                self._leave(partition, error)
            if not self._closed:
                self._runtime.call_soon(self._clean_next)

        stepped = take_steps(self._runtime, UPKEEP_LANE, run.steps(), lambda: self._closed)
        stepped.chain(note).when_done(end)

    def _note(self, topic: Topic, partition: Partition, cleaned: Cleaned) -> Pending[None]:
        """Make last what is clean, and with it that nothing has to be known of what was aborted in there."""
        place, offset = (topic.id, partition.index), cleaned.emptied_offset
        document = {"offset": cleaned.offset, "tombstones_go_ms": cleaned.tombstones_go_ms}
        changes = [(CLEANED_DOCUMENT, _key(topic, partition.index), document), *self.aborted.emptied(place, offset)]

        def forget() -> None:
            if not partition.deleted:  # else another may have its number
                self.aborted.forget_before(place, offset)

        def forget_later(_: None) -> None:
            self._runtime.call_later(_READ_BEFORE_S, forget)

        return self._documents.change(changes).then(forget_later)

    def _leave(self, partition: Partition, error: Exception) -> None:
        """Leave a partition alone after an error: for a while, or until the next start if what its files hold is not
        certain any more."""
        if partition.deleted or isinstance(error, NotCompacted):
            return
        self.figures.failures += 1
        directory = partition.log.directory
        if isinstance(error, MillstreamError):
            self._put_off.add(partition)
            _log.warning("cleaning put off directory=%s reason=%s", directory, error)
        else:
            self._failed.add(partition)
            fault = None if isinstance(error, OSError) else error
            _log.error("not cleaned until the next start directory=%s reason=%s", directory, error, exc_info=fault)


def _key(topic: Topic, index: int) -> str:
    return f"{topic.id}/{index}"
