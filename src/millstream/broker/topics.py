"""The topics: making, finding, changing and deleting them, on the disk and in memory."""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

from millstream.broker.configs import TOPIC_CONFIGS, check_configs
from millstream.broker.documents import Document
from millstream.broker.errors import InvalidPartitionCount, TopicExists, UnknownTopic
from millstream.broker.partition import Partition
from millstream.broker.settings import BrokerSettings, TopicSettings
from millstream.broker.topic import TOPIC_DOCUMENT, Topic
from millstream.broker.topic_names import check_nameable, check_partition_names
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather, settled
from millstream.model.runtime import Runtime
from millstream.model.topic_name import TopicName
from millstream.storage.directory import DataDirectory
from millstream.storage.flusher import FLUSH_LANE, GroupFlusher
from millstream.storage.metadata import (
    DeleteDocument,
    DeleteTopic,
    ForgetTopic,
    MetadataStore,
    PutTopic,
    StoredTopic,
)

__all__ = ["PARTITIONS_MAX", "UPKEEP_LANE", "Topic", "Topics"]

_log = logging.getLogger(__name__)
T = TypeVar("T")
TOPICS_LANE: Final = "topics"
UPKEEP_LANE: Final = "upkeep"
"""Where files are removed, for as long as that takes: not before anyone's acknowledgement."""
PARTITIONS_MAX: Final = 10_000
"""Partitions of one topic: each is a directory and an open file, so that a slip of the hand cannot use up all."""


