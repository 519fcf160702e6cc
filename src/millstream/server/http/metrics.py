"""Metrics for Prometheus, taken when they are asked for from what the broker holds anyway.

The values are gathered on the loop; their text, which takes far longer, is made on a thread.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from millstream.broker.subscriptions import Subscription
from millstream.broker.topics import Topic
from millstream.server.http.arguments import SiteArgument
from millstream.server.http.iggy_metrics import iggy_metrics
from millstream.server.http.site import Site, outcome

__all__ = ["gather_metrics", "router"]

router = APIRouter(tags=["health"])
_LANE: Final = "http"
_PARTITION: Final = ("topic", "partition")
_SUBSCRIPTION: Final = ("subscription", "topic", "partition")
_GROUP: Final = ("group", "topic", "partition")


def _gauge(name: str, doc: str, labels: Sequence[str] = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"millstream_{name}", doc, labels=labels)


def _counter(name: str, doc: str, labels: Sequence[str] = ()) -> CounterMetricFamily:
    return CounterMetricFamily(f"millstream_{name}", doc, labels=labels)


def _server(site: Site) -> list[Metric]:
    topics = _gauge("topics", "Topics.")
    failed = _gauge("partitions_failed", "Partitions that take no more writes until the server is started again.")
    names = _gauge("namespaces", "Namespaces.")
    connections = _gauge("connections", "Connections that are open.", ("listener",))
    everything = list(site.broker.topics)
    topics.add_metric((), len(everything))
    failed.add_metric((), sum(one.log.failure is not None for topic in everything for one in topic.partitions))
    names.add_metric((), sum(1 for _ in site.broker.namespaces))
    for listener, count in (site.connections() if site.connections is not None else {}).items():
        connections.add_metric((listener,), count)
    dropped = _counter("dropped_messages", "Messages not stored although nobody could be told so.", ("protocol",))
    for protocol, count in site.broker.dropped_messages.items():
        dropped.add_metric((protocol,), count)
    return [topics, failed, names, connections, dropped]


def _cleaner(site: Site) -> list[Metric]:
    figures = site.broker.cleaner.figures
    values = (
        ("runs", "Runs of the cleaner over a partition, since the server started.", figures.runs),
        ("failures", "Those that ended with an error.", figures.failures),
        ("bytes_before", "Bytes of the segments that were compacted, before.", figures.before_bytes),
        ("bytes_after", "What is left of them.", figures.after_bytes),
        ("seconds", "How long the runs took, with all that they waited for.", figures.time_ms / 1000),
    )
    families: list[Metric] = []
    for name, doc, value in values:
        family = _counter(f"compaction_{name}", doc)
        family.add_metric((), value)
        families.append(family)
    return families


def _partitions(site: Site) -> list[Metric]:
    start = _gauge("partition_start_offset", "The first offset that can be read.", _PARTITION)
    end = _counter("partition_records", "Records appended since the topic was made: the end offset.", _PARTITION)
    size = _gauge("partition_log_bytes", "Bytes of the log on the disk.", _PARTITION)
    segments = _gauge("partition_segments", "Files of the log.", _PARTITION)
    appended = _counter("partition_appended_bytes", "Bytes appended since the server started.", _PARTITION)
    producers = _gauge("partition_producers", "Pulsar producers that are connected, where there are any.", _PARTITION)
    for topic in site.broker.topics:
        for partition in topic.partitions:
            labels, log = (topic.name.flat, str(partition.index)), partition.log
            start.add_metric(labels, log.start_offset)
            end.add_metric(labels, log.end_offset)
            size.add_metric(labels, log.size_bytes)
            segments.add_metric(labels, log.segment_count)
            appended.add_metric(labels, partition.appended_bytes)
            connected = sum(1 for _ in site.broker.producers.of(topic.id, partition.index))
            if connected:
                producers.add_metric(labels, connected)
    return [start, end, size, segments, appended, producers]


def _subscriptions(site: Site) -> list[Metric]:
    backlog = _gauge("subscription_backlog", "Records that are not acknowledged.", _SUBSCRIPTION)
    consumers = _gauge("subscription_consumers", "Consumers that are connected.", _SUBSCRIPTION)
    ranges = _gauge("subscription_acknowledged_ranges", "Ranges that are acknowledged out of order.", _SUBSCRIPTION)
    for topic, index, one in _each_subscription(site):
        labels = (one.name, topic.name.flat, str(index))
        behind = topic.partitions[index].log.end_offset - one.position
        backlog.add_metric(labels, max(behind - one.cursor.acknowledged.size, 0))
        consumers.add_metric(labels, len(one.consumers))
        ranges.add_metric(labels, len(one.cursor.acknowledged))
    return [backlog, consumers, ranges]


def _each_subscription(site: Site) -> Iterable[tuple[Topic, int, Subscription]]:
    subscriptions = site.broker.subscriptions
    for topic in site.broker.topics:
        for index in range(len(topic.partitions)):
            for name in subscriptions.names(topic, index):
                found = subscriptions.find(topic, index, name)
                if found is not None:
                    yield topic, index, found


def _groups(site: Site) -> list[Metric]:
    members = _gauge("group_members", "Members of a consumer group.", ("group",))
    lag = _gauge("group_lag", "Records behind the offset that a group has committed.", _GROUP)
    groups = site.broker.groups
    for group_id in groups.ids():
        group = groups.find(group_id)
        if group is not None:
            members.add_metric((group_id,), len(group.members))
        for (topic_id, index), committed in groups.offsets.of_group(group_id).items():
            topic = site.broker.topics.by_id(topic_id)
            if topic is not None and index < len(topic.partitions) and not committed.subscription:
                behind = topic.partitions[index].log.end_offset - committed.offset
                lag.add_metric((group_id, topic.name.flat, str(index)), max(behind, 0))
    return [members, lag]


async def gather_metrics(site: Site) -> list[Metric]:
    """The values of all metrics; between two groups of them the loop does what else is due."""
    families: list[Metric] = []
    for gather in (_server, _cleaner, _partitions, _subscriptions, _groups, iggy_metrics):
        families += gather(site)
        await asyncio.sleep(0)
    return families


class _Gathered(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _text(families: list[Metric]) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Gathered(families))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


@router.get("/metrics", response_class=Response)
async def metrics(site: SiteArgument) -> Response:
    """All metrics, in Prometheus' text form: those of the server, and those of its process."""
    families = await gather_metrics(site)
    content = await outcome(site.broker.runtime.run_blocking(_LANE, lambda: _text(families)))
    return Response(content, media_type=CONTENT_TYPE_LATEST)
