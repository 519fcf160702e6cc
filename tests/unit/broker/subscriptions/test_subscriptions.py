"""Making, finding, moving and ending subscriptions, and what their consumers may read."""

import pytest

from millstream.broker.errors import BrokerError
from millstream.broker.partition import Partition
from millstream.broker.subscriptions import (
    CloseReason,
    PartitionBounds,
    StartAt,
    SubscriptionInUse,
    SubscriptionKind,
    SubscriptionNotFound,
)
from millstream.model.frame import Attributes
from millstream.storage.metadata import MetadataFailed
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import append
from tests.unit.broker.subscriptions.desk import Desk

EXCLUSIVE, SHARED = SubscriptionKind.EXCLUSIVE, SubscriptionKind.SHARED


class ToldBounds(PartitionBounds):
    """Bounds that a test sets."""

    hidden_from: int | None = None
    terminated = False

    def stable_offset(self, partition: Partition) -> int:
        return partition.log.end_offset if self.hidden_from is None else self.hidden_from

    def is_terminated(self, partition: Partition) -> bool:
        return self.terminated


class Compacted:
    """What compaction left: the frames of some offsets."""

    def __init__(self, desk: Desk, offsets: list[int], horizon: int) -> None:
        self.desk = desk
        self.offsets = offsets
        self.horizon = horizon

    def read(self, offset: int, max_bytes: int) -> tuple[memoryview, int]:
        for one in self.offsets:
            if one >= offset:
                data, end = self.desk.log.read(one, 1)
                return data, end
        return memoryview(b""), self.horizon


def test_a_subscription_lasts_before_anybody_is_told() -> None:
    desk = Desk()
    desk.append(1, 1)
    assert desk.subscriptions.find(desk.topic, 0, "s") is None
    desk.broker.store.failing = True
    with pytest.raises(MetadataFailed):
        desk.subscribe(EXCLUSIVE)
    assert desk.subscriptions.names(desk.topic, 0) == []
    desk.broker.store.failing = False
    desk.subscribe(EXCLUSIVE, start=StartAt.LATEST)
    desk.subscribe(EXCLUSIVE, name="reader", durable=False)
    assert desk.subscriptions.names(desk.topic, 0) == ["reader", "s"]
    assert desk.stored() == 2
    assert desk.subscriptions.hold_offset(desk.topic.id, 0) == 2
    assert desk.subscriptions.connected("s")
    assert not desk.subscriptions.connected("reader")


def test_a_subscription_may_be_made_ahead_and_is_not_made_where_that_is_forbidden() -> None:
    desk = Desk()
    desk.append(1, 1)
    with pytest.raises(SubscriptionNotFound):
        desk.subscribe(EXCLUSIVE, may_create=False)
    made = desk.wait(desk.subscriptions.create(desk.topic, 0, "s", StartAt.EARLIEST))
    assert made.stats().kind is None
    _, got = desk.subscribe(EXCLUSIVE, permits=5, may_create=False, start=StartAt.LATEST)
    assert got.take() == [0, 1]
    with pytest.raises(SubscriptionInUse):
        desk.subscribe(EXCLUSIVE, durable=False)


def test_a_subscription_that_does_not_last_goes_with_its_consumer() -> None:
    desk = Desk()
    desk.append(1, 1)
    consumer, got = desk.subscribe(EXCLUSIVE, permits=5, durable=False)
    consumer.acknowledge_cumulative(0)
    assert desk.subscription().persist() is None
    with pytest.raises(SubscriptionInUse):
        desk.subscribe(EXCLUSIVE)
    consumer.close()
    assert desk.subscriptions.names(desk.topic, 0) == []
    _, got = desk.subscribe(EXCLUSIVE, permits=5, durable=False)
    assert got.take() == [0, 1]


def test_a_seek_closes_the_consumers_and_lasts() -> None:
    desk = Desk()
    desk.append(*[1] * 5)
    consumer, got = desk.subscribe(SHARED, permits=100)
    consumer.acknowledge([(offset, None) for offset in range(4)])
    sought = desk.subscription().seek(2)
    assert got.reasons == [CloseReason.SEEK]
    assert consumer.closed
    consumer.acknowledge([(4, None)])
    consumer.flow(5)
    desk.wait(sought)
    assert desk.stored() == 2
    _, got = desk.subscribe(SHARED, permits=100)
    assert got.take_counts() == [(2, 0), (3, 0), (4, 0)]
    desk.wait(desk.subscription().seek(10**12))
    assert desk.subscription().position == 5


