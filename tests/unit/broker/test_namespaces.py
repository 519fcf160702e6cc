"""Tenants and namespaces: what is always there, what lasts, what is refused, and what a failing store takes back."""

from pathlib import Path

import pytest

from millstream.broker.namespaces import (
    InvalidNamespaceName,
    InvalidPolicy,
    NamespaceExists,
    NamespaceInUse,
    NamespaceNotEmpty,
    Namespaces,
    TenantExists,
    TenantNotEmpty,
    UnknownNamespace,
    UnknownTenant,
)
from millstream.broker.namespaces.namespaces import NAME_BYTES_MAX
from millstream.broker.namespaces.policies import (
    AutoTopicCreation,
    BacklogAction,
    BacklogQuota,
    Policies,
    Retention,
)
from millstream.broker.schemas import SchemaCompatibility
from millstream.model.topic_name import TopicName
from millstream.storage.metadata import MetadataFailed
from tests.unit.broker.simulated_broker import SimulatedBroker


@pytest.fixture
def sim(tmp_path: Path) -> SimulatedBroker:
    return SimulatedBroker(str(tmp_path / "metadata.sqlite"))


def spaces(sim: SimulatedBroker) -> Namespaces:
    return sim.broker.namespaces


def test_public_default_is_always_there(sim: SimulatedBroker) -> None:
    assert [tenant.name for tenant in spaces(sim).tenants()] == ["public"]
    assert [str(one) for one in spaces(sim).of_tenant("public")] == ["public/default"]
    default = spaces(sim).get("public", "default")
    assert (default.number, default.flat, default.policies) == (1, "default", Policies())
    spaces(sim).check("public", "default")


def test_what_is_not_there_is_told_apart(sim: SimulatedBroker) -> None:
    assert spaces(sim).find("acme", "sales") is None
    with pytest.raises(UnknownTenant, match="acme"):
        spaces(sim).check("acme", "sales")
    with pytest.raises(UnknownNamespace, match="public/sales"):
        spaces(sim).check("public", "sales")
    with pytest.raises(UnknownTenant):
        spaces(sim).create("acme", "sales")
    with pytest.raises(UnknownTenant):
        spaces(sim).update_tenant("acme", [], [])


def test_they_are_there_at_once_and_after_a_kill(sim: SimulatedBroker) -> None:
    made = spaces(sim).create_tenant("acme", ["ada"], ["standalone"])
    namespace, stored = spaces(sim).create("acme", "sales")
    assert spaces(sim).get("acme", "sales") is namespace is spaces(sim).by_flat_name("acme.sales")
    for pending in (made, stored):
        sim.wait(pending)
    sim.kill()
    sim.start()
    found = spaces(sim).get("acme", "sales")
    assert (found.number, found.created_ms) == (namespace.number, namespace.created_ms)
    assert spaces(sim).tenant("acme").admin_roles == ("ada",)


def test_a_number_is_never_used_again(sim: SimulatedBroker) -> None:
    first, _ = spaces(sim).create("public", "a")
    sim.wait(spaces(sim).delete(first))
    sim.restart()
    second, _ = spaces(sim).create("public", "a")
    assert second.number > first.number


def test_names_are_unique_where_they_are_flat_too(sim: SimulatedBroker) -> None:
    sim.wait(spaces(sim).create_tenant("acme"))
    spaces(sim).create("acme", "sales")
    with pytest.raises(NamespaceExists, match=r"acme\.sales"):
        spaces(sim).create("public", "acme.sales")
    with pytest.raises(NamespaceExists):
        spaces(sim).create("acme", "sales")
    with pytest.raises(TenantExists):
        spaces(sim).create_tenant("public")


@pytest.mark.parametrize("name", ["", "a/b", "a\n", "\ud800", "x" * (NAME_BYTES_MAX + 1)])
def test_names_that_nothing_can_have(sim: SimulatedBroker, name: str) -> None:
    with pytest.raises(InvalidNamespaceName):
        spaces(sim).create_tenant(name)
    with pytest.raises(InvalidNamespaceName):
        spaces(sim).create("public", name)


def test_only_what_is_empty_is_deleted(sim: SimulatedBroker) -> None:
    sim.wait(spaces(sim).create_tenant("acme"))
    sales, _ = spaces(sim).create("acme", "sales")
    topic = sim.wait(sim.broker.topics.create(TopicName("acme", "sales", "orders"), 1, {}))
    assert spaces(sim).topics_in(sales) == [topic]
    with pytest.raises(NamespaceNotEmpty):
        spaces(sim).delete(sales)
    with pytest.raises(TenantNotEmpty):
        spaces(sim).delete_tenant("acme")
    sim.wait(sim.broker.delete_topic(topic))
    sim.wait(spaces(sim).delete(sales))
    with pytest.raises(UnknownNamespace):
        spaces(sim).delete(sales)
    sim.wait(spaces(sim).delete_tenant("acme"))
    sim.restart()
    assert [tenant.name for tenant in spaces(sim).tenants()] == ["public"]


