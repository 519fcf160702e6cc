"""The byte addresses of all partitions that anybody has asked for, kept up to date as records come and go.

A partition that nobody reads by address costs nothing. The first question about one walks over its log, in slices, so
that nobody else waits; from then on every append is followed at once, in this life of the server and in later ones.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from millstream.broker.address_index import AddressIndex, EncodedFrames, Encoding
from millstream.broker.broker import Broker
from millstream.broker.errors import UnknownTopic
from millstream.broker.partition import Partition
from millstream.model.errors import IoFailed, MillstreamError
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Timer
from millstream.storage.address_file import ADDRESSES_FILE, AddressFile
from millstream.storage.flusher import FLUSH_LANE

__all__ = ["Addresses"]

_log = logging.getLogger(__name__)
_SLICE_BYTES: Final = 128 * 1024
"""Log that is walked over before others get their turn: a millisecond where frames must be taken apart."""
_AT_ONCE_BYTES: Final = 1024 * 1024
"""Log that a question about a partition walks over itself, if that is all that is new."""


class Addresses:
    """The addresses in one encoding.

    Args:
        broker: whose partitions they are.
        encoding: whose bytes are addressed.
    """

    def __init__(self, broker: Broker, encoding: Encoding) -> None:
        self._broker = broker
        self._encoding = encoding
        self.encoded = EncodedFrames()
        self._kept: dict[Partition, _Kept] = {}
        self._dirty: set[_Kept] = set()
        self._timer: Timer | None = None
        self._closed = False
        files = broker.directory.files
        for topic in broker.topics:
            for partition in topic.partitions:
                if files.size(f"{partition.log.directory}/{ADDRESSES_FILE}"):
                    self._keep_if_possible(partition)

    def index(self, partition: Partition) -> AddressIndex | Pending[AddressIndex]:
        """The index of a partition, brought up to date; pending if that takes longer than a moment.

        Raises:
            IoFailed, DiskFull, StorageError: it cannot be read or written.
            UnknownTopic: the topic is being deleted; also the error of what is pending.
        """
        if partition.deleted:
            raise UnknownTopic("the topic is being deleted")
        kept = self._kept.get(partition) or self._keep(partition)
        return kept.ready()

    def _keep(self, partition: Partition) -> "_Kept":
        kept = self._kept[partition] = _Kept(self, partition, self._encoding, self._broker)
        kept.begin()
        return kept

    def _keep_if_possible(self, partition: Partition) -> None:
        """Follow a partition again at a start; whoever asks for it later is told what is wrong."""
        try:
            self._keep(partition)
        except (MillstreamError, OSError) as error:
            _log.warning("addresses not kept directory=%s reason=%s", partition.log.directory, error)

    def replacing(self, partition: Partition, start_offset: int, end_offset: int) -> Pending[None]:
        """The frames between two offsets of a partition are about to be written anew; see `Replacing` of the cleaner.

        Returns:
            Resolves once it is noted that their addresses change. Fails with IoFailed, DiskFull if it cannot be.

        Raises:
            IoFailed, DiskFull, StorageError: it cannot be.
        """
        kept = self._kept.get(partition)
        if kept is None:
            files = self._broker.directory.files
            if not files.size(f"{partition.log.directory}/{ADDRESSES_FILE}"):
                return settled(None)
            kept = self._keep(partition)
        return kept.replacing(start_offset, end_offset)

    def forget(self, partition: Partition) -> None:
        """Stop following a partition; the next question about it begins anew, from the file."""
        kept = self._kept.pop(partition, None)
        if kept is not None:
            self._dirty.discard(kept)
            kept.close()

    # Putting it on the disk

    def sync_soon(self, kept: "_Kept") -> None:
        """See to it that what was written is on the disk within the flush interval."""
        self._dirty.add(kept)
        if self._timer is None and not self._closed:
            self._timer = self._broker.runtime.call_later(self._broker.settings.flush_interval_ms / 1000, self._sync)

    def _sync(self) -> None:
        self._timer = None
        dirty, self._dirty = self._dirty, set()
        for kept in dirty:
            kept.sync()

    def close(self) -> None:
        """Let nothing run any more, and put all on the disk."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._sync()
        for partition in list(self._kept):
            self.forget(partition)


