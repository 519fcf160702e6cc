"""Exclusive and Failover: order, permits, rewinding, partial batches, and who is active."""

import pytest

from millstream.broker.subscriptions import (
    ConsumerBusy,
    KindMismatch,
    StartAt,
    SubscriptionKind,
    SubscriptionSettings,
)
from millstream.broker.subscriptions.single import SingleDispatcher
from tests.unit.broker.subscriptions.desk import Desk

EXCLUSIVE, FAILOVER, SHARED = SubscriptionKind.EXCLUSIVE, SubscriptionKind.FAILOVER, SubscriptionKind.SHARED


def test_records_come_in_order_and_as_permitted() -> None:
    desk = Desk()
    desk.append(1, 1, 1)
    consumer, got = desk.subscribe(EXCLUSIVE, permits=2)
    assert got.take() == [0, 1]
    consumer.flow(5)
    desk.run()
    desk.append(1, 1)
    desk.run()
    assert got.take() == [2, 3, 4]
    assert consumer.permits == 2
    consumer.flow(0)
    consumer.flow(-7)
    assert consumer.permits == 2


def test_permits_go_below_nothing_by_a_part_of_a_batch_at_most() -> None:
    desk = Desk()
    desk.append(5, 5)
    consumer, got = desk.subscribe(EXCLUSIVE, permits=4)
    assert got.take() == [0]
    assert consumer.permits == -1
    consumer.flow(1)
    desk.run()
    assert got.take() == []
    consumer.flow(1)
    desk.run()
    assert got.take() == [5]


def test_there_is_one_exclusive_consumer() -> None:
    desk = Desk()
    first, _ = desk.subscribe(EXCLUSIVE)
    with pytest.raises(ConsumerBusy) as refused:
        desk.subscribe(EXCLUSIVE)
    assert refused.value.holder is first
    with pytest.raises(KindMismatch):
        desk.subscribe(SHARED)
    first.close()
    first.close()
    desk.subscribe(SHARED)


def test_whoever_comes_next_begins_at_what_is_not_acknowledged() -> None:
    desk = Desk()
    desk.append(1, 1, 1, 1)
    consumer, got = desk.subscribe(EXCLUSIVE, permits=10)
    consumer.acknowledge([(0, None), (2, None), (99, None), (-1, None)])
    assert desk.subscription().position == 1
    consumer.close()
    _, got = desk.subscribe(EXCLUSIVE, permits=10)
    assert got.take() == [1, 3]


def test_redelivery_goes_back_to_the_position_with_the_epoch() -> None:
    desk = Desk()
    desk.append(1, 1, 1)
    consumer, got = desk.subscribe(EXCLUSIVE, permits=10, epoch=1)
    consumer.acknowledge_cumulative(0)
    got.take()
    consumer.redeliver([2], epoch=4)
    consumer.redeliver(None, epoch=3)
    desk.run()
    assert got.take_counts() == [(1, 0), (2, 0)]
    assert got.epochs == [1, 4]
    assert consumer.permits == 10 - 3 - 2


def test_a_cumulative_acknowledgement_may_end_within_a_batch() -> None:
    desk = Desk()
    desk.append(5, 5)
    consumer, got = desk.subscribe(EXCLUSIVE, permits=100)
    consumer.acknowledge_cumulative(0, 0b11100)
    assert desk.subscription().position == 2
    consumer.acknowledge_cumulative(-1)
    consumer.acknowledge_cumulative(77)
    assert desk.subscription().position == 2
    got.take()
    consumer.redeliver(None)
    desk.run()
    assert [(one.header.base_offset, one.wanted) for one in got.deliveries] == [(0, 0b11100), (5, None)]
    consumer.acknowledge_cumulative(5, 0)
    assert desk.subscription().position == 10


