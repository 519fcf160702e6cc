"""One partition: its log under the topic's rules, and those who wait for news of it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from millstream.broker.errors import (
    BatchTooLarge,
    InvalidTimestamp,
    NotEnoughReplicas,
    TopicTerminated,
    UnknownTopic,
)
from millstream.broker.settings import TopicSettings
from millstream.model.frame import Attributes, FrameHeader, Magic, read_frame_header, set_log_append_time
from millstream.model.frame_run import FrameRun
from millstream.model.pending import Pending
from millstream.model.runtime import Runtime
from millstream.storage.flusher import GroupFlusher
from millstream.storage.log import Appended, PartitionLog

if TYPE_CHECKING:
    from millstream.broker.transactions.partition import PartitionTransactions

__all__ = ["Partition"]


class Partition:
    """A partition of a topic.

    Args:
        index: its number, from 0.
        log: its log.
        settings: the topic's, replaced when they change.
        runtime: time, and `call_soon` for those who wait.
        flusher: puts the log on the disk.
        fsync: whether a writer that asks for all replicas waits for the disk.

    `transactions` is what of it is not decided, or was aborted; None as long as there never was anything such.
    """

    __slots__ = (
        "_flusher",
        "_fsync",
        "_news_due",
        "_runtime",
        "_watchers",
        "appended_bytes",
        "deleted",
        "index",
        "log",
        "settings",
        "terminated",
        "transactions",
    )

    def __init__(
        self,
        index: int,
        log: PartitionLog,
        settings: TopicSettings,
        runtime: Runtime,
        flusher: GroupFlusher,
        *,
        fsync: bool,
    ) -> None:
        self.index = index
        self.log = log
        self.settings = settings
        self.deleted = False
        self.terminated = False
        self.appended_bytes = 0
        self.transactions: PartitionTransactions | None = None
        self._runtime = runtime
        self._flusher = flusher
        self._fsync = fsync
        self._watchers: dict[Callable[[], None], None] = {}
        self._news_due = False

    def append(
        self, frame: memoryview, header: FrameHeader, *, all_replicas: bool, bytes_max: int | None = None
    ) -> Appended:
        """Append a batch whose framing the session has checked.

        Args:
            frame: the whole frame, writable.
            header: what stands in it.
            all_replicas: whether the writer asked for an answer from all replicas; `durable` then gives it.
            bytes_max: the largest frame of the writer's protocol, where that has a limit of its own; the topic's
                otherwise.

        Raises:
            AppendRefused: the topic's settings do not allow it.
            StorageError: the log does not take it.
        """
        settings = self.settings
        self._check_append(all_replicas)
        self.check_size(len(frame), bytes_max)
        now_ms = self._runtime.now_ms()
        if header.attributes & Attributes.LOG_APPEND_TIME:
            raise InvalidTimestamp("a producer may not claim the time of append")
        if settings.append_time:
            set_log_append_time(frame, now_ms)
            header = read_frame_header(frame)
        elif header.max_timestamp >= 0 and header.magic == Magic.KAFKA_V2:  # a rule of Kafka's alone
            self._check_times(header, now_ms)
        appended = self.log.append(frame, header, now_ms)
        if not appended.duplicate:
            self._appended(len(frame), all_replicas)
        return appended

    def append_run(self, run: FrameRun, *, all_replicas: bool) -> int:
        """Append several batches, all or none of them, whose framing and sizes the session has checked.

        Args:
            run: the batches, of another encoding than Kafka's.
            all_replicas: as `append`.

        Returns:
            The base offset of the first.

        Raises:
            AppendRefused, StorageError: as `append`.
        """
        self._check_append(all_replicas)
        now_ms = self._runtime.now_ms()
        if self.settings.append_time:
            run.stamp(now_ms)
        base_offset = self.log.append_run(run, now_ms)
        self._appended(len(run.data), all_replicas)
        return base_offset

    def _check_append(self, all_replicas: bool) -> None:
        if self.deleted:
            raise UnknownTopic("the topic is being deleted")
        self.check_open()
        if all_replicas and self.settings.min_insync_replicas > 1:
            raise NotEnoughReplicas(
                f"min.insync.replicas is {self.settings.min_insync_replicas}, and there is one replica"
            )

    def _appended(self, size_bytes: int, all_replicas: bool) -> None:
        self.appended_bytes += size_bytes
        if not (all_replicas and self._fsync):
            self._flusher.flush_soon(self.log)
        self.announce()

    def check_size(self, size_bytes: int, bytes_max: int | None = None) -> None:
        """Check the size of a batch, before anything costly is done with it. Raises BatchTooLarge."""
        allowed_bytes = self.settings.batch_bytes_max if bytes_max is None else bytes_max
        if size_bytes > allowed_bytes:
            raise BatchTooLarge(f"a batch of {size_bytes} bytes, where {allowed_bytes} are allowed")

    def _check_times(self, header: FrameHeader, now_ms: int) -> None:
        settings = self.settings
        if header.max_timestamp - now_ms > settings.timestamp_after_max_ms:
            raise InvalidTimestamp(
                f"timestamp {header.max_timestamp} lies more than {settings.timestamp_after_max_ms} ms in the future"
            )
        if now_ms - header.first_timestamp > settings.timestamp_before_max_ms:
            raise InvalidTimestamp(
                f"timestamp {header.first_timestamp} lies more than {settings.timestamp_before_max_ms} ms in the past"
            )

    def durable(self) -> Pending[None] | None:
        """What an answer from all replicas waits for.

        Returns:
            Resolves when all that was appended so far is on the disk and fails with LogFailed; None if the server
            is set to answer without.
        """
        return self._flusher.flush(self.log) if self._fsync else None

    @property
    def stable_offset(self) -> int:
        """The first offset that consumers may not read yet: of an open transaction, or the end of the log."""
        transactions = self.transactions
        return self.log.end_offset if transactions is None else transactions.stable_offset

    @property
    def uncommitted_offset(self) -> int:
        """The same for readers who also read what is not decided, where its writer's transactions let them."""
        transactions = self.transactions
        return self.log.end_offset if transactions is None else transactions.uncommitted_offset

    def end_for(self, *, committed: bool) -> int:
        """`stable_offset` for readers of what is committed, `uncommitted_offset` for others."""
        return self.stable_offset if committed else self.uncommitted_offset

    def is_aborted(self, base_offset: int) -> bool:
        """Whether a frame belongs to a transaction that was aborted: nothing for readers of what is committed."""
        transactions = self.transactions
        return transactions is not None and transactions.is_aborted(base_offset)

    def is_withheld(self, base_offset: int) -> bool:
        """Whether a frame was aborted and is not for those either who read what is not committed."""
        transactions = self.transactions
        return transactions is not None and transactions.is_withheld(base_offset)

    def has_aborted(self, start: int, end: int) -> bool:
        """Whether any frame from an offset to before another was aborted."""
        transactions = self.transactions
        return transactions is not None and transactions.has_aborted(start, end)

    def read(self, offset: int, max_bytes: int, *, committed: bool = True) -> tuple[memoryview, int]:
        """Read as `PartitionLog.read`, but nothing at or behind `end_for`.

        Frames that are for nobody (`is_aborted`) are among those read.
        """
        data, behind = self.log.read(offset, max_bytes)
        transactions = self.transactions
        if transactions is None:
            return data, behind
        return transactions.before(self.end_for(committed=committed), data, offset, behind)

    def seal_old(self) -> None:
        """Let a segment that has been appended to for `segment.ms` be no longer: what is sealed can be compacted."""
        self.log.seal_old(self._runtime.now_ms())
        if self.log.has_sealed:
            self._flusher.flush_soon(self.log)

    def check_open(self) -> None:
        """Check that something can be appended. Raises TopicTerminated."""
        if self.terminated:
            raise TopicTerminated("the topic was terminated")

    def terminate(self) -> None:
        """Let nothing be appended ever again. Making that last is the caller's."""
        self.terminated = True
        self.announce()

    def watch(self, callback: Callable[[], None]) -> None:
        """Call back, after the work at hand, whenever batches were appended or the partition went away."""
        self._watchers[callback] = None

    def unwatch(self, callback: Callable[[], None]) -> None:
        """Stop calling back."""
        self._watchers.pop(callback, None)

    def announce(self) -> None:
        """Tell those who watch."""
        if self._watchers and not self._news_due:
            self._news_due = True
            self._runtime.call_soon(self._tell)

    def _tell(self) -> None:
        self._news_due = False
        for callback in list(self._watchers):
            callback()
