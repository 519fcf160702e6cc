"""The loop of `millstream consume`: from a consumer to standard output, until it is time to stop."""

__all__ = ["Ends", "Outage", "Stop", "read_records"]

import os
import select
import signal
import stat
import time
from collections.abc import Iterable
from types import FrameType
from typing import Any, BinaryIO, Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from millstream.cli.connection import Connection
from millstream.cli.errors import CliError, warn
from millstream.cli.record_format import Render

_BATCH_COUNT_MAX: Final = 1000
# How often an idle loop looks whether it should stop.
_IDLE_TIMEOUT_S: Final = 0.2
# A broker that is being restarted is back by then.
_OUTAGE_TIMEOUT_S: Final = 5.0

_PASSING: Final = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._MAX_POLL_EXCEEDED,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
    }
)


class Stop:
    """Turns SIGINT and SIGTERM into a flag, so that what was read is written and committed before the end.

    A context manager. The second signal has its usual effect.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Stop":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)


class Ends:
    """Knows when everything that was there at the start has been read.

    An end is the offset one past the last record of a partition, as it was when the reading began. A partition
    is also at its end when the broker says so: records that compaction or a transaction removed never come.
    """

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._known = False

    def add(self, ends: dict[int, int], positions: dict[int, int]) -> None:
        """Take on partitions: their ends, and the offsets from which they are read, where these are known."""
        self._known = True
        for partition, end in ends.items():
            if positions.get(partition, -1) < end:
                self._open[partition] = end

    def drop(self, partitions: Iterable[int]) -> None:
        """Forget partitions that somebody else reads now."""
        for partition in partitions:
            self._open.pop(partition, None)

    def covers(self, partition: int, offset: int) -> bool:
        """Tell whether a record was there at the start, and note that it was read."""
        end = self._open.get(partition)
        if end is None:
            return False
        if offset + 1 >= end:
            del self._open[partition]
        return offset < end

    @property
    def reached(self) -> bool:
        """True when nothing is left to read."""
        return self._known and not self._open


class Outage:
    """Tells the user, or gives up, when the broker has gone away.

    The client library tries to reconnect for ever and says nothing once it is back, so the address itself
    is tried, now and then, as long as the library reports the broker lost.

    Args:
        connection: the broker.
        patient: wait for its return instead of giving up.
    """

    def __init__(self, connection: Connection, *, patient: bool) -> None:
        self._connection = connection
        self._patient = patient
        self._since_s: float | None = None

    def check(self) -> None:
        """Look after the broker. Called while no records come.

        Raises:
            CliError: it has been away for too long, and nobody wants to wait.
        """
        if not self._connection.lost:
            return
        problem = self._connection.unreachable()
        if problem is None:
            self._connection.lost = False
            if self._since_s is not None:
                self._since_s = None
                warn(f"the broker at {self._connection.addresses} is back")
            return
        if self._since_s is None:
            self._since_s = time.monotonic()
            warn(f"lost the broker at {self._connection.addresses} ({problem}); waiting for it")
        elif not self._patient and time.monotonic() - self._since_s > _OUTAGE_TIMEOUT_S:
            raise CliError(
                f"the broker at {self._connection.addresses} went away ({problem})",
                "start it again, and read on from the last offset seen",
            )


class _Progress:
    """What the loop has written, and what of it may be committed."""

    def __init__(self, consumer: Any, *, commits: bool) -> None:
        self.record_count = 0
        self._consumer = consumer
        self._commits = commits
        self._next: dict[tuple[str, int], int] = {}

    def note(self, message: Any) -> None:
        self.record_count += 1
        if self._commits:
            self._next[message.topic(), message.partition()] = message.offset() + 1

    def store(self) -> None:
        """Let the library commit what has been written out, which it does every few seconds."""
        for (topic, partition), offset in self._next.items():
            try:
                self._consumer.store_offsets(offsets=[TopicPartition(topic, partition, offset)])
            except KafkaException as error:
                # Another member has the partition now, and will read these records again.
                if error.args[0].code() != KafkaError._STATE:
                    raise
        self._next.clear()


def read_records(
    consumer: Any,
    out: BinaryIO,
    render: Render,
    *,
    count_max: int | None,
    first_offsets: dict[int, int],
    ends: Ends | None,
    stop: Stop,
    outage: Outage,
    commits: bool,
) -> int:
    """Write records until the wanted number, the end, or the order to stop is reached.

    Args:
        consumer: a confluent_kafka.Consumer that has its partitions or has subscribed to them.
        out: takes the bytes of each record.
        render: turns a record into bytes.
        count_max: stop after so many records; None for no limit.
        first_offsets: records before these offsets, by partition, are passed over.
        ends: stop when these are reached; None to wait for more.
        stop: set when the process has been asked to end.
        outage: looks after the broker while nothing comes.
        commits: mark records for a commit once they are written out.

    Returns:
        How many records were written.

    Raises:
        BrokenPipeError: nobody reads the output any more.
        CliError, KafkaException: reading cannot go on.
    """
    progress = _Progress(consumer, commits=commits)
    reader = _PipeReader(out)
    while not (stop.requested or (ends is not None and ends.reached)):
        batch = consumer.consume(_BATCH_COUNT_MAX, 0)
        if not batch:
            out.flush()
            progress.store()
            if reader.gone():
                raise BrokenPipeError
            outage.check()
            batch = consumer.consume(1, _IDLE_TIMEOUT_S)
        for message in batch:
            if message.error() is not None:
                _note_event(message, ends)
                continue
            partition, offset = message.partition(), message.offset()
            if ends is not None and not ends.covers(partition, offset):
                continue
            if offset < first_offsets.get(partition, 0):
                continue
            out.write(render(message))
            progress.note(message)
            if progress.record_count == count_max:
                out.flush()
                progress.store()
                return progress.record_count
    out.flush()
    progress.store()
    return progress.record_count


def _note_event(message: Any, ends: Ends | None) -> None:
    error = message.error()
    if error.code() == KafkaError._PARTITION_EOF:
        if ends is not None:
            ends.drop([message.partition()])
    elif not (error.retriable() or error.code() in _PASSING):
        raise KafkaException(error)


class _PipeReader:
    """Notices that the other end of a pipe is closed while nothing is written to it."""

    def __init__(self, out: BinaryIO) -> None:
        self._poll: select.poll | None = None
        try:
            descriptor = out.fileno()
        except OSError:
            # Not a file of the system: a test reads the output.
            return
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            self._poll = select.poll()
            self._poll.register(descriptor, 0)

    def gone(self) -> bool:
        return self._poll is not None and any(event & select.POLLERR for _, event in self._poll.poll(0))
