"""The broker: everything that a session can ask for, in one place, and its life from start to stop."""

import logging
from collections import Counter
from typing import Final
from uuid import UUID

from millstream.broker.acls import Acls
from millstream.broker.authorizer import Authorizer
from millstream.broker.cleaning import LogCleaner
from millstream.broker.compaction import Compaction
from millstream.broker.deduplication import Deduplication
from millstream.broker.documents import Documents
from millstream.broker.errors import ProducersHeld
from millstream.broker.group_configs import GroupConfigs
from millstream.broker.groups import Groups
from millstream.broker.holders import Holders
from millstream.broker.namespaces import Namespaces
from millstream.broker.namespaces.backlogs import Backlogs
from millstream.broker.offsets import Offsets
from millstream.broker.partition import Partition
from millstream.broker.producer_ids import ProducerIds
from millstream.broker.producers import Producers
from millstream.broker.schemas import SchemaRegistry
from millstream.broker.settings import BrokerSettings
from millstream.broker.subscriptions import Subscriptions
from millstream.broker.topic import TOPIC_DOCUMENT
from millstream.broker.topics import UPKEEP_LANE, Topic, Topics
from millstream.broker.transactions import TransactionalProducers, TransactionBounds, Transactions
from millstream.broker.translated_frames import TranslatedFrames
from millstream.broker.volatile import VolatileTopics
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather
from millstream.model.runtime import Runtime, Timer
from millstream.model.topic_name import TopicName
from millstream.storage.directory import DataDirectory
from millstream.storage.errors import LogFailed
from millstream.storage.flusher import FLUSH_LANE, GroupFlusher
from millstream.storage.metadata import MetadataStore, PutValue
from millstream.storage.segment import Segment

__all__ = ["Broker"]

_log = logging.getLogger(__name__)
CLUSTER_ID: Final = "cluster.id"
RETENTION_CONFIGS: Final = {"retention.ms", "retention.bytes"}
"""What a topic may be set to keep whatever its namespace says."""