class Topics:
    """All topics of the server.

    Args:
        runtime: time, chance, and the lane for slow work.
        directory: where the logs lie.
        store: where what is known of the topics is kept.
        flusher: puts logs on the disk.
        settings: the server's.

    `forget_partitions` drops whatever others keep of the partitions of a topic from one on, and resolves once that
    lasts.
    """

    def __init__(
        self,
        runtime: Runtime,
        directory: DataDirectory,
        store: MetadataStore,
        flusher: GroupFlusher,
        settings: BrokerSettings,
    ) -> None:
        self._runtime = runtime
        self._directory = directory
        self._store = store
        self._flusher = flusher
        self._settings = settings
        self._by_flat: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._making: dict[str, Pending[Topic]] = {}
        self._leaving: set[str] = set()
        self._under_way: set[Pending[Any]] = set()
        self._watchers: dict[Callable[[], None], None] = {}
        self._news_due = False
        self.forget_partitions: Callable[[UUID, int], Pending[None]] = lambda *_: settled(None)

    def __iter__(self) -> Iterator[Topic]:
        return iter(list(self._by_flat.values()))

    def load(self, stored: list[StoredTopic], dropped: list[UUID], documents: Mapping[str, Document]) -> None:
        """Open every topic at the start, and end the deletion of those dropped. Raises OSError, DiskFull.

        Args:
            stored: the topics.
            dropped: topics whose files may still be there.
            documents: what else is known of topics, by id; see `Topic.document`.
        """
        for topic_id in dropped:
            self._directory.remove_topic(topic_id)
            self._store.submit([ForgetTopic(topic_id)])
        for name in self._directory.strangers({topic.id for topic in stored}):
            _log.warning("files of no topic directory=topics/%s: they are left alone", name)
        for one in stored:
            topic = Topic(one.id, TopicName(one.tenant, one.namespace, one.name), one.created_ms, dict(one.configs))
            opened: list[Partition] = []
            self._open(topic, one.partitions, opened)
            self._attach(topic, opened)
            document = documents.get(str(topic.id), {})
            topic.partitioned = document.get("partitioned", False)
            topic.leftover = document.get("leftover", 0)
            for index in document.get("terminated", ()):
                topic.partitions[index].terminated = True
            self._enter(topic)

    def by_flat_name(self, name: str) -> Topic | None:
        """The topic that flat-named protocols know under a name."""
        return self._by_flat.get(name)

    def by_name(self, name: TopicName) -> Topic | None:
        """The topic with a full name."""
        topic = self._by_flat.get(name.flat)
        return topic if topic is not None and topic.name == name else None

    def by_id(self, topic_id: UUID) -> Topic | None:
        """The topic with an id."""
        return self._by_id.get(topic_id)

    def check_new(
        self, name: TopicName, partitions: int, configs: Mapping[str, str | None], *, partitioned: bool = False
    ) -> None:
        """Check that a topic could be made.

        Raises:
            InvalidTopicName, TopicExists, InvalidPartitionCount, InvalidConfig.
        """
        check_nameable(name)
        flat = name.flat
        if flat in self._by_flat or flat in self._making or flat in self._leaving:
            raise TopicExists(f"there is a topic {flat} already")
        if not 1 <= partitions <= PARTITIONS_MAX:
            raise InvalidPartitionCount(f"a topic has 1 to {PARTITIONS_MAX} partitions, not {partitions}")
        check_configs(TOPIC_CONFIGS, configs)
        named = range(partitions) if partitioned or partitions > 1 else ()
        check_partition_names(name, named, self._partition_names)

    def _partition_names(self, name: TopicName) -> int:
        """Partitions of a topic that have names of their own; -1 if there is no such topic."""
        if name.flat in self._making:
            return PARTITIONS_MAX  # it is not known yet
        topic = self.by_name(name)
        if topic is None:
            return -1
        count = max(len(topic.partitions), topic.growing_to)
        return count if topic.partitioned or count > 1 else 0

    def create(
        self, name: TopicName, partitions: int, configs: Mapping[str, str], *, partitioned: bool = False
    ) -> Pending[Topic]:
        """Make a topic.

        Args:
            name: its full name.
            partitions: how many it gets.
            configs: its settings.
            partitioned: see `Topic`.

        Returns:
            Resolves once the topic will survive anything; fails with MetadataFailed or OSError.

        Raises:
            TopicExists, InvalidPartitionCount, InvalidConfig: at once, with nothing done.
        """
        self.check_new(name, partitions, configs, partitioned=partitioned)
        topic = Topic(self._new_id(), name, self._runtime.now_ms(), dict(configs), partitioned=partitioned)
        made: Pending[Topic] = self._track(Pending())
        self._making[name.flat] = made

        def enter(pending: Pending[None]) -> None:
            del self._making[name.flat]
            try:
                pending.result()
            except Exception as error:  # noqa: BLE001 - handed on whole to whoever waits
                # If it was the files that could not be made, the topic must not come back at the next start.
                self._store.submit([DeleteTopic(topic.id), DeleteDocument(TOPIC_DOCUMENT, str(topic.id))])
                made.fail(error)
                return
            self._enter(topic)
            _log.info("topic created name=%s id=%s partitions=%d", name.flat, topic.id, partitions)
            made.resolve(topic)

        stored = self._store.submit([PutTopic(topic.stored(partitions=partitions)), topic.document()])
        stored.chain(lambda _: self._open_off_loop(topic, partitions)).when_done(enter)
        return made

    def get_or_create(
        self, name: TopicName, *, partitions: int | None = None, partitioned: bool = False
    ) -> Pending[Topic]:
        """Find a topic, or make it.

        Args:
            name: its full name. Another topic that has the same flat name is not what was asked for.
            partitions: how many a new one gets; None for as many as the server is set to.
            partitioned: see `create`.

        Raises:
            TopicExists: the name is another topic's in a protocol with flat names.
        """
        flat = name.flat
        being_made = self._making.get(flat)
        if being_made is not None:
            return being_made
        found = self._by_flat.get(flat)
        if found is None or found.name != name:
            count = self._settings.partitions if partitions is None else partitions
            return self.create(name, count, {}, partitioned=partitioned)
        there: Pending[Topic] = Pending()
        there.resolve(found)
        return there

    def add_partitions(self, topic: Topic, count: int) -> Pending[None]:
        """Give a topic more partitions.

        Args:
            count: how many it has then.

        Raises:
            InvalidPartitionCount: it is not more than there are, or too many, or others are being added.
            TopicExists: a new partition would have the name of another topic.
        """
        if count <= len(topic.partitions):
            raise InvalidPartitionCount(f"the topic has {len(topic.partitions)} partitions already")
        if count > PARTITIONS_MAX:
            raise InvalidPartitionCount(f"a topic has at most {PARTITIONS_MAX} partitions")
        check_partition_names(topic.name, range(count), self._partition_names)

        def begin(_: None) -> Pending[None]:
            topic.growing_to = count
            stored = self._store.submit([PutTopic(topic.stored(partitions=count))]).then(
                lambda _: self._check_there(topic)
            )
            return stored.chain(lambda _: self._open_off_loop(topic, count))

        def end(_: Pending[None]) -> None:
            topic.growing_to = 0

        grown = self._resize(topic, begin)
        grown.when_done(end)
        return grown

    def remove_partitions(self, topic: Topic, count: int) -> Pending[None]:
        """Take the last partitions of a topic away, with all that is kept of them.

        Args:
            count: how many it has then; one at least.

        Returns:
            Resolves once they cannot come back; fails with MetadataFailed, and then they are there as before. What is
            added later under their numbers is new.

        Raises:
            InvalidPartitionCount: it is not less than there are, or none, or their number is being changed.
        """
        if not 1 <= count < len(topic.partitions):
            raise InvalidPartitionCount(f"the topic has {len(topic.partitions)} partitions, and keeps one at least")
        return self._resize(topic, lambda _: self._take_away(topic, count))

    def _resize(self, topic: Topic, begin: Callable[[None], Pending[None]]) -> Pending[None]:
        """Change the number of partitions, one change at a time, once nothing is left of those removed before."""
        if topic.resizing:
            raise InvalidPartitionCount("the number of partitions is being changed already")
        topic.resizing = True

        def end(_: Pending[None]) -> None:
            topic.resizing = False

        resized = self._nothing_left(topic).then(lambda _: self._check_there(topic)).chain(begin)
        resized.when_done(end)
        return self._track(resized)

    def _check_there(self, topic: Topic) -> None:
        if topic.id not in self._by_id:
            raise UnknownTopic("the topic is being deleted")

    def _nothing_left(self, topic: Topic) -> Pending[None]:
        """Resolves once nothing is stored of partitions that were removed. Fails with OSError, MetadataFailed."""
        removal = topic.removal
        if removal is not None:
            return removal.chain(lambda _: self._nothing_left(topic))
        return self._remove_leftover(topic, []) if topic.leftover else settled(None)

    def _take_away(self, topic: Topic, count: int) -> Pending[None]:
        going, partitioned = topic.partitions[count:], topic.partitioned
        topic.leftover = len(topic.partitions)
        # Pulsar's clients know a partition by its number, and go on doing so if it is the only one left.
        topic.partitioned = True
        del topic.partitions[count:]
        for partition in going:
            partition.deleted = True
            partition.announce()
            self._flusher.forget(partition.log)
        self._announce()

        def take_back(pending: Pending[None]) -> None:
            try:
                pending.result()
            except MillstreamError:
                topic.leftover, topic.partitioned = 0, partitioned
                for partition in going:
                    partition.deleted = topic.id not in self._by_id
                self._attach(topic, going)
                if topic.id in self._by_id:
                    # What was stored of the topic meanwhile has the lower number in it.
                    self._store.submit([PutTopic(topic.stored()), topic.document()])

        def begin_removal(_: None) -> None:
            _log.info("partitions deleted topic=%s first=%d count=%d", topic.name.flat, count, len(going))
            self._begin_removal(topic, going)

        stored = self._store.submit([PutTopic(topic.stored()), topic.document()])
        stored.when_done(take_back)
        return stored.then(begin_removal)

    def finish_removals(self) -> None:
        """Go on, at the start, with the removal of partitions that was under way when the server stopped."""
        for topic in self:
            if topic.leftover:
                self._begin_removal(topic, [])

    def _begin_removal(self, topic: Topic, going: list[Partition]) -> None:
        """Remove what is left of removed partitions, while nobody waits for it.

        Args:
            going: those whose files are open.
        """

        def warn(error: MillstreamError) -> None:
            _log.warning("removed partitions leave something topic=%s reason=%s", topic.name.flat, error)

        removal: Pending[None] = self._remove_leftover(topic, going).settle(lambda _: None, warn)
        if removal.done:
            return
        topic.removal = self._track(removal)

        def end(_: Pending[None]) -> None:
            topic.removal = None

        removal.when_done(end)

    def _remove_leftover(self, topic: Topic, going: list[Partition]) -> Pending[None]:
        count = len(topic.partitions)
        numbers = range(count, topic.leftover)

        def remove(_: None) -> Pending[None]:
            for partition in going:
                partition.log.close()
            if topic.id not in self._by_id:
                return settled(None)  # all of its files go
            return self._runtime.run_blocking(
                UPKEEP_LANE, lambda: self._directory.remove_partitions(topic.id, numbers)
            )

        def finish(_: None) -> Pending[None]:
            topic.leftover = 0
            if topic.id not in self._by_id:
                return settled(None)
            return self._store.submit([topic.document()])

        forgotten = self.forget_partitions(topic.id, count)
        closed = self._runtime.run_blocking(FLUSH_LANE, lambda: None)  # behind a flush that still holds the files
        return closed.chain(remove).chain(lambda _: forgotten).chain(finish)

    def set_configs(self, topic: Topic, configs: Mapping[str, str]) -> Pending[None]:
        """Replace all settings of a topic. They are obeyed at once, so that the next change builds on this one.

        Returns:
            Resolves once they last; fails with MetadataFailed, and then they are taken back.

        Raises:
            InvalidConfig: an unknown name or a bad value; nothing is changed.
        """
        check_configs(TOPIC_CONFIGS, configs)
        before, present = topic.configs, dict(configs)
        topic.configs = present
        self._obey(topic)

        def take_back(pending: Pending[None]) -> None:
            try:
                pending.result()
            except MillstreamError:
                if topic.configs is present:
                    topic.configs = before
                    self._obey(topic)

        stored = self._store.submit([PutTopic(topic.stored())])
        stored.when_done(take_back)
        return stored

    def rename(self, names: Mapping[UUID, TopicName]) -> Pending[None]:
        """Give topics other names, all or none; at once, so that the next change builds on this.

        Args:
            names: the new full names, by the topics' ids.

        Returns:
            Resolves once they last; fails with MetadataFailed, and then they have their names of before.

        Raises:
            UnknownTopic: one is being deleted.
            TopicExists: a name is another topic's; nothing is changed.
        """
        topics = [self._by_id.get(topic_id) for topic_id in names]
        renamed = [topic for topic in topics if topic is not None]
        if len(renamed) < len(names):
            raise UnknownTopic("the topic is being deleted")
        given_up = {topic.name.flat for topic in renamed}
        taken = [name.flat for name in names.values()]
        in_use = (self._by_flat.keys() - given_up) | self._making.keys() | self._leaving
        for flat in taken:
            if flat in in_use or taken.count(flat) > 1:
                raise TopicExists(f"there is a topic {flat} already")
        before = {topic.id: topic.name for topic in renamed}
        self._set_names(renamed, names)

        def take_back(pending: Pending[None]) -> None:
            try:
                pending.result()
            except MillstreamError:
                self._set_names([topic for topic in renamed if topic.id in self._by_id], before)

        stored = self._store.submit([PutTopic(topic.stored()) for topic in renamed])
        stored.when_done(take_back)
        return stored

    def _set_names(self, topics: list[Topic], names: Mapping[UUID, TopicName]) -> None:
        for topic in topics:
            del self._by_flat[topic.name.flat]
        for topic in topics:
            topic.name = names[topic.id]
            self._enter(topic)
        self._announce()

    def terminate(self, topic: Topic, index: int) -> Pending[None]:
        """Let nothing be appended to a partition ever again; at once, and lasting once the answer is there."""
        topic.partitions[index].terminate()
        return self._store.submit([topic.document()])

    def _obey(self, topic: Topic) -> None:
        settings = TopicSettings.of(topic.configs, self._settings)
        for partition in topic.partitions:
            partition.settings = settings
            partition.log.settings = settings.log

    def delete(self, topic: Topic) -> Pending[None]:
        """Delete a topic, all its records and all offsets committed in it.

        Returns:
            Resolves once it cannot come back; fails with MetadataFailed, and then it is there as before.

        Raises:
            UnknownTopic: it is being deleted already.
        """
        if self._by_id.pop(topic.id, None) is None:
            raise UnknownTopic("the topic is being deleted")
        flat = topic.name.flat
        del self._by_flat[flat]
        self._announce()
        self._leaving.add(flat)
        for partition in topic.partitions:
            partition.deleted = True
            partition.announce()
            self._flusher.forget(partition.log)

        def end(pending: Pending[None]) -> None:
            self._leaving.discard(flat)
            try:
                pending.result()
            except MillstreamError:
                for partition in topic.partitions:
                    partition.deleted = False
                self._enter(topic)

        def remove(_: None) -> Pending[None]:
            # Behind partitions that are being made, and behind any flush that still holds the files.
            made = self._runtime.run_blocking(TOPICS_LANE, lambda: None)
            gone = made.chain(lambda _: self._runtime.run_blocking(FLUSH_LANE, lambda: None))
            _log.info("topic deleted name=%s id=%s", flat, topic.id)
            return gone.chain(lambda _: self._remove_files(topic))

        stored = self._store.submit([DeleteTopic(topic.id), DeleteDocument(TOPIC_DOCUMENT, str(topic.id))])
        stored.when_done(end)
        deleted = stored.then(remove)
        self._track(deleted.chain(lambda files_gone: files_gone))
        return deleted.then(lambda _: None)

    def _remove_files(self, topic: Topic) -> Pending[None]:
        for partition in topic.partitions:
            partition.log.close()
        removed = self._runtime.run_blocking(UPKEEP_LANE, lambda: self._directory.remove_topic(topic.id))

        def report(pending: Pending[None]) -> None:
            try:
                pending.result()
            except OSError as error:
                _log.warning("files of a deleted topic stay until the next start id=%s reason=%s", topic.id, error)
            else:
                self._store.submit([ForgetTopic(topic.id)])

        removed.when_done(report)
        return removed

    def at_rest(self) -> Pending[object]:
        """Resolves once no topic is being made, changed in size or removed that is so now."""
        return gather(list(self._under_way)).then(lambda done: done)

    def _track(self, pending: Pending[T]) -> Pending[T]:
        self._under_way.add(pending)
        pending.when_done(self._under_way.discard)
        return pending

    def _open(self, topic: Topic, count: int, opened: list[Partition]) -> None:
        """Open the logs of a topic's partitions up to a number of them; may run off the loop's thread if all are new.

        Args:
            opened: takes each partition as soon as it is open.
        """
        settings = TopicSettings.of(topic.configs, self._settings)
        now_ms = self._runtime.now_ms()
        for index in range(len(topic.partitions), count):
            log, report = self._directory.open_log(topic.id, index, settings.log, now_ms)
            if report.cut_bytes or report.holes or report.scanned_bytes:
                _log.info(
                    "recovered topic=%s partition=%d scanned_bytes=%d cut_bytes=%d holes=%d",
                    topic.name.flat,
                    index,
                    report.scanned_bytes,
                    report.cut_bytes,
                    report.holes,
                )
            partition = Partition(index, log, settings, self._runtime, self._flusher, fsync=self._settings.fsync)
            opened.append(partition)

    def _attach(self, topic: Topic, opened: list[Partition]) -> None:
        """Hand opened partitions to their topic."""
        topic.partitions.extend(opened)
        self._announce()
        self._obey(topic)  # its settings may have changed meanwhile

    def _open_off_loop(self, topic: Topic, count: int) -> Pending[None]:
        opened: list[Partition] = []

        def end(pending: Pending[None]) -> None:
            try:
                pending.result()
            except Exception:  # noqa: BLE001 - told to whoever asked for the partitions
                # Nobody else would close what was opened before, and too few descriptors may have been the reason.
                for partition in opened:
                    partition.log.close()
            else:
                self._attach(topic, opened)

        opening = self._runtime.run_blocking(TOPICS_LANE, lambda: self._open(topic, count, opened))
        opening.when_done(end)
        return opening

    def watch(self, callback: Callable[[], None]) -> None:
        """Call back, after the work at hand, whenever topics have come or gone or have more partitions."""
        self._watchers[callback] = None

    def unwatch(self, callback: Callable[[], None]) -> None:
        """Stop calling back."""
        self._watchers.pop(callback, None)

    def _announce(self) -> None:
        if self._watchers and not self._news_due:
            self._news_due = True
            self._runtime.call_soon(self._tell)

    def _tell(self) -> None:
        self._news_due = False
        for callback in list(self._watchers):
            callback()

    def _enter(self, topic: Topic) -> None:
        self._announce()
        self._by_flat[topic.name.flat] = topic
        self._by_id[topic.id] = topic

    def _new_id(self) -> UUID:
        while True:
            topic_id = UUID(bytes=self._runtime.random_bytes(16), version=4)
            # Kafka's text form of an id is base64; one that begins with a dash would look like an option.
            if topic_id not in self._by_id and topic_id.bytes[0] >> 2 != 62:
                return topic_id