def test_what_everybody_needs_stays(sim: SimulatedBroker) -> None:
    with pytest.raises(NamespaceInUse):
        spaces(sim).delete(spaces(sim).get("public", "default"))
    with pytest.raises(NamespaceInUse):
        spaces(sim).delete_tenant("public")


def test_a_topic_brings_its_namespace_along(sim: SimulatedBroker) -> None:
    sim.wait(sim.broker.topics.create(TopicName("old", "times", "orders"), 1, {}))
    sim.restart()
    spaces(sim).check("old", "times")


def test_all_policies_last(sim: SimulatedBroker) -> None:
    namespace = spaces(sim).get("public", "default")
    policies = Policies(
        deduplication=True,
        retention=Retention(60, -1),
        message_ttl_s=10,
        backlog_quotas={"destination_storage": BacklogQuota(1000, -1, BacklogAction.EVICT)},
        schema_compatibility=SchemaCompatibility.BACKWARD_TRANSITIVE,
        schema_validation_enforced=True,
        schema_auto_update=False,
        auto_topic_creation=AutoTopicCreation(True, 4),
        auto_subscription_creation=False,
        producers_per_topic_max=1,
        consumers_per_topic_max=2,
        consumers_per_subscription_max=3,
        subscriptions_per_topic_max=4,
        topics_max=5,
        unacknowledged_per_consumer_max=6,
        unacknowledged_per_subscription_max=7,
        compaction_threshold_bytes=8,
        permissions={"ada": ("produce", "consume")},
    )
    sim.wait(spaces(sim).update_policies(namespace, policies))
    sim.restart()
    assert spaces(sim).get("public", "default").policies == policies


def test_policies_change_one_by_one(sim: SimulatedBroker) -> None:
    namespace = spaces(sim).get("public", "default")
    spaces(sim).set_policies(namespace, message_ttl_s=10)
    sim.wait(spaces(sim).set_policies(namespace, deduplication=False))
    assert (namespace.policies.message_ttl_s, namespace.policies.deduplication) == (10, False)
    sim.wait(spaces(sim).set_policies(namespace, message_ttl_s=None))
    sim.restart()
    policies = spaces(sim).get("public", "default").policies
    assert (policies.message_ttl_s, policies.deduplication) == (None, False)


def test_policies_that_nothing_can_have(sim: SimulatedBroker) -> None:
    namespace = spaces(sim).get("public", "default")
    with pytest.raises(InvalidPolicy):
        spaces(sim).set_policies(namespace, message_ttl_s=-1)
    for values in ((0, 1), (1, 0), (-2, 1)):
        with pytest.raises(InvalidPolicy):
            Retention(*values)
    with pytest.raises(InvalidPolicy):
        AutoTopicCreation(True, 0)
    with pytest.raises(InvalidPolicy):
        BacklogQuota(-2)


def test_who_decides_on_automatic_topics(sim: SimulatedBroker, tmp_path: Path) -> None:
    namespace = spaces(sim).get("public", "default")
    assert spaces(sim).auto_creation("public", "default") == AutoTopicCreation(True)
    spaces(sim).set_policies(namespace, auto_topic_creation=AutoTopicCreation(False))
    assert spaces(sim).auto_creation("public", "default") == AutoTopicCreation(False)
    closed = Namespaces(sim.runtime, sim.broker.documents, sim.broker.topics, auto_create=False)
    sales, _ = closed.create("public", "sales")
    assert not closed.auto_creation("public", "sales").allowed
    closed.set_policies(sales, auto_topic_creation=AutoTopicCreation(True, 3))
    assert closed.auto_creation("public", "sales") == AutoTopicCreation(True, 3)


def test_what_could_not_be_stored_is_taken_back(sim: SimulatedBroker) -> None:
    namespace = spaces(sim).get("public", "default")
    kept, _ = spaces(sim).create("public", "kept")
    sim.runtime.run()
    sim.store.failing = True
    refused = [
        spaces(sim).create_tenant("acme"),
        spaces(sim).create("public", "sales")[1],
        spaces(sim).set_policies(namespace, message_ttl_s=10),
        spaces(sim).set_policies(namespace, message_ttl_s=20),
        spaces(sim).delete(kept),
        spaces(sim).update_tenant("public", ["ada"], []),
        spaces(sim).update_tenant("public", ["bob"], []),
    ]
    sim.runtime.run()
    for pending in refused:
        with pytest.raises(MetadataFailed):
            pending.result()
    assert [tenant.name for tenant in spaces(sim).tenants()] == ["public"]
    assert [one.name for one in spaces(sim).of_tenant("public")] == ["default", "kept"]
    assert namespace.policies == Policies()
    assert spaces(sim).tenant("public").admin_roles == ()
