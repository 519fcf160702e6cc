"""Compaction: the last record of each key, and those without a key, for readers that want no more than that.

A run reads a partition twice, up to where it may be read when the run begins: once to learn the last offset of each
key, once to write what stays into a file. What an earlier run has left takes the place of the log up to its horizon,
so that keys are kept whose records the log has no longer. A document says which file counts: a new one replaces the
old one when the document lasts, whatever happens. The log itself is not touched.

The run goes on in small steps between the work of others; files are written off the loop.
"""

import logging
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from millstream.broker.documents import Documents
from millstream.broker.errors import BrokerError, UnknownTopic
from millstream.broker.keyed_frames import SLICE_RECORDS, Buffer, FrameRecords, OpenFrame, short_key, steps_of
from millstream.broker.partition import Partition
from millstream.broker.steps import Steps, take_steps
from millstream.broker.topics import Topic
from millstream.model.errors import MillstreamError
from millstream.model.frame import Attributes, FrameHeader, read_frame_header
from millstream.model.pending import Pending
from millstream.model.runtime import Runtime
from millstream.storage.compacted import SUFFIX, CompactedDamaged, CompactedFile, CompactedWriter
from millstream.storage.directory import DataDirectory
from millstream.storage.files import Files

__all__ = [
    "CompactedView",
    "Compaction",
    "CompactionRunning",
    "CompactionState",
    "CompactionStatus",
]

_log = logging.getLogger(__name__)
COMPACTION_DOCUMENT: Final = "compaction"
LANE: Final = "compaction"
_STEP_BYTES: Final = 64 * 1024
"""Bytes of frames that are read at a time, or one frame, if that is larger."""
_SHARE: Final = 0.5
"""Of the loop's time, at most: somebody has asked for it, and may be waiting."""
_WRITE_BYTES: Final = 1024 * 1024
_RUN_BYTES: Final = 4

Place = tuple[UUID, int]
Framed = tuple[FrameHeader, Buffer]


class CompactionRunning(BrokerError):
    """The partition is being compacted already."""


class CompactionState(Enum):
    """What has become of the latest run."""

    NOT_RUN = "not run"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"


class CompactionStatus(NamedTuple):
    """The latest run on one partition.

    Args:
        state: what has become of it.
        error: why it failed, "" if it did not.
        horizon: the first offset that is not compacted.
        size_bytes, records: of what compaction has left.
    """

    state: CompactionState
    error: str
    horizon: int
    size_bytes: int
    records: int


class CompactedView:
    """What compaction has left of a partition at the moment: a `FrameSource` that follows later runs.

    Args:
        place: the partition.
        current: gives its file, None if there is none.
    """

    def __init__(self, place: Place, current: Callable[[Place], CompactedFile | None]) -> None:
        self._place = place
        self._current = current

    @property
    def horizon(self) -> int:
        """The first offset that is not compacted."""
        file = self._current(self._place)
        return 0 if file is None else file.horizon

    def read(self, offset: int, max_bytes: int) -> tuple[memoryview, int]:
        """See `FrameSource.read`."""
        file = self._current(self._place)
        return (memoryview(b""), offset) if file is None else file.read(offset, max_bytes)

    def last_frame(self) -> memoryview | None:
        """The last frame that compaction has left; None if there is none. Raises OSError."""
        file = self._current(self._place)
        return None if file is None else file.last_frame()


