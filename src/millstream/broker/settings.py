"""The settings in force, typed: of the server, and of each topic on top of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millstream.broker.acl import InvalidAcl, check_principal
from millstream.broker.configs import BROKER_CONFIGS, TOPIC_CONFIGS, check_configs, parse_value
from millstream.broker.errors import InvalidConfig
from millstream.storage.log import LogSettings

__all__ = ["BrokerSettings", "ConsumerGroupSettings", "SubscriptionSettings", "TopicSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionSettings:
    """The limits and delays of subscriptions.

    Args:
        unacknowledged_per_consumer_max: records at which a consumer of a Shared or Key_Shared subscription gets no
            more, until half of them are acknowledged; 0 for no limit.
        unacknowledged_max: the same for all consumers of a subscription together.
        take_over_delay_ms: how long the next consumer of a Failover subscription waits before it is delivered what
            the one before it has not acknowledged, so that acknowledgements under way arrive first.
        persist_interval_ms: acknowledgements without a receipt are made durable in groups, this often.
        entries_per_consumer: frames that one consumer of a Shared subscription gets before the next has its turn.
        turn_entries_max: frames that a subscription delivers in one turn of the loop.
        turn_bytes_max: bytes that a subscription delivers in one turn of the loop; one frame may exceed it.
        look_ahead_per_consumer: frames that a Key_Shared subscription reads past those it cannot deliver, for each
            consumer.
        look_ahead_max: the same for all consumers of a subscription together.
    """

    unacknowledged_per_consumer_max: int = 50_000
    unacknowledged_max: int = 200_000
    take_over_delay_ms: int = 1000
    persist_interval_ms: int = 50
    entries_per_consumer: int = 20
    turn_entries_max: int = 1000
    turn_bytes_max: int = 1024 * 1024
    look_ahead_per_consumer: int = 2000
    look_ahead_max: int = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupSettings:
    """The limits of consumer groups (KIP-848); `configs` has what each means."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    size_max: int
    assignors: tuple[str, ...]
    may_upgrade: bool
    may_downgrade: bool


class BrokerSettings:
    """The server's settings.

    Args:
        configs: those that were set, by name; checked here.

    Raises:
        InvalidConfig: an unknown name or a bad value.
    """

    def __init__(self, configs: Mapping[str, str]) -> None:
        check_configs(BROKER_CONFIGS, configs)
        self.configs = dict(configs)
        advertised: str = self._value("advertised.listeners")
        self.advertised_listeners = [one for one in advertised.split(",") if one.strip()]
        self.cleaner_enabled: bool = self._value("log.cleaner.enable")
        self.cleaner_backoff_ms: int = self._value("log.cleaner.backoff.ms")
        self.cleaner_keys_bytes: int = self._value("log.cleaner.dedupe.buffer.size")
        self.connections_max: int = self._value("max.connections")
        self.connections_max_idle_ms: int = self._value("connections.max.idle.ms")
        self.authorizer: bool = bool(self._value("authorizer.class.name"))
        self.allow_if_no_acl: bool = self._value("allow.everyone.if.no.acl.found")
        self.super_users = _principals(self._value("super.users"))
        self.auto_create_topics: bool = self._value("auto.create.topics.enable")
        self.fsync: bool = self._value("durability") == "fsync"
        self.flush_interval_ms: int = self._value("flush.interval.ms")
        self.initial_rebalance_delay_ms: int = self._value("group.initial.rebalance.delay.ms")
        self.session_timeout_max_ms: int = self._value("group.max.session.timeout.ms")
        self.session_timeout_min_ms: int = self._value("group.min.session.timeout.ms")
        self.several_protocols: bool = self._value("group.several.protocols.enable")
        self.group_size_max: int = self._value("group.max.size")
        self.consumer_groups = self._consumer_groups()
        self.iggy_deduplication: tuple[int, int] | None = None
        if self._value("iggy.deduplication.enable"):
            entries_max, keep_ms = self._value("iggy.deduplication.entries.max"), self._value("iggy.deduplication.ms")
            self.iggy_deduplication = entries_max, keep_ms
        self.kafka07_broker_id: int = self._value("kafka07.broker.id")
        self.kafka07_magic: int = self._value("kafka07.magic")
        self.message_payload_bytes_max: int = self._value("max.message.size")
        self.recognition_limit_ms: int = self._value("listener.recognition.timeout.ms")
        self.tls_required: bool = self._value("tls.required")
        self.retention_check_interval_ms: int = self._value("log.retention.check.interval.ms")
        self.fetch_sessions_max: int = self._value("max.incremental.fetch.session.cache.slots")
        self.partitions: int = self._value("num.partitions")
        self.offset_note_bytes_max: int = self._value("offset.metadata.max.bytes")
        self.offsets_retention_ms: int = self._value("offsets.retention.minutes") * 60_000
        self.broker_entry_metadata: bool = self._value("pulsar.broker.entry.metadata.enable")
        self.deduplication: bool = self._value("pulsar.deduplication.enable")
        self.transactions: bool = self._value("pulsar.transactions.enable")
        self.subscriptions = SubscriptionSettings(
            unacknowledged_per_consumer_max=self._value("subscription.unacknowledged.per.consumer.max"),
            unacknowledged_max=self._value("subscription.unacknowledged.max"),
            take_over_delay_ms=self._value("subscription.take.over.delay.ms"),
        )
        self.producer_expiration_ms: int = self._value("producer.id.expiration.ms")
        self.sasl_mechanisms: tuple[str, ...] = self._value("sasl.enabled.mechanisms")
        self.request_bytes_max: int = self._value("socket.request.max.bytes")
        self.transaction_timeout_max_ms: int = self._value("transaction.max.timeout.ms")
        self.transactional_id_expiration_ms: int = self._value("transactional.id.expiration.ms")
        self.translation_cache_bytes: int = self._value("translation.cache.bytes")
        self.zookeeper_hosts: str = self._value("zookeeper.connect")

    def _consumer_groups(self) -> ConsumerGroupSettings:
        for name in ("session.timeout", "heartbeat.interval"):
            low, value, high = (self._value(f"group.consumer.{bound}{name}.ms") for bound in ("min.", "", "max."))
            if not low <= value <= high:
                raise InvalidConfig(f"group.consumer.{name}.ms lies between {low} and {high}, and {value} does not")
        if self._value("group.consumer.heartbeat.interval.ms") >= self._value("group.consumer.session.timeout.ms"):
            raise InvalidConfig("group.consumer.session.timeout.ms is more than group.consumer.heartbeat.interval.ms")
        policy = self._value("group.consumer.migration.policy")
        return ConsumerGroupSettings(
            session_timeout_ms=self._value("group.consumer.session.timeout.ms"),
            heartbeat_interval_ms=self._value("group.consumer.heartbeat.interval.ms"),
            size_max=self._value("group.consumer.max.size"),
            assignors=self._value("group.consumer.assignors"),
            may_upgrade=policy in {"upgrade", "bidirectional"},
            may_downgrade=policy in {"downgrade", "bidirectional"},
        )

    def text(self, name: str) -> str:
        """The value of a setting in force, as text."""
        return self.configs.get(name, BROKER_CONFIGS[name].default)

    def _value(self, name: str) -> Any:
        return parse_value(BROKER_CONFIGS[name], self.text(name))


