"""Backlog quotas: when producers are kept out, and what slow subscriptions lose."""

import pytest

from millstream.broker.namespaces import BacklogAction, BacklogQuota
from millstream.broker.namespaces.backlogs import Backlogs
from millstream.broker.subscriptions import StartAt, Subscription
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import SimulatedBroker, append

REFUSE, EVICT = BacklogAction.REFUSE_PRODUCERS, BacklogAction.EVICT


class Bed:
    """A topic with ten batches of ten records, and subscriptions to it."""

    def __init__(self) -> None:
        self.sim = SimulatedBroker()
        self.topic = self.sim.create(retention__ms="-1")
        broker = self.sim.broker
        self.backlogs = Backlogs(self.sim.runtime, broker.subscriptions, broker.namespaces)
        for _ in range(10):
            now_ms = self.sim.runtime.now_ms()
            append(self.topic.partitions[0], batch(b"value", 10, now_ms))
            self.sim.pass_ms(1000)
        self.size = self.topic.partitions[0].log.size_bytes

    def subscribe(self, name: str, offset: int = 0) -> Subscription:
        return self.sim.wait(self.sim.broker.subscriptions.create(self.topic, 0, name, offset))

    def quota(self, quota: BacklogQuota) -> None:
        namespaces = self.sim.broker.namespaces
        quotas = {"destination_storage": quota}
        self.sim.wait(namespaces.set_policies(namespaces.get("public", "default"), backlog_quotas=quotas))


@pytest.fixture
def bed() -> Bed:
    return Bed()


def test_without_a_quota_or_a_subscription_nothing_is_exceeded(bed: Bed) -> None:
    assert bed.backlogs.enforce(bed.topic, 0) is None
    bed.quota(BacklogQuota(0, 0, REFUSE))
    assert bed.backlogs.closed_by(bed.topic, 0) is None
    bed.sim.wait(bed.sim.broker.subscriptions.create(bed.topic, 0, "s", StartAt.LATEST))
    assert bed.backlogs.closed_by(bed.topic, 0) is None


def test_producers_are_kept_out_while_the_slowest_is_too_far_behind(bed: Bed) -> None:
    slow, _ = bed.subscribe("slow"), bed.subscribe("fast", 90)
    quota = BacklogQuota(bed.size // 2, -1, REFUSE)
    bed.quota(quota)
    assert bed.backlogs.closed_by(bed.topic, 0) == bed.backlogs.enforce(bed.topic, 0) == quota
    assert slow.position == 0
    slow.expire_before(50)
    assert bed.backlogs.closed_by(bed.topic, 0) is None
    bed.quota(BacklogQuota(-1, -1, REFUSE))
    assert bed.backlogs.closed_by(bed.topic, 0) is None


def test_producers_are_kept_out_while_the_oldest_is_too_old(bed: Bed) -> None:
    slow = bed.subscribe("slow")
    bed.quota(BacklogQuota(-1, 5, BacklogAction.HOLD_PRODUCERS))
    assert bed.backlogs.closed_by(bed.topic, 0) is not None
    slow.expire_before(60)
    assert bed.backlogs.closed_by(bed.topic, 0) is None


def test_slow_subscriptions_lose_what_is_too_much(bed: Bed) -> None:
    slow, fast = bed.subscribe("slow"), bed.subscribe("fast", 90)
    bed.quota(BacklogQuota(-(-bed.size // 4), -1, EVICT))
    assert bed.backlogs.enforce(bed.topic, 0) is None
    assert (slow.position, fast.position) == (75, 90)
    assert bed.backlogs.enforce(bed.topic, 0) is None
    assert slow.position == 75


def test_slow_subscriptions_lose_what_is_too_old(bed: Bed) -> None:
    slow = bed.subscribe("slow")
    bed.quota(BacklogQuota(-1, 4, EVICT))
    assert bed.backlogs.enforce(bed.topic, 0) is None
    assert slow.position == 60