class Compaction:
    """The compaction of all partitions.

    Args:
        runtime: time, and the lane for files.
        directory: where the files lie.
        documents: which of them count.

    `records` is what runs work with unless they are given others; a session layer sets it.
    """

    def __init__(self, runtime: Runtime, directory: DataDirectory, documents: Documents) -> None:
        self._runtime = runtime
        self._directory = directory
        self._documents = documents
        self._files: dict[Place, CompactedFile | None] = {}
        self._running: dict[Place, Pending[None]] = {}
        self._failed: dict[Place, str] = {}
        self._seen_bytes: dict[Place, int] = {}
        self.records: FrameRecords | None = None

    def view(self, topic: Topic, index: int) -> CompactedView:
        """What readers of a partition read instead of its log."""
        return CompactedView((topic.id, index), self.current)

    def current(self, place: Place) -> CompactedFile | None:
        """The file that counts; None if the partition was not compacted."""
        if place not in self._files:
            document = self._documents.find(COMPACTION_DOCUMENT, _key(place))
            self._files[place] = None if document is None else self._opened(place, document["file"])
        return self._files[place]

    def _opened(self, place: Place, name: str) -> CompactedFile | None:
        try:
            return CompactedFile(self._directory.files, f"{self._path(place)}/{name}")
        except (CompactedDamaged, OSError) as error:
            _log.error("compacted file unusable: the log is read instead reason=%s", error)
            return None

    def _path(self, place: Place) -> str:
        return f"{self._directory.topic_path(place[0])}/{place[1]}"

    def status(self, topic: Topic, index: int) -> CompactionStatus:
        """What has become of the latest run on a partition."""
        place = topic.id, index
        file = self.current(place)
        error = self._failed.get(place, "")
        state = CompactionState.SUCCESS if file is not None else CompactionState.NOT_RUN
        if error:
            state = CompactionState.ERROR
        if place in self._running:
            state = CompactionState.RUNNING
        if file is None:
            return CompactionStatus(state, error, 0, 0, 0)
        return CompactionStatus(state, error, file.horizon, file.size_bytes, file.records)

    def compact_over(self, topic: Topic, index: int, threshold_bytes: int) -> None:
        """Compact a partition if more than that was appended since the last run, or since the start after it."""
        place, partition = (topic.id, index), topic.partitions[index]
        behind_bytes = partition.log.size_bytes
        if self.current(place) is not None:
            behind_bytes = partition.appended_bytes - self._seen_bytes.get(place, 0)
        if behind_bytes > threshold_bytes and self.records is not None:
            self.compact(topic, index)

    def compact(self, topic: Topic, index: int, records: FrameRecords | None = None) -> Pending[None]:
        """Compact a partition; a run that is under way is joined.

        Args:
            topic, index: the partition; it exists.
            records: reads and writes frames; None for those that a session layer has set.

        Returns:
            Resolves once what the run has left counts, and lasts. Fails with UnknownTopic if the topic goes,
            DiskFull, IoFailed, MetadataFailed.
        """
        place = topic.id, index
        running = self._running.get(place)
        if running is not None:
            return running
        reader = records or self.records
        assert reader is not None, "a session layer reads records"
        self._failed.pop(place, None)
        partition = topic.partitions[index]
        self._seen_bytes[place] = partition.appended_bytes
        path = self._path(place)
        name = f"{partition.stable_offset:020}-{self._runtime.random_bytes(_RUN_BYTES).hex()}{SUFFIX}"
        writer = CompactedWriter(self._directory.files, f"{path}/{name}")
        run = _Run(self._runtime, partition, self.current(place), reader, writer)

        def switch(horizon: int) -> Pending[None]:
            if partition.deleted:
                raise UnknownTopic("the topic is being deleted")
            return self._switch(place, name, horizon)

        compacted = run.start().chain(switch)
        self._running[place] = compacted

        def end(outcome: Pending[None]) -> None:
            del self._running[place]
            try:
                outcome.result()
            except Exception as error:  # noqa: BLE001 - a fault of ours, too, is told, and leaves no half file
                self._failed[place] = str(error) or repr(error)
                fault = None if isinstance(error, (MillstreamError, OSError)) else error
                told = "compaction failed partition=%d directory=%s reason=%s"
                _log.log(logging.ERROR if fault else logging.WARNING, told, index, path, error, exc_info=fault)
                self._runtime.run_blocking(LANE, lambda: _discard(self._directory.files, writer))

        compacted.when_done(end)
        return compacted

    def _switch(self, place: Place, name: str, horizon: int) -> Pending[None]:
        """Let a new file count, and remove all others."""
        document = {"file": name, "horizon": horizon}

        def count(_: None) -> None:
            self._files[place] = self._opened(place, name)
            files, path = self._directory.files, self._path(place)
            for other in files.list_directory(path):
                if other.endswith(SUFFIX) and other != name:
                    files.forget(f"{path}/{other}")
            self._runtime.run_blocking(LANE, lambda: _remove_others(files, path, name))
            _log.info("compacted directory=%s horizon=%d", path, horizon)

        return self._documents.put(COMPACTION_DOCUMENT, _key(place), document).then(count)

    def forget_topic(self, topic_id: UUID, first: int = 0) -> None:
        """Drop what lasts of a topic that is gone, or of its partitions from one on; files go with their logs."""
        for place in [place for place in self._files if place[0] == topic_id and place[1] >= first]:
            self._seen_bytes.pop(place, None)
            self._failed.pop(place, None)
            file = self._files.pop(place)
            if file is not None:
                self._directory.files.forget(file.path)
        for key in list(self._documents.of_kind(COMPACTION_DOCUMENT)):
            owner, _, index = key.partition("/")
            if owner == str(topic_id) and int(index) >= first:
                self._documents.delete(COMPACTION_DOCUMENT, key)