def _principals(text: str) -> frozenset[str]:
    """Principals behind each other, with a ; between them: the names of certificates have commas."""
    principals = frozenset(filter(None, map(str.strip, text.split(";"))))
    try:
        for principal in principals:
            check_principal(principal)
    except InvalidAcl as error:
        raise InvalidConfig(f"super.users: {error}") from None
    return principals


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The settings of one topic that the log and the broker act on; `configs` has what each means."""

    log: LogSettings
    batch_bytes_max: int
    append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    min_insync_replicas: int
    expires: bool
    compacted: bool
    delete_retention_ms: int
    dirty_ratio_min: float
    compaction_lag_min_ms: int
    compaction_lag_max_ms: int

    @classmethod
    def of(cls, configs: Mapping[str, str], broker: BrokerSettings) -> "TopicSettings":
        """The settings that follow from what was set on the topic (checked before) and on the server."""

        def value(name: str) -> Any:
            key = TOPIC_CONFIGS[name]
            assert key.server_name is not None
            return parse_value(key, configs.get(name) or broker.text(key.server_name))

        policies = value("cleanup.policy")
        deletes, compacted = "delete" in policies, "compact" in policies
        lag_max_ms = value("max.compaction.lag.ms")
        return cls(
            log=LogSettings(
                segment_bytes=value("segment.bytes"),
                # Only what is sealed can be compacted.
                segment_ms=min(value("segment.ms"), lag_max_ms) if compacted else value("segment.ms"),
                retention_ms=value("retention.ms") if deletes else -1,
                retention_bytes=value("retention.bytes") if deletes else -1,
            ),
            batch_bytes_max=value("max.message.bytes"),
            append_time=value("message.timestamp.type") == "LogAppendTime",
            timestamp_before_max_ms=value("message.timestamp.before.max.ms"),
            timestamp_after_max_ms=value("message.timestamp.after.max.ms"),
            min_insync_replicas=value("min.insync.replicas"),
            expires=deletes,
            compacted=compacted,
            delete_retention_ms=value("delete.retention.ms"),
            dirty_ratio_min=value("min.cleanable.dirty.ratio"),
            compaction_lag_min_ms=value("min.compaction.lag.ms"),
            compaction_lag_max_ms=lag_max_ms,
        )
