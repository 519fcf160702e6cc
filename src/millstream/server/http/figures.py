"""The figures of topics in Pulsar's form, from what the broker counts anyway.

Of what Pulsar has, these mean something else, or are left out where nothing would be true:

- msgInCounter counts from when the topic was made, bytesInCounter and all counters of consumers from when the server
  started or the consumer connected;
- rates of what comes in are averages between two looks at them, see `Rates`;
- backlogSize is an estimate: the records of the backlog at the mean size of those in the log.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from millstream.broker.subscriptions import ConsumerStats, SubscriptionKind, SubscriptionStats
from millstream.broker.volatile import VolatileTopic
from millstream.server.http.found import Spot, last_message_id
from millstream.server.http.site import Site
from millstream.sessions.pulsar.message_ids import ledger_id_of

__all__ = ["internal_figures", "partition_figures", "total_figures", "volatile_figures"]

_KINDS: Final = {
    SubscriptionKind.EXCLUSIVE: "Exclusive",
    SubscriptionKind.FAILOVER: "Failover",
    SubscriptionKind.SHARED: "Shared",
    SubscriptionKind.KEY_SHARED: "Key_Shared",
}
_SUMMED: Final = (
    "msgRateIn",
    "msgThroughputIn",
    "msgRateOut",
    "msgThroughputOut",
    "bytesInCounter",
    "msgInCounter",
    "bytesOutCounter",
    "msgOutCounter",
    "storageSize",
    "backlogSize",
    "waitingPublishers",
)
_SUMMED_CONSUMER: Final = (
    "msgRateOut",
    "msgThroughputOut",
    "bytesOutCounter",
    "msgOutCounter",
    "msgRateRedeliver",
    "messageAckRate",
)
_SUMMED_SUBSCRIPTION: Final = (
    *_SUMMED_CONSUMER,
    "msgBacklog",
    "msgBacklogNoDelayed",
    "backlogSize",
    "msgDelayed",
    "msgInReplay",
    "unackedMessages",
    "totalMsgExpired",
)


def partition_figures(site: Site, spot: Spot) -> dict[str, Any]:
    """The figures of one partition."""
    broker, log = site.broker, spot.partition.log
    rate = site.rates.of(spot.topic.id, spot.partition, broker.runtime.now_ms())
    records = log.end_offset - log.start_offset
    record_bytes = log.size_bytes / records if records else 0.0
    subscriptions = {
        name: _subscription(found.stats(), record_bytes)
        for name in broker.subscriptions.names(spot.topic, spot.index)
        if (found := broker.subscriptions.find(spot.topic, spot.index, name)) is not None
    }
    return {
        "msgRateIn": rate.records,
        "msgThroughputIn": rate.bytes,
        "bytesInCounter": spot.partition.appended_bytes,
        "msgInCounter": log.end_offset,
        **{name: _sum(subscriptions, name) for name in _SUMMED_CONSUMER},
        "averageMsgSize": record_bytes,
        "storageSize": log.size_bytes,
        "backlogSize": max((one["backlogSize"] for one in subscriptions.values()), default=0),
        "publishers": _publishers(site, spot.topic.id, spot.index),
        "waitingPublishers": 0,
        "subscriptions": subscriptions,
        "replication": {},
        "deduplicationStatus": "Enabled" if _deduplicates(site, spot) else "Disabled",
    }


def _deduplicates(site: Site, spot: Spot) -> bool:
    namespace = site.broker.namespaces.get(spot.topic.name.tenant, spot.topic.name.namespace)
    wanted = namespace.policies.deduplication
    return site.broker.settings.deduplication if wanted is None else wanted


def _publishers(site: Site, topic_id: UUID, index: int) -> list[dict[str, Any]]:
    return [
        {"producerName": producer.name, "producerId": producer.number, "accessMode": producer.mode.name.title()}
        for producer in site.broker.producers.of(topic_id, index)
    ]


def volatile_figures(site: Site, topic: VolatileTopic) -> dict[str, Any]:
    """The figures of a topic that keeps nothing."""
    subscriptions = {}
    for one in topic.subscriptions:
        consumers = [_consumer(consumer.stats()) for consumer in one.consumers]
        subscriptions[one.name] = {
            **{name: sum(consumer[name] for consumer in consumers) for name in _SUMMED_CONSUMER},
            "msgBacklog": 0,
            "msgDropped": one.dropped_records,
            "type": _KINDS[one.kind] if one.kind is not None else None,
            "consumers": consumers,
            "isDurable": False,
        }
    return {
        **{name: _sum(subscriptions, name) for name in _SUMMED_CONSUMER},
        "msgInCounter": topic.next_offset,
        "publishers": _publishers(site, topic.id, 0),
        "subscriptions": subscriptions,
        "replication": {},
    }


def _sum(parts: Mapping[str, Mapping[str, Any]], name: str) -> Any:
    return sum(part[name] for part in parts.values())


def _subscription(stats: SubscriptionStats, record_bytes: float) -> dict[str, Any]:
    consumers = [_consumer(one) for one in stats.consumers]
    sums = {name: sum(consumer[name] for consumer in consumers) for name in _SUMMED_CONSUMER}
    active = next((one.name for one in stats.consumers if one.active), "")
    return {
        **sums,
        "msgBacklog": stats.backlog,
        "msgBacklogNoDelayed": max(stats.backlog - stats.delayed, 0),
        "backlogSize": round(stats.backlog * record_bytes),
        "blockedSubscriptionOnUnackedMsgs": stats.blocked,
        "msgDelayed": stats.delayed,
        "msgInReplay": stats.waiting,
        "unackedMessages": stats.unacknowledged,
        "type": _KINDS[stats.kind] if stats.kind is not None else None,
        "activeConsumerName": active if stats.kind is SubscriptionKind.FAILOVER else "",
        "totalMsgExpired": stats.expired_records,
        "lastConsumedTimestamp": max((one.last_delivered_ms for one in stats.consumers), default=0),
        "lastAckedTimestamp": max((one.last_acknowledged_ms for one in stats.consumers), default=0),
        "consumers": consumers,
        "isDurable": stats.durable,
        "durable": stats.durable,
        "isReplicated": False,
        "replicated": False,
        "nonContiguousDeletedMessagesRanges": stats.acknowledged_ranges,
    }


def _consumer(stats: ConsumerStats) -> dict[str, Any]:
    return {
        "consumerName": stats.name,
        "msgRateOut": stats.record_rate,
        "msgThroughputOut": stats.byte_rate,
        "bytesOutCounter": stats.delivered_bytes,
        "msgOutCounter": stats.delivered_records,
        "msgRateRedeliver": stats.redelivery_rate,
        "messageAckRate": stats.acknowledge_rate,
        "availablePermits": stats.permits,
        "unackedMessages": stats.unacknowledged,
        "blockedConsumerOnUnackedMsgs": stats.blocked,
        "lastConsumedTimestamp": stats.last_delivered_ms,
        "lastAckedTimestamp": stats.last_acknowledged_ms,
        "connectedSince": datetime.fromtimestamp(stats.connected_ms / 1000, UTC).isoformat(),
        "keyHashRanges": [f"[{first}, {last}]" for first, last in stats.key_ranges],
    }


def total_figures(partitions: Mapping[str, dict[str, Any]], *, per_partition: bool) -> dict[str, Any]:
    """The figures of a partitioned topic: sums over its partitions.

    Args:
        partitions: the figures of each, by its name.
        per_partition: whether they are told as well.
    """
    total: dict[str, Any] = {name: _sum(partitions, name) for name in _SUMMED}
    total["averageMsgSize"] = sum(one["averageMsgSize"] for one in partitions.values()) / len(partitions)
    total["publishers"] = [publisher for one in partitions.values() for publisher in one["publishers"]]
    subscriptions: dict[str, Any] = {}
    for one in partitions.values():
        for name, figures in one["subscriptions"].items():
            so_far = subscriptions.setdefault(
                name, {**figures, "consumers": [], **dict.fromkeys(_SUMMED_SUBSCRIPTION, 0)}
            )
            for summed in _SUMMED_SUBSCRIPTION:
                so_far[summed] += figures[summed]
            so_far["consumers"] += figures["consumers"]
    total["subscriptions"] = subscriptions
    total["replication"] = {}
    total["metadata"] = {"partitions": len(partitions), "deleted": False}
    total["partitions"] = dict(partitions) if per_partition else {}
    return total


def internal_figures(site: Site, spot: Spot) -> dict[str, Any]:
    """How a partition and its cursors lie in the log, which is shown as one ledger with its records as entries."""
    log, ledger = spot.partition.log, ledger_id_of(spot.topic)
    records = log.end_offset - log.start_offset
    last = last_message_id(spot)["entryId"]
    cursors: dict[str, Any] = {}
    for name in site.broker.subscriptions.names(spot.topic, spot.index):
        found = site.broker.subscriptions.find(spot.topic, spot.index, name)
        if found is not None:
            stats = found.stats()
            cursors[name] = {
                "markDeletePosition": f"{ledger}:{stats.position - 1}",
                "readPosition": f"{ledger}:{stats.position}",
                "totalNonContiguousDeletedMessagesRange": stats.acknowledged_ranges,
                "messagesConsumedCounter": max(log.end_offset - stats.backlog, 0),
                "active": bool(stats.consumers),
                "state": "Open" if stats.durable else "NoLedger",
                "properties": {},
            }
    return {
        "entriesAddedCounter": log.end_offset,
        "numberOfEntries": records,
        "totalSize": log.size_bytes,
        "currentLedgerEntries": records,
        "currentLedgerSize": log.size_bytes,
        "lastConfirmedEntry": f"{ledger}:{last}",
        "state": "Terminated" if spot.partition.terminated else "LedgerOpened",
        "ledgers": [{"ledgerId": ledger, "entries": records, "size": log.size_bytes, "offloaded": False}],
        "cursors": cursors,
    }