class _Kept:
    """The index of one partition, and who waits for it.

    It is ready once it has seen the log as it was found, and what it has seen is on the disk: an address that was
    told must not depend on what a power loss could take. Whoever asks waits until it has seen what was there then,
    not for what is written faster than it can follow.
    """

    def __init__(self, owner: Addresses, partition: Partition, encoding: Encoding, broker: Broker) -> None:
        self._owner = owner
        self._partition = partition
        self._runtime = broker.runtime
        self._ready = False
        self._found_offset = partition.stable_offset
        self._waiting: deque[tuple[int, Pending[AddressIndex]]] = deque()
        self._walking = False
        self._closed = False
        self._failure: IoFailed | None = None
        self._rewriting: Pending[None] | None = None
        try:
            self._file = AddressFile(broker.directory.files, partition.log.directory)
            try:
                self._index = AddressIndex(partition, self._file, encoding, owner.encoded)
            except (MillstreamError, OSError):
                self._file.close()
                raise
        except OSError as error:
            raise IoFailed(f"the addresses of a partition cannot be kept: {error.strerror}") from None

    def begin(self) -> None:
        """Look at the log, now and whenever there is news."""
        self._partition.watch(self._follow)
        self._walk()

    def ready(self) -> AddressIndex | Pending[AddressIndex]:
        """The index if it knows all, or once it knows all there is now.

        Raises:
            IoFailed, DiskFull, StorageError: the log cannot be read, or the file not be written.
        """
        if self._failure is not None:
            raise self._failure
        if self._ready and self._index.behind:
            self._step(_AT_ONCE_BYTES)
        if self._ready and not self._index.behind:
            return self._index
        waiting: Pending[AddressIndex] = Pending()
        self._waiting.append((self._partition.stable_offset, waiting))
        self._follow()
        return waiting

    def _follow(self) -> None:
        """There is news of the partition: take note of it."""
        if self._partition.deleted:
            self._owner.forget(self._partition)
        elif not self._walking:
            self._walk()

    def _walk(self) -> None:
        """Walk over a slice of the log; again, after others had their turn, while there is more."""
        self._walking = False
        if self._closed:
            return
        try:
            self._step(_SLICE_BYTES)
        except (MillstreamError, OSError) as error:
            self._give_up(error)
            return
        if self._ready:
            self._answer()
        elif self._index.seen_offset >= self._found_offset:
            self._make_ready()
            return
        if self._index.behind and not self._walking:
            self._walking = True
            self._runtime.call_soon(self._walk)

    def _step(self, max_bytes: int) -> None:
        self._index.catch_up(max_bytes)
        self._owner.sync_soon(self)
        rewrite = self._index.rewriting()
        if rewrite is not None:
            self._rewrite(rewrite)

    def replacing(self, start_offset: int, end_offset: int) -> Pending[None]:
        """See `Addresses.replacing`."""
        if self._rewriting is not None:
            return self._rewriting.chain(lambda _: self.replacing(start_offset, end_offset))
        if self._index.seen_offset < end_offset:
            # What the index came by until then, it would take for what stays.
            seen: Pending[AddressIndex] = Pending()
            self._waiting.append((end_offset, seen))
            self._follow()
            return seen.chain(lambda _: self.replacing(start_offset, end_offset))
        work = self._index.replacing(start_offset, end_offset)
        return settled(None) if work is None else self._rewrite(work)

    def _rewrite(self, work: Callable[[], None]) -> Pending[None]:
        """Make the file anew; gives when that is done."""
        rewriting = self._rewriting = self._runtime.run_blocking(FLUSH_LANE, work).then(self._rewritten)

        def end(done: Pending[None]) -> None:
            self._rewriting = None
            try:
                done.result()
            except (MillstreamError, OSError) as error:
                if not self._closed:
                    self._give_up(error)

        rewriting.when_done(end)
        return rewriting

    def _rewritten(self, _: None) -> None:
        if self._closed:
            raise UnknownTopic("the topic is being deleted")
        self._runtime.run_blocking(FLUSH_LANE, self._index.rewritten())

    def _make_ready(self) -> None:
        """Put what was found on the disk; then it may be told."""
        self._walking = True  # until then there is nothing else to do

        def answer(done: Pending[None]) -> None:
            self._walking = False
            if self._closed:
                return
            try:
                done.result()
            except (MillstreamError, OSError) as error:
                self._give_up(error)
                return
            self._ready = True
            self._follow()

        self._runtime.run_blocking(FLUSH_LANE, self._file.sync).when_done(answer)

    def _answer(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._index.seen_offset:
            self._waiting.popleft()[1].resolve(self._index)

    def _refuse(self, error: MillstreamError) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, one in waiting:
            one.fail(error)

    def _give_up(self, error: BaseException) -> None:
        """Tell those who wait, and forget what is not certain any more: the next question reads the file again."""
        _log.warning("addresses not kept directory=%s reason=%s", self._partition.log.directory, error)
        self._failure = IoFailed(f"the addresses of a partition cannot be kept: {error}")
        self._refuse(self._failure)
        self._owner.forget(self._partition)

    def sync(self) -> None:
        """Put what was written on the disk."""
        file = self._file

        def report(done: Pending[None]) -> None:
            try:
                done.result()
            except OSError as error:
                _log.warning("addresses not flushed directory=%s reason=%s", self._partition.log.directory, error)

        self._runtime.run_blocking(FLUSH_LANE, file.sync).when_done(report)

    def close(self) -> None:
        """Follow no more."""
        self._closed = True
        self._partition.unwatch(self._follow)
        # Behind any work that holds the file.
        close: Callable[[], None] = self._file.close
        self._runtime.run_blocking(FLUSH_LANE, close)
        self._refuse(UnknownTopic("the topic is being deleted"))
