"""The policies of a namespace as Pulsar's JSON has them, and back."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.exceptions import HTTPException

from millstream.broker.namespaces import AutoTopicCreation, BacklogAction, BacklogQuota, Policies, Retention
from millstream.broker.schemas import SchemaCompatibility

__all__ = [
    "auto_creation_form",
    "policies_form",
    "quota_form",
    "read_auto_creation",
    "read_policies",
    "read_quota",
    "read_retention",
    "read_strategy",
    "retention_form",
]

_NUMBERS: Final = {
    "message_ttl_in_seconds": "message_ttl_s",
    "max_producers_per_topic": "producers_per_topic_max",
    "max_consumers_per_topic": "consumers_per_topic_max",
    "max_consumers_per_subscription": "consumers_per_subscription_max",
    "max_subscriptions_per_topic": "subscriptions_per_topic_max",
    "max_topics_per_namespace": "topics_max",
    "max_unacked_messages_per_consumer": "unacknowledged_per_consumer_max",
    "max_unacked_messages_per_subscription": "unacknowledged_per_subscription_max",
    "compaction_threshold": "compaction_threshold_bytes",
}
_BOOLEANS: Final = {
    "deduplicationEnabled": "deduplication",
    "schema_validation_enforced": "schema_validation_enforced",
    "is_allow_auto_update_schema": "schema_auto_update",
}
_QUOTA_TYPES: Final = ("destination_storage", "message_age")


def _number(form: Mapping[str, Any], name: str, default: int) -> int:
    value = form.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise HTTPException(400, f"{name} is an integer")
    return value


def _flag(form: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = form.get(name, default)
    if not isinstance(value, bool):
        raise HTTPException(400, f"{name} is true or false")
    return value


def read_retention(form: Mapping[str, Any]) -> Retention:
    """Retention, from {"retentionTimeInMinutes", "retentionSizeInMB"}."""
    return Retention(_number(form, "retentionTimeInMinutes", 0), _number(form, "retentionSizeInMB", 0))


def retention_form(retention: Retention) -> dict[str, int]:
    """The other way round."""
    return {"retentionTimeInMinutes": retention.minutes, "retentionSizeInMB": retention.megabytes}


def read_quota(form: Mapping[str, Any]) -> BacklogQuota:
    """A quota, from {"limitSize" (before Pulsar 2.8 "limit"), "limitTime", "policy"}."""
    limit_bytes = _number(form, "limitSize", -1)
    if limit_bytes < 0:
        limit_bytes = _number(form, "limit", -1)
    try:
        action = BacklogAction(form.get("policy"))
    except ValueError:
        raise HTTPException(412, f"there is no backlog policy {form.get('policy')!r}") from None
    return BacklogQuota(max(limit_bytes, -1), max(_number(form, "limitTime", -1), -1), action)


def quota_form(quota: BacklogQuota) -> dict[str, Any]:
    """The other way round."""
    return {
        "limit": quota.limit_bytes,
        "limitSize": quota.limit_bytes,
        "limitTime": quota.limit_s,
        "policy": quota.action.value,
    }


def read_auto_creation(form: Mapping[str, Any]) -> AutoTopicCreation:
    """How topics come to be, from {"allowAutoTopicCreation", "topicType", "defaultNumPartitions"}."""
    kind = form.get("topicType", "non-partitioned")
    if kind not in ("partitioned", "non-partitioned"):
        raise HTTPException(412, f"there is no topicType {kind!r}")
    allowed = _flag(form, "allowAutoTopicCreation", default=True)
    return AutoTopicCreation(allowed, _number(form, "defaultNumPartitions", 1) if kind == "partitioned" else None)


def auto_creation_form(policy: AutoTopicCreation) -> dict[str, Any]:
    """The other way round."""
    form: dict[str, Any] = {"allowAutoTopicCreation": policy.allowed, "topicType": "non-partitioned"}
    if policy.partitions is not None:
        form |= {"topicType": "partitioned", "defaultNumPartitions": policy.partitions}
    return form


def read_strategy(word: object) -> SchemaCompatibility:
    """A rule for schemas, by its name; UNDEFINED stands for the default."""
    if word == "UNDEFINED":
        return SchemaCompatibility.FULL
    try:
        return SchemaCompatibility(word)
    except ValueError:
        raise HTTPException(412, f"there is no schema compatibility strategy {word!r}") from None


def _read_auto_subscription(form: Mapping[str, Any]) -> bool:
    return _flag(form, "allowAutoSubscriptionCreation", default=True)


_STRUCTURES: Final[Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Any]]]] = {
    "retention_policies": ("retention", read_retention),
    "autoTopicCreationOverride": ("auto_topic_creation", read_auto_creation),
    "autoSubscriptionCreationOverride": ("auto_subscription_creation", _read_auto_subscription),
}


def read_policies(form: Mapping[str, Any]) -> Policies:
    """The policies that a namespace is made with. What this server has no policy for is passed over."""
    values: dict[str, Any] = {}
    for name, field in _NUMBERS.items():
        if form.get(name) is not None:
            values[field] = _number(form, name, 0)
    for name, field in _BOOLEANS.items():
        if form.get(name) is not None:
            values[field] = _flag(form, name, default=False)
    for name, (field, read) in _STRUCTURES.items():
        if isinstance(form.get(name), dict):
            values[field] = read(form[name])
    if "schema_compatibility_strategy" in form:
        values["schema_compatibility"] = read_strategy(form["schema_compatibility_strategy"])
    quotas = form.get("backlog_quota_map")
    if isinstance(quotas, dict):
        values["backlog_quotas"] = {
            kind: read_quota(quotas[kind]) for kind in _QUOTA_TYPES if isinstance(quotas.get(kind), dict)
        }
    return Policies(**values)


def policies_form(policies: Policies) -> dict[str, Any]:
    """All policies of a namespace that were set, and those that always have a value."""
    form: dict[str, Any] = {
        "auth_policies": {
            "namespaceAuth": {role: list(actions) for role, actions in policies.permissions.items()},
            "destinationAuth": {},
            "subscriptionAuthentication": {},
        },
        "replication_clusters": ["standalone"],
        "bundles": {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1},
        "backlog_quota_map": {kind: quota_form(quota) for kind, quota in policies.backlog_quotas.items()},
        "schema_compatibility_strategy": policies.schema_compatibility.value,
    }
    for name, field in (_NUMBERS | _BOOLEANS).items():
        value = getattr(policies, field)
        if value is not None:
            form[name] = value
    if policies.retention is not None:
        form["retention_policies"] = retention_form(policies.retention)
    if policies.auto_topic_creation is not None:
        form["autoTopicCreationOverride"] = auto_creation_form(policies.auto_topic_creation)
    if policies.auto_subscription_creation is not None:
        form["autoSubscriptionCreationOverride"] = {
            "allowAutoSubscriptionCreation": policies.auto_subscription_creation
        }
    return form