def _key(place: Place) -> str:
    return f"{place[0]}/{place[1]}"


def _remove_others(files: Files, path: str, name: str) -> None:
    for other in files.list_directory(path):
        if other.endswith(SUFFIX) and other != name:
            files.remove(f"{path}/{other}")


def _discard(files: Files, writer: CompactedWriter) -> None:
    writer.close()
    files.remove(writer.path)


class _Run:
    """One run.

    Args:
        runtime: for the steps, and the lane for files.
        partition: what is compacted.
        before: what the run before has left.
        records: reads and writes frames.
        writer: takes what stays.
    """

    def __init__(
        self,
        runtime: Runtime,
        partition: Partition,
        before: CompactedFile | None,
        records: FrameRecords,
        writer: CompactedWriter,
    ) -> None:
        self._runtime = runtime
        self._partition = partition
        self._before = before
        self._records = records
        self._writer = writer
        self._horizon = partition.stable_offset
        self._latest: dict[bytes, int] = {}
        self._due: list[Framed] = []
        self._due_bytes = 0

    def start(self) -> Pending[int]:
        """Begin; resolves with the horizon. Fails with UnknownTopic, StorageError, IoFailed."""
        done = take_steps(self._runtime, LANE, self._steps(), lambda: False, share=_SHARE)
        return done.settle(lambda horizon: horizon, _raise)

    def _steps(self) -> Steps[int]:
        for take in (self._learn, self._sift):
            for data in self._chunks():
                for header, frame in self._visible(data):
                    opened = yield from self._records.open(header, frame)
                    if opened is not None:
                        yield from take(header, frame, opened)
                if self._due_bytes >= _WRITE_BYTES:
                    yield self._write()
                yield None
        if self._due:
            yield self._write()
        yield partial(self._writer.finish, self._horizon)
        return self._horizon

    def _chunks(self) -> Iterator[memoryview]:
        """All that is to be compacted, whole frames at a time."""
        offset, before, log = 0, self._before, self._partition.log
        while before is not None and offset < before.horizon:
            self._check_there()
            data, offset = before.read(offset, _STEP_BYTES)
            yield from steps_of(data, SLICE_RECORDS)
        while offset < self._horizon:
            self._check_there()
            data, behind = log.read(max(offset, log.start_offset), _STEP_BYTES)
            if behind <= offset:
                return
            offset = behind
            yield from steps_of(data, SLICE_RECORDS)

    def _check_there(self) -> None:
        """To be asked before files are read: that would open them again when they are about to be removed."""
        if self._partition.deleted:
            raise UnknownTopic("the topic is being deleted")

    def _visible(self, data: memoryview) -> Iterator[tuple[FrameHeader, memoryview]]:
        """The frames of a chunk that are for readers."""
        position = 0
        while position < len(data):
            header = read_frame_header(data, position)
            frame = data[position : position + header.size]
            position += header.size
            hidden = header.attributes & Attributes.CONTROL or self._partition.is_aborted(header.base_offset)
            if header.base_offset < self._horizon and header.record_count and not hidden:
                yield header, frame

    def _learn(self, header: FrameHeader, frame: memoryview, opened: OpenFrame) -> Steps[None]:
        """Note the last offset of each key."""
        latest = self._latest
        for number, records in enumerate(opened.records()):
            if number:
                yield None
            for place, key, deletes in records:
                if key is None:
                    continue
                if deletes:
                    latest.pop(short_key(key), None)
                else:
                    latest[short_key(key)] = header.base_offset + place

    def _sift(self, header: FrameHeader, frame: memoryview, opened: OpenFrame) -> Steps[None]:
        """Keep what is the last of its key, or has none."""
        latest, base_offset, found = self._latest, header.base_offset, 0
        stays = bytearray(header.last_offset_delta + 1)
        for number, records in enumerate(opened.records()):
            if number:
                yield None
            found += len(records)
            for index, key, _ in records:
                stays[index] = key is None or latest.get(short_key(key)) == base_offset + index
        count = stays.count(1)
        if count:
            left = (yield from opened.left(stays, None)) if count < found else None
            self._due.append((header, frame if left is None else left))
            self._due_bytes += len(self._due[-1][1])

    def _write(self) -> Callable[[], None]:
        due, self._due, self._due_bytes = self._due, [], 0
        return lambda: self._writer.write(due)


def _raise(error: MillstreamError) -> int:
    raise error
