"""Group flushing: one fdatasync of a log serves everyone who waits for what was appended before it."""

from collections.abc import Callable
from threading import Lock
from typing import Final

from millstream.model.pending import Pending
from millstream.model.runtime import Runtime, Timer
from millstream.storage.errors import LogFailed
from millstream.storage.log import PartitionLog

__all__ = ["FLUSH_LANE", "GroupFlusher"]

FLUSH_LANE: Final = "flush"


class _Round:
    """What one turn of the lane flushes, and who waits for it.

    The loop adds to it until the lane's thread begins, so that nobody has to wait for the loop in between: while
    one round is on its way to the disk, the next one lies in the lane and grows.
    """

    def __init__(self) -> None:
        self.waiting: dict[PartitionLog, Pending[None]] = {}
        self.works: list[tuple[PartitionLog, Callable[[], None]]] = []
        self._begun = False
        self._lock = Lock()

    def join(self, log: PartitionLog) -> Pending[None] | None:
        """Take part with all that a log has been given so far; None if the round has begun without it."""
        with self._lock:
            if self._begun:
                return None
            waiting = self.waiting.get(log)
            if waiting is None:
                waiting = self.waiting[log] = Pending()
                self.works.append((log, log.flush_work()))
            elif log.has_sealed:  # since it joined, it went on in another file
                self.works.append((log, log.flush_work()))
            return waiting

    def run(self, failed: set[PartitionLog]) -> dict[PartitionLog, Exception]:
        """Put it all on the disk, on the lane's thread.

        Args:
            failed: logs with a flush that failed. They are flushed no more, and new ones are added.

        Returns:
            The errors.
        """
        with self._lock:
            self._begun = True
        errors: dict[PartitionLog, Exception] = {}
        for log, work in self.works:
            if log in failed:
                continue
            try:
                work()
            except Exception as error:  # noqa: BLE001 - whatever it was, what the disk holds is not known
                errors[log] = error
                failed.add(log)
        return errors


class GroupFlusher:
    """Puts logs on the disk, off the loop's thread, one round after the other.

    All that asks while a round is under way goes into the next one.

    Rounds do not overlap: the system reports a failed write to one fdatasync of a descriptor only, so of two at a
    time the wrong one could succeed.

    Args:
        runtime: timers and the lane.
        interval_ms: the longest that an appended batch waits for a flush that nobody asked for.
    """

    def __init__(self, runtime: Runtime, interval_ms: int) -> None:
        self._runtime = runtime
        self._interval_s = interval_ms / 1000
        self._next: _Round | None = None
        self._failed: set[PartitionLog] = set()  # the lane's thread alone uses it
        self._dirty: set[PartitionLog] = set()
        self._timer: Timer | None = None

    def flush(self, log: PartitionLog) -> Pending[None]:
        """Flush a log.

        Returns:
            Resolves when everything appended so far is on the disk; fails with LogFailed if that is not certain,
            and then the log takes no more writes. A failed flush is never repeated: the system may have dropped
            the pages that it could not write.
        """
        waiting = None if self._next is None else self._next.join(log)
        if waiting is None:
            round_ = self._next = _Round()
            # At the end of the work at hand, so that all batches of one read share the round.
            self._runtime.call_soon(lambda: self._start(round_))
            waiting = round_.join(log)
            assert waiting is not None, "a round begins after it was started"
        return waiting

    def flush_soon(self, log: PartitionLog) -> None:
        """See to it that a log is flushed within the interval."""
        self._dirty.add(log)
        if self._timer is None:
            self._timer = self._runtime.call_later(self._interval_s, self._tick)

    def forget(self, log: PartitionLog) -> None:
        """Flush a log no more unless somebody asks for it: it goes away.

        Who waits for it gets an answer as ever: what was written came before the deletion, which may fail yet.
        """
        self._dirty.discard(log)

    def stop(self) -> None:
        """Let no timer run any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        dirty, self._dirty = self._dirty, set()
        for log in dirty:
            if log.failure is None:
                self.flush(log)

    def _start(self, round_: _Round) -> None:
        # What joins later may leave its log in the set; the flush by the interval is then one too many.
        self._dirty.difference_update(round_.waiting)
        done = self._runtime.run_blocking(FLUSH_LANE, lambda: round_.run(self._failed))
        done.when_done(lambda done: self._finish(round_, done.result()))

    def _finish(self, round_: _Round, errors: dict[PartitionLog, Exception]) -> None:
        if self._next is round_:
            self._next = None
        for log, error in errors.items():
            reason = error.strerror if isinstance(error, OSError) else None
            log.fail(f"a flush failed: {reason or repr(error)}")
        for log, _ in round_.works:
            if log.failure is None:
                log.flushed()
        for log, waiting in round_.waiting.items():
            if log.failure is None:
                waiting.resolve(None)
            else:
                waiting.fail(LogFailed(log.failure))