def test_a_seek_goes_by_time_too() -> None:
    desk = Desk()
    for timestamp_ms in (1000, 2000, 3000):
        desk.append(1, timestamp_ms=timestamp_ms)
    desk.subscribe(EXCLUSIVE)
    for timestamp_ms, offset in ((1500, 1), (2000, 1), (0, 0), (9999, 3)):
        desk.wait(desk.subscription().seek_time(timestamp_ms))
        assert desk.subscription().position == offset


def test_a_reader_may_come_back_after_a_seek_for_a_while() -> None:
    desk = Desk()
    desk.append(*[1] * 5)
    desk.subscribe(EXCLUSIVE, durable=False)
    desk.wait(desk.subscription().seek(3))
    consumer, got = desk.subscribe(EXCLUSIVE, permits=9, durable=False)
    assert got.take() == [3, 4]
    desk.pass_ms(100_000)
    assert not consumer.closed
    desk.wait(desk.subscription().seek(3))
    desk.pass_ms(100_000)
    assert desk.subscriptions.names(desk.topic, 0) == []


def test_what_expires_is_taken_as_acknowledged() -> None:
    desk = Desk()
    for timestamp_ms in (1000, 2000, 3000):
        desk.append(2, timestamp_ms=timestamp_ms)
    consumer, _ = desk.subscribe(SHARED, permits=4)
    consumer.acknowledge([(0, 0b01)])
    assert desk.subscription().expire_before_time(2500) == 3
    stats = desk.subscription().stats()
    assert (stats.position, stats.backlog, stats.expired_records, stats.unacknowledged) == (4, 2, 3, 0)
    assert desk.subscription().expire_before(3) == 0


def test_the_only_consumer_may_end_a_subscription() -> None:
    desk = Desk()
    desk.append(1)
    first, _ = desk.subscribe(SHARED)
    second, _ = desk.subscribe(SHARED)
    with pytest.raises(SubscriptionInUse):
        desk.wait(desk.subscription().unsubscribe(first))
    second.close()
    gone = desk.subscription().unsubscribe(first)
    first.close()
    _, got = desk.subscribe(SHARED, permits=5, start=StartAt.LATEST)
    assert gone.done
    assert got.take() == [], "it is a new subscription"
    desk.wait(desk.subscription().unsubscribe())
    assert got.reasons == [CloseReason.UNSUBSCRIBED]
    assert desk.offsets.of_group("s") == {}


def test_subscriptions_go_with_their_topic() -> None:
    desk = Desk()
    _, got = desk.subscribe(EXCLUSIVE, permits=5)
    _, reader = desk.subscribe(EXCLUSIVE, permits=5, name="reader", durable=False)
    desk.wait(desk.broker.broker.delete_topic(desk.topic))
    assert got.reasons == reader.reasons == [CloseReason.TOPIC_DELETED]
    desk.subscriptions.forget_topic(desk.topic.id)
    assert desk.subscriptions.names(desk.topic, 0) == []


def test_readers_of_a_topic_that_is_gone_are_told_though_they_wait_for_nothing() -> None:
    desk = Desk()
    _, reader = desk.subscribe(EXCLUSIVE, durable=False)
    desk.wait(desk.broker.broker.delete_topic(desk.topic))
    desk.subscriptions.forget_topic(desk.topic.id)
    assert reader.reasons == [CloseReason.TOPIC_DELETED]


def test_nothing_is_read_behind_the_stable_offset() -> None:
    bounds = ToldBounds()
    desk = Desk(bounds=bounds)
    bounds.hidden_from = 2
    desk.append(1, 1, 1, 1)
    _, got = desk.subscribe(EXCLUSIVE, permits=9)
    assert got.take() == [0, 1]
    bounds.hidden_from = None
    desk.partition.announce()
    desk.run()
    assert got.take() == [2, 3]


