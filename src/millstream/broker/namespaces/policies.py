"""The policies of a namespace: what holds for its topics unless somebody says otherwise.

A policy that is None leaves the matter to the server's settings.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import Any

from millstream.broker.namespaces.errors import InvalidPolicy
from millstream.broker.schemas.strategy import SchemaCompatibility

__all__ = ["AutoTopicCreation", "BacklogAction", "BacklogQuota", "Policies", "Retention"]


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept of records that every subscription has acknowledged.

    Args:
        minutes: for how long; 0 for not at all, -1 for ever.
        megabytes: how much of them in one partition, in MiB; 0 for nothing, -1 for no bound.
    """

    minutes: int
    megabytes: int

    def __post_init__(self) -> None:
        if self.minutes < -1 or self.megabytes < -1:
            raise InvalidPolicy("retention is -1 for no bound, or a number from 0 on")
        if (self.minutes == 0) != (self.megabytes == 0):
            raise InvalidPolicy("retention is bounded by time and size: both are 0, or none")


class BacklogAction(Enum):
    """What becomes of a backlog over its quota."""

    HOLD_PRODUCERS = "producer_request_hold"
    REFUSE_PRODUCERS = "producer_exception"
    EVICT = "consumer_backlog_eviction"


@dataclass(frozen=True, slots=True)
class BacklogQuota:
    """How far a subscription may fall behind.

    Args:
        limit_bytes: of the log that it has not acknowledged; -1 for no bound.
        limit_s: age of the oldest record that it has not acknowledged; -1 for no bound.
        action: what happens then.
    """

    limit_bytes: int = -1
    limit_s: int = -1
    action: BacklogAction = BacklogAction.HOLD_PRODUCERS

    def __post_init__(self) -> None:
        if self.limit_bytes < -1 or self.limit_s < -1:
            raise InvalidPolicy("a backlog is bounded by a number from 0 on, or by -1 for no bound")


@dataclass(frozen=True, slots=True)
class AutoTopicCreation:
    """Whether and how a topic that a client asks for comes to be.

    Args:
        allowed: whether it does.
        partitions: how many, for a topic of partitions; None for one that is not partitioned.
    """

    allowed: bool
    partitions: int | None = None

    def __post_init__(self) -> None:
        if self.partitions is not None and self.partitions < 1:
            raise InvalidPolicy("a topic has at least 1 partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The policies of one namespace.

    Args:
        deduplication: whether messages that a producer sends twice are kept once.
        retention: see `Retention`.
        message_ttl_s: age at which records count as acknowledged by every subscription; 0 for never.
        backlog_quotas: by what they bound: "destination_storage" (bytes), "message_age" (time).
        schema_compatibility: what a new version of a schema must keep.
        schema_validation_enforced: whether producers without a schema are refused where there is one.
        schema_auto_update: whether a producer may bring a new version of a schema.
        auto_topic_creation: whether topics come to be when they are asked for.
        auto_subscription_creation: whether subscriptions do.
        producers_per_topic_max, consumers_per_topic_max, consumers_per_subscription_max, subscriptions_per_topic_max,
            topics_max: 0 for no bound.
        unacknowledged_per_consumer_max, unacknowledged_per_subscription_max: records; 0 for no bound.
        compaction_threshold_bytes: of uncompacted log at which a topic is compacted; 0 for only on demand.
        permissions: what each role may do, by its name; kept for clients that set them: there is no authorization.
    """

    deduplication: bool | None = None
    retention: Retention | None = None
    message_ttl_s: int | None = None
    backlog_quotas: Mapping[str, BacklogQuota] = field(default_factory=dict)
    schema_compatibility: SchemaCompatibility = SchemaCompatibility.FULL
    schema_validation_enforced: bool = False
    schema_auto_update: bool = True
    auto_topic_creation: AutoTopicCreation | None = None
    auto_subscription_creation: bool | None = None
    producers_per_topic_max: int | None = None
    consumers_per_topic_max: int | None = None
    consumers_per_subscription_max: int | None = None
    subscriptions_per_topic_max: int | None = None
    topics_max: int | None = None
    unacknowledged_per_consumer_max: int | None = None
    unacknowledged_per_subscription_max: int | None = None
    compaction_threshold_bytes: int | None = None
    permissions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, int) and value < 0:
                raise InvalidPolicy(f"{one.name} is a number from 0 on, not {value}")

    def document(self) -> dict[str, Any]:
        """What is stored of them: those that were set."""
        unset = Policies()
        changed = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if getattr(self, one.name) != getattr(unset, one.name)
        }
        return {name: _plain(value) for name, value in changed.items()}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> "Policies":
        """The policies that were stored; those that this version does not know are passed over."""
        known = {one.name for one in fields(cls)}
        values = {name: value for name, value in document.items() if name in known}
        if "retention" in values:
            values["retention"] = Retention(**values["retention"])
        if "auto_topic_creation" in values:
            values["auto_topic_creation"] = AutoTopicCreation(**values["auto_topic_creation"])
        if "schema_compatibility" in values:
            values["schema_compatibility"] = SchemaCompatibility(values["schema_compatibility"])
        if "backlog_quotas" in values:
            values["backlog_quotas"] = {
                name: BacklogQuota(quota["limit_bytes"], quota["limit_s"], BacklogAction(quota["action"]))
                for name, quota in values["backlog_quotas"].items()
            }
        if "permissions" in values:
            values["permissions"] = {role: tuple(actions) for role, actions in values["permissions"].items()}
        return cls(**values)


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    match value:
        case Enum():
            return value.value
        case Retention() | BacklogQuota() | AutoTopicCreation():
            return {name: _plain(one) for name, one in asdict(value).items()}
        case Mapping():
            return {name: _plain(one) for name, one in value.items()}
        case tuple():
            return list(value)
        case _:
            return value