def test_records_of_a_batch_are_acknowledged_one_by_one() -> None:
    desk = Desk()
    desk.append(5)
    consumer, got = desk.subscribe(EXCLUSIVE, permits=100)
    consumer.acknowledge([(0, 0b10101)])
    consumer.acknowledge([(0, 0b11100)])
    got.take()
    consumer.redeliver(None)
    desk.run()
    assert [one.wanted for one in got.deliveries] == [0b10100]
    assert consumer.permits == 100 - 5 - 2
    assert consumer.stats().unacknowledged == 2


def test_a_start_within_a_batch_wants_the_rest_of_it() -> None:
    desk = Desk()
    desk.append(5, 1)
    _, got = desk.subscribe(EXCLUSIVE, permits=100, start=3)
    assert [(one.header.base_offset, one.wanted) for one in got.deliveries] == [(0, 0b11000), (5, None)]
    _, got = desk.subscribe(EXCLUSIVE, permits=100, name="latest", start=StartAt.LATEST)
    assert got.take() == []
    desk.append(1)
    desk.run()
    assert got.take() == [6]


def test_a_slow_reader_stops_itself_alone() -> None:
    desk = Desk()
    slow, got = desk.subscribe(EXCLUSIVE, permits=1000)
    other, quick = desk.subscribe(EXCLUSIVE, permits=1000, name="other")
    got.room = 1
    desk.append(1, 1, 1)
    desk.run()
    assert got.take() == [0]
    assert quick.take() == [0, 1, 2]
    got.room = 10_000
    slow.resume()
    slow.resume()
    desk.run()
    assert got.take() == [1, 2]
    assert other.permits == slow.permits


def test_a_turn_is_bounded_and_the_next_follows() -> None:
    desk = Desk(settings=SubscriptionSettings(turn_entries_max=3))
    desk.append(*[1] * 8)
    _, got = desk.subscribe(EXCLUSIVE, permits=100)
    assert got.turns == [3, 3, 2]


def test_the_best_priority_and_the_partition_choose_who_is_active() -> None:
    desk = Desk()
    desk.append(1, 1)
    worse, worse_got = desk.subscribe(FAILOVER, "a", permits=1, priority=1)
    assert worse_got.active == [True]
    assert worse_got.take() == [0]
    worse.acknowledge_cumulative(0)
    _, got = desk.subscribe(FAILOVER, "z", permits=10)
    assert worse_got.active == [True, False]
    assert got.active == [True]
    assert got.take() == [1]
    assert worse.permits == 0
    assert not worse.stats().active


def test_a_take_over_waits_for_acknowledgements_under_way() -> None:
    desk = Desk()
    desk.append(1, 1, 1)
    first, _ = desk.subscribe(FAILOVER, "a", permits=10)
    _, got = desk.subscribe(FAILOVER, "b", permits=10)
    assert got.active == [False]
    first.acknowledge([(0, None)])
    first.close()
    desk.pass_ms(999)
    assert got.active == [False, True]
    assert got.take() == []
    desk.pass_ms(2)
    assert got.take() == [1, 2]


def test_the_first_by_name_is_active() -> None:
    """As the specification has it: consumers are sorted by their names, and the first one is elected."""
    desk = Desk()
    (b, _), (c, _), (a, _) = (desk.subscribe(FAILOVER, name, permits=1) for name in ("b", "c", "a"))
    assert (a.active, b.active, c.active) == (True, False, False)
    a.close()
    assert (b.active, c.active) == (True, False)


def test_an_acknowledgement_of_a_frame_delivered_long_ago_asks_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.broker.subscriptions.single._RECENT_MAX", 4)
    monkeypatch.setattr("millstream.broker.subscriptions.single._TRIM_EVERY", 2)
    desk = Desk()
    desk.append(*[3] * 20)
    consumer, _ = desk.subscribe(EXCLUSIVE, permits=1000)
    dispatcher = desk.subscription()._dispatcher
    assert isinstance(dispatcher, SingleDispatcher)
    assert len(dispatcher._bases) <= 8
    consumer.acknowledge([(3, None), (0, None), (1, None), (57, None)])
    assert desk.subscription().position == 6
    assert consumer.stats().unacknowledged == 51