def marked(attribute: int) -> bytearray:
    """A frame with an attribute; nobody checks its checksum before it is read, so that is set right as well."""
    from millstream.model.frame import frame_crc

    frame = batch(b"value")
    frame[22] |= attribute
    frame[17:21] = frame_crc(memoryview(frame)).to_bytes(4, "big")
    return frame


def test_what_is_not_for_consumers_is_passed_over() -> None:
    desk = Desk()
    desk.inspector.hidden = {1, 3}
    append(desk.partition, marked(Attributes.CONTROL))
    append(desk.partition, marked(Attributes.TRANSACTIONAL))
    append(desk.partition, marked(Attributes.TRANSACTIONAL))
    desk.append(1)
    consumer, got = desk.subscribe(SHARED, permits=9)
    assert got.take() == [2, 3], "only transactional frames are asked about"
    consumer.acknowledge([(2, None)])
    assert desk.subscription().position == 3


def test_a_compacted_source_is_read_up_to_its_horizon() -> None:
    desk = Desk()
    desk.append(*[1] * 9)
    source = Compacted(desk, [2, 4], 7)
    consumer, got = desk.subscribe(EXCLUSIVE, permits=9, source=source)
    assert got.take() == [2, 4, 7, 8]
    consumer.acknowledge([(2, None), (4, None)])
    assert desk.subscription().position == 7, "what compaction left out keeps nothing back"


def test_the_end_of_a_terminated_topic_is_told_once_all_is_acknowledged() -> None:
    bounds = ToldBounds()
    desk = Desk(bounds=bounds)
    desk.append(1, 1)
    consumer, got = desk.subscribe(SHARED, permits=9)
    _, late = desk.subscribe(SHARED)
    consumer.acknowledge([(0, None)])
    bounds.terminated = True
    desk.partition.announce()
    desk.run()
    assert got.ends == 0
    consumer.acknowledge([(1, None)])
    desk.run()
    assert (got.ends, late.ends) == (1, 1)
    desk.subscription("s").wake()
    desk.run()
    assert got.ends == 1


def test_subscriptions_at_the_same_place_share_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    kinds = list(SubscriptionKind)
    receivers = [desk.subscribe(kinds[n % 4], permits=10_000, name=f"s{n}")[1] for n in range(10)]
    reads = []
    read = desk.log.read

    def noted(offset: int, max_bytes: int) -> tuple[memoryview, int]:
        reads.append(offset)
        return read(offset, max_bytes)

    monkeypatch.setattr(desk.log, "read", noted)
    desk.append(*[1] * 20)
    desk.run()
    assert reads == [0]
    assert all(receiver.take() == list(range(20)) for receiver in receivers)
    desk.append(1)
    desk.run()
    assert reads == [0, 20]


def test_subscriptions_that_rest_cost_nothing() -> None:
    desk = Desk()
    desk.append(1)
    desk.subscribe(EXCLUSIVE)
    assert not desk.partition._watchers
    timers = len(desk.runtime._timers)
    desk.append(1)
    desk.run()
    assert len(desk.runtime._timers) == timers
    desk.subscription().consumers[0].flow(5)
    desk.run()
    assert desk.partition._watchers
    desk.subscription().consumers[0].close()
    desk.append(1)
    desk.run()
    assert not desk.partition._watchers


def test_figures_are_counted() -> None:
    desk = Desk()
    consumer, _ = desk.subscribe(SHARED, permits=100)
    desk.append(*[5] * 4)
    desk.pass_ms(2000)
    consumer.acknowledge([(0, None), (10, None)])
    first = desk.subscription().stats()
    (figures,) = first.consumers
    assert (first.backlog, first.acknowledged_ranges, first.unacknowledged) == (10, 1, 10)
    assert (figures.delivered_records, figures.record_rate, figures.acknowledge_rate) == (20, 10.0, 5.0)
    assert (figures.permits, figures.unacknowledged, figures.active) == (80, 10, True)
    desk.pass_ms(2000)
    consumer.stats()
    desk.pass_ms(1000)
    assert consumer.stats().record_rate == 0.0


def test_all_refusals_are_the_brokers() -> None:
    assert issubclass(SubscriptionInUse, BrokerError)
