"""Metrics: true figures of topics, groups and subscriptions, in a form that Prometheus reads."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from confluent_kafka import Consumer
from prometheus_client.parser import text_string_to_metric_families

from millstream.broker.partition import Partition
from millstream.server.http.metrics import gather_metrics
from millstream.server.http.rates import Rate, Rates
from millstream.server.http.site import Site
from millstream.server.places import Places
from tests.unit.broker.simulated_broker import SimulatedBroker, append
from tests.unit.server.http.admin import Admin, produce

Unique = Callable[[str], str]


def samples(admin: Admin, **labels: str) -> dict[str, float]:
    """The values that have all these labels, by name."""
    text = admin("GET", "/metrics").decode()
    assert admin.headers["content-type"].startswith("text/plain")
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if labels.items() <= sample.labels.items()
    }


def test_the_figures_of_a_partition(admin: Admin, unique: Unique) -> None:
    name = unique("measured")
    admin.done("PUT", f"~/{name}/partitions", 2)
    produce(admin.broker, name, 3, partition=1)
    values = samples(admin, topic=name, partition="1")
    stats = admin("GET", f"~/{name}-partition-1/stats")
    assert values == {
        "millstream_partition_start_offset": 0,
        "millstream_partition_records_total": 3,
        "millstream_partition_log_bytes": stats["storageSize"],
        "millstream_partition_segments": 1,
        "millstream_partition_appended_bytes_total": stats["bytesInCounter"],
    }
    assert samples(admin, topic=name, partition="0")["millstream_partition_records_total"] == 0


def test_the_figures_of_a_subscription(admin: Admin, unique: Unique) -> None:
    name = unique("measured")
    admin.done("PUT", f"~/{name}")
    produce(admin.broker, name, 5)
    admin.done("PUT", f"~/{name}/subscription/s", {"ledgerId": -1, "entryId": -1})
    admin.done("POST", f"~/{name}/subscription/s/skip/2")
    values = samples(admin, subscription="s", topic=name)
    assert (values["millstream_subscription_backlog"], values["millstream_subscription_consumers"]) == (3, 0)


def test_the_figures_of_a_group(admin: Admin, unique: Unique) -> None:
    name = unique("measured")
    admin.done("PUT", f"~/{name}")
    produce(admin.broker, name, 5)
    config = {"bootstrap.servers": admin.broker.kafka, "group.id": name, "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, "enable.auto.commit": False})
    consumer.subscribe([name])
    taken = [message for message in consumer.consume(2, timeout=20) if message.error() is None]
    consumer.commit(message=taken[-1], asynchronous=False)
    assert samples(admin, group=name) == {"millstream_group_members": 1, "millstream_group_lag": 5 - len(taken)}
    consumer.close()


def test_the_figures_of_the_server(admin: Admin) -> None:
    values = samples(admin)
    assert values["millstream_topics"] == len({one.split("-partition-")[0] for one in all_topics(admin)})
    assert (values["millstream_partitions_failed"], values["process_open_fds"] > 0) == (0, True)
    names = [f"millstream_compaction_{name}_total" for name in ("runs", "failures", "bytes_before", "bytes_after")]
    assert [values[name] for name in names] == [0, 0, 0, 0]


def all_topics(admin: Admin) -> Iterator[str]:
    for tenant in admin("GET", "/admin/v2/tenants"):
        for space in admin("GET", f"/admin/v2/namespaces/{tenant}"):
            yield from admin("GET", f"/admin/v2/persistent/{space}")


def test_connections_are_told_by_who_counts_them() -> None:
    sim = SimulatedBroker()

    def value(site: Site) -> list[Any]:
        families = {family.name: family for family in asyncio.run(gather_metrics(site))}
        return [(sample.labels, sample.value) for sample in families["millstream_connections"].samples]

    assert value(Site(sim.broker, Places({}))) == []
    counted = Site(sim.broker, Places({}), connections=lambda: {"kafka": 3})
    assert value(counted) == [({"listener": "kafka"}, 3)]


def test_rates_are_averages_between_two_looks() -> None:
    sim = SimulatedBroker()
    topic = sim.create()
    partition: Partition = topic.partitions[0]
    rates = Rates()
    assert rates.of(topic.id, partition, 0) == Rate()
    append(partition)
    assert rates.of(topic.id, partition, 999) == Rate()
    assert rates.of(topic.id, partition, 2000) == Rate(0.5, partition.appended_bytes / 2)
    assert rates.of(topic.id, partition, 2500) == Rate(0.5, partition.appended_bytes / 2)
    assert rates.of(topic.id, partition, 3500) == Rate()


def test_rates_that_nobody_asks_for_are_forgotten() -> None:
    sim = SimulatedBroker()
    topic = sim.create()
    rates = Rates()
    for number in range(1500):
        rates.of(UUID(int=number), topic.partitions[0], number * 7200)
    assert len(rates._looks) < 1500
    append(topic.partitions[0])
    assert rates.of(UUID(int=1), topic.partitions[0], 10**9) == Rate()
    assert rates.of(UUID(int=1499), topic.partitions[0], 10**9).records > 0