class Broker:
    """The broker over one data directory.

    Args:
        runtime: time, waiting and chance.
        directory: the data directory, held by this process.
        store: the metadata store, not yet loaded.
        settings: the server's.

    Raises:
        MetadataFailed, OSError, DiskFull: what is stored cannot be read.

    `dropped_messages` counts, by protocol, messages that were not stored although nobody could be told so.
    """

    def __init__(
        self, runtime: Runtime, directory: DataDirectory, store: MetadataStore, settings: BrokerSettings
    ) -> None:
        self.runtime = runtime
        self.settings = settings
        self.directory = directory
        self._store = store
        self._flusher = GroupFlusher(runtime, settings.flush_interval_ms)
        snapshot = store.load()
        self.topics = Topics(runtime, directory, store, self._flusher, settings)
        self.documents = Documents(store, snapshot.documents)
        self.authorizer = (
            Authorizer(Acls(self.documents), settings.super_users, allow_if_none=settings.allow_if_no_acl)
            if settings.authorizer
            else None
        )
        self.topics.load(snapshot.topics, snapshot.dropped, self.documents.of_kind(TOPIC_DOCUMENT))
        group_configs = GroupConfigs(self.documents, settings)
        offsets = Offsets(store, snapshot.offsets)
        self.groups = Groups(runtime, settings, offsets, self.topics, group_configs, self.documents)
        self.subscriptions = Subscriptions(
            runtime, self.groups.offsets, settings.subscriptions, bounds=TransactionBounds()
        )
        self.transactions = Transactions(
            runtime,
            self.documents,
            self.topics,
            self.subscriptions,
            self.groups.offsets,
            enabled=settings.transactions,
        )
        self.holders = Holders(several=settings.several_protocols)
        self.groups.in_use = lambda name: self.subscriptions.connected(name) or bool(self.holders.of(name))
        self.namespaces = Namespaces(runtime, self.documents, self.topics, auto_create=settings.auto_create_topics)
        self.backlogs = Backlogs(runtime, self.subscriptions, self.namespaces)
        self.producers = Producers(runtime, self.documents)
        self.volatile = VolatileTopics(runtime, self.producers, self.documents)
        known = {topic.id for topic in self.topics} | self.volatile.declarations.ids
        self.schemas = SchemaRegistry(runtime, self.documents, known)
        self.compaction = Compaction(runtime, directory, self.documents)
        self.cleaner = LogCleaner(runtime, directory.files, self.topics, self.documents, settings)
        self.cleaner.aborted = self.transactions.aborted
        self.deduplication = Deduplication(runtime, self.documents)
        self.translated_frames = TranslatedFrames(settings.translation_cache_bytes)
        self.producer_ids = ProducerIds(store, snapshot.values)
        self.transactional_producers = TransactionalProducers(
            runtime, self.documents, self.transactions, self.producer_ids, settings
        )
        self.cluster_id = snapshot.values.get(CLUSTER_ID) or self._new_cluster_id()
        self.dropped_messages: Counter[str] = Counter()
        self._upkeep_timer: Timer | None = None
        self._upkeep_later()
        self.topics.forget_partitions = self._forget_partitions
        self.topics.finish_removals()

    def _new_cluster_id(self) -> str:
        cluster_id = str(UUID(bytes=self.runtime.random_bytes(16), version=4))
        self._store.submit([PutValue(CLUSTER_ID, cluster_id)])
        return cluster_id

    def _forget_partitions(self, topic_id: UUID, first: int) -> Pending[None]:
        """Drop all that is kept of the partitions of a topic from one on; those under their numbers will be new."""
        self.subscriptions.forget_topic(topic_id, first)
        self.producers.forget_topic(topic_id, first)
        self.deduplication.forget_topic(topic_id, first)
        self.transactions.forget_topic(topic_id, first)
        self.compaction.forget_topic(topic_id, first)
        self.cleaner.forget_topic(topic_id, first)
        # Changes are stored in order: once this one lasts, so do all before.
        return self.groups.forget_partitions(topic_id, first)

    def delete_topic(self, topic: Topic) -> Pending[None]:
        """Delete a topic with all that belongs to it. Raises UnknownTopic if it is being deleted already."""

        def forget(_: None) -> None:
            self.groups.forget_topic(topic.id)
            self.subscriptions.forget_topic(topic.id)
            self.schemas.forget_topic(topic.id)
            self.producers.forget_topic(topic.id)
            self.deduplication.forget_topic(topic.id)
            self.transactions.forget_topic(topic.id)
            self.compaction.forget_topic(topic.id)
            self.cleaner.forget_topic(topic.id)

        return self.topics.delete(topic).then(forget)

    def forget_volatile(self, name: TopicName) -> Pending[None]:
        """Drop what lasts of a topic that keeps nothing: its partitions and its schemas.

        Args:
            name: without a partition.
        """
        declarations = self.volatile.declarations
        declared = declarations.find(name)

        def forget(_: None) -> None:
            if declared is not None:
                self.schemas.forget_topic(declared.id)

        return declarations.drop(name).then(forget)

    def delete_records(self, partition: Partition, offset: int) -> Pending[int]:
        """Delete the records of a partition before an offset, so that they stay deleted.

        Returns:
            Resolves with the first offset that is left.

        Raises:
            OffsetOutOfRange: the offset is negative or lies behind the end.
            LogFailed: the log takes no changes.
        """
        log = partition.log
        if log.failure is not None:
            raise LogFailed(log.failure)
        segments = log.delete_before(offset)
        start_offset, keep = log.start_offset, log.start_offset_work()

        for segment in segments:
            segment.close()

        def work() -> int:
            keep()
            _remove(segments)
            return start_offset

        # A segment is taken out of use only after the flush that closed it: there is none to wait for.
        return self.runtime.run_blocking(UPKEEP_LANE, work)

    # Upkeep

    def _upkeep_later(self) -> None:
        delay_s = self.settings.retention_check_interval_ms / 1000
        self._upkeep_timer = self.runtime.call_later(delay_s, self._upkeep)

    def _upkeep(self) -> None:
        """Retention of every log, and forgetting of producers and offsets."""
        self._upkeep_later()
        now_ms = self.runtime.now_ms()
        expired: list[Segment] = []
        for topic in self.topics:
            for partition in topic.partitions:
                if self.backlogs.enforce(topic, partition.index) is not None:
                    self._part_from_producers(topic, partition)
                expired += self._expired(topic, partition, now_ms)
                partition.log.producers.expire(now_ms - self.settings.producer_expiration_ms)
                if partition.log.has_sealed:
                    self._flusher.flush_soon(partition.log)
        self.groups.expire()
        self.transactions.expire()
        self.transactional_producers.expire()
        if expired:
            _log.info("retention segments=%d bytes=%d", len(expired), sum(s.log_bytes for s in expired))
            for segment in expired:
                segment.close()
            self.runtime.run_blocking(UPKEEP_LANE, lambda: _remove(expired))

    def _expired(self, topic: Topic, partition: Partition, now_ms: int) -> list[Segment]:
        """What retention no longer keeps of a partition. What a subscription still needs is kept until it expires."""
        namespace = self.namespaces.find(topic.name.tenant, topic.name.namespace)
        retention = None
        if namespace is not None:
            policies = namespace.policies
            if policies.compaction_threshold_bytes:
                self.compaction.compact_over(topic, partition.index, policies.compaction_threshold_bytes)
            if policies.message_ttl_s:
                self._expire_messages(topic, partition, now_ms - policies.message_ttl_s * 1000)
            is_free = partition.settings.expires and not RETENTION_CONFIGS & topic.configs.keys()
            if policies.retention is not None and is_free:
                minutes, megabytes = policies.retention.minutes, policies.retention.megabytes
                retention = (
                    minutes if minutes < 0 else minutes * 60_000,
                    megabytes if megabytes < 0 else megabytes * 1024 * 1024,
                )
        hold = self.subscriptions.hold_offset(topic.id, partition.index)
        return partition.log.expired(now_ms, hold_offset=hold, retention=retention)

    def _part_from_producers(self, topic: Topic, partition: Partition) -> None:
        """Have producers connect again, which is refused as long as a backlog is over its quota."""
        for producer in self.producers.of(topic.id, partition.index):
            self.producers.disconnect(topic.id, partition.index, producer)
            producer.displaced(ProducersHeld("a subscription is too far behind"))

    def _expire_messages(self, topic: Topic, partition: Partition, before_ms: int) -> None:
        for name in self.subscriptions.names(topic, partition.index):
            subscription = self.subscriptions.find(topic, partition.index, name)
            if subscription is not None:
                subscription.expire_before_time(before_ms)

    # The end

    def close(self) -> Pending[None]:
        """Put everything on the disk, so that the next start need not scan, and close all files."""
        if self._upkeep_timer is not None:
            self._upkeep_timer.cancel()
        self._flusher.stop()
        self.cleaner.close()
        self.subscriptions.close()
        self.deduplication.close()
        self.transactions.close()
        self.groups.close()
        return self.topics.at_rest().chain(lambda _: self._close_logs())

    def _close_logs(self) -> Pending[None]:
        logs = [partition.log for topic in self.topics for partition in topic.partitions]
        touched = [log for log in logs if log.touched and log.failure is None]
        flushing = gather([self._flusher.flush(log) for log in touched])

        def write_indexes(_: object) -> Pending[None]:
            works = [log.close_work() for log in touched if log.failure is None]

            def work() -> None:
                for one in works:
                    one()

            return self.runtime.run_blocking(FLUSH_LANE, work)

        def warn(error: MillstreamError) -> None:
            _log.warning("not all indexes could be written reason=%s: the next start scans the logs", error)

        def finish(_: object) -> None:
            for log in logs:
                log.close()
            self._store.close()
            self.directory.release()

        written = flushing.chain(write_indexes).settle(lambda _: None, warn)
        removed = written.chain(lambda _: self.runtime.run_blocking(UPKEEP_LANE, lambda: None))
        # Changes are made in order: behind this empty one nothing is under way in the store any more.
        return removed.chain(lambda _: self._store.submit([])).settle(finish, finish)


def _remove(segments: list[Segment]) -> None:
    for segment in segments:
        try:
            segment.remove_files()
        except OSError as error:
            _log.warning("files of a segment stay file=%s reason=%s", segment.log_path, error)
