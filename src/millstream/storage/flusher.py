"""Group flushing: one fdatasync of a log serves everyone who waits for what was appended before it."""

from collections.abc import Callable
from typing import Final

from millstream.model.pending import Pending
from millstream.model.runtime import Runtime, Timer
from millstream.storage.errors import LogFailed
from millstream.storage.log import PartitionLog

__all__ = ["FLUSH_LANE", "GroupFlusher"]

FLUSH_LANE: Final = "flush"


class GroupFlusher:
    """Puts logs on the disk, off the loop's thread, one round after the other.

    All that asks while a round is under way goes into the next one.

    Args:
        runtime: timers and the lane.
        interval_ms: the longest that an appended batch waits for a flush that nobody asked for.
    """

    def __init__(self, runtime: Runtime, interval_ms: int) -> None:
        self._runtime = runtime
        self._interval_s = interval_ms / 1000
        self._next_round: dict[PartitionLog, Pending[None]] = {}
        self._running = False
        self._dirty: set[PartitionLog] = set()
        self._timer: Timer | None = None

    def flush(self, log: PartitionLog) -> Pending[None]:
        """Flush a log.

        Returns:
            Resolves when everything appended so far is on the disk; fails with LogFailed if that is not certain,
            and then the log takes no more writes. A failed flush is never repeated: the system may have dropped
            the pages that it could not write.
        """
        waiting = self._next_round.get(log)
        if waiting is None:
            if not self._next_round and not self._running:
                # At the end of the work at hand, so that all batches of one read share the round.
                self._runtime.call_soon(self._start)
            waiting = self._next_round[log] = Pending()
        return waiting

    def flush_soon(self, log: PartitionLog) -> None:
        """See to it that a log is flushed within the interval."""
        self._dirty.add(log)
        if self._timer is None:
            self._timer = self._runtime.call_later(self._interval_s, self._tick)

    def forget(self, log: PartitionLog) -> None:
        """Flush a log no more: it goes away. Those who wait are told that it failed."""
        self._dirty.discard(log)
        waiting = self._next_round.pop(log, None)
        if waiting is not None:
            waiting.fail(LogFailed("the log is being deleted"))

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

    def _start(self) -> None:
        if self._running or not self._next_round:
            return
        self._running = True
        round_, self._next_round = self._next_round, {}
        self._dirty.difference_update(round_)
        works = [(log, log.flush_work()) for log in round_]
        done = self._runtime.run_blocking(FLUSH_LANE, lambda: [_attempt(work) for _, work in works])

        def finish(pending: Pending[list[Exception | None]]) -> None:
            self._running = False
            for (log, waiting), error in zip(round_.items(), pending.result(), strict=True):
                if error is not None:
                    reason = error.strerror if isinstance(error, OSError) else None
                    log.fail(f"a flush failed: {reason or repr(error)}")
                if log.failure is not None:
                    waiting.fail(LogFailed(log.failure))
                    continue
                log.flushed()
                waiting.resolve(None)
            self._start()

        done.when_done(finish)


def _attempt(work: Callable[[], None]) -> Exception | None:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - whatever it was, what the disk holds is not known
        return error
    return None
