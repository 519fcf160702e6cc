"""Shared: turns, priorities, redelivery counts, limits, delays, and acknowledgements by anybody."""

from millstream.broker.subscriptions import SubscriptionKind, SubscriptionSettings
from tests.unit.broker.subscriptions.desk import Desk

SHARED = SubscriptionKind.SHARED


def test_consumers_take_turns_of_some_frames() -> None:
    desk = Desk(settings=SubscriptionSettings(entries_per_consumer=2))
    _, first = desk.subscribe(SHARED, permits=100)
    _, second = desk.subscribe(SHARED, permits=100)
    desk.append(*[1] * 5)
    desk.run()
    assert first.take() == [0, 1, 4]
    assert second.take() == [2, 3]
    desk.append(1)
    desk.run()
    assert second.take() == [5], "who was last waits longest"


def test_a_lower_priority_is_served_when_the_better_ones_are_full() -> None:
    desk = Desk()
    _, worse = desk.subscribe(SHARED, permits=100, priority=1)
    _, better = desk.subscribe(SHARED, permits=3)
    desk.append(*[1] * 5)
    desk.run()
    assert better.take() == [0, 1, 2]
    assert worse.take() == [3, 4]


def test_what_comes_again_goes_before_what_is_new_and_is_counted() -> None:
    desk = Desk()
    desk.append(*[1] * 4)
    consumer, got = desk.subscribe(SHARED, permits=2)
    assert got.take_counts() == [(0, 0), (1, 0)]
    consumer.redeliver([0, 17, 3])
    consumer.flow(2)
    desk.run()
    assert got.take_counts() == [(0, 1), (2, 0)]
    consumer.redeliver(None)
    consumer.flow(10)
    desk.run()
    assert got.take_counts() == [(0, 2), (1, 1), (2, 1), (3, 0)]
    assert consumer.stats().redelivered_records == 4


def test_what_a_consumer_held_goes_to_the_others() -> None:
    desk = Desk()
    desk.append(*[1] * 4)
    gone, _ = desk.subscribe(SHARED, permits=4)
    stays, stays_got = desk.subscribe(SHARED, permits=10)
    gone.acknowledge([(1, None)])
    gone.close()
    desk.run()
    assert stays_got.take_counts() == [(0, 1), (2, 1), (3, 1)]
    stays.redeliver([2])
    stays.close()
    _, again = desk.subscribe(SHARED, permits=10)
    assert again.take_counts() == [(0, 2), (2, 2), (3, 2)]


def test_anybody_may_acknowledge_and_nobody_cumulatively() -> None:
    desk = Desk()
    desk.append(1, 1)
    holder, _ = desk.subscribe(SHARED, permits=2)
    other, got = desk.subscribe(SHARED, permits=2)
    other.acknowledge_cumulative(1)
    assert desk.subscription().position == 0
    other.acknowledge([(1, None), (0, None), (0, None)])
    assert desk.subscription().position == 2
    assert holder.stats().unacknowledged == 0
    assert other.stats().acknowledged_records == 2
    holder.redeliver(None)
    desk.run()
    assert got.take() == []


def test_a_part_of_a_batch_comes_again_alone() -> None:
    desk = Desk()
    desk.append(5)
    consumer, got = desk.subscribe(SHARED, permits=10)
    consumer.acknowledge([(0, 0b10101)])
    assert consumer.stats().unacknowledged == 3
    consumer.redeliver([0])
    got.take()
    desk.run()
    assert [(one.wanted, one.redelivery_count) for one in got.deliveries] == [(0b10101, 1)]
    assert consumer.permits == 10 - 5 - 3
    consumer.acknowledge([(0, 0b00001)])
    consumer.acknowledge([(0, 0b11110)])
    assert desk.subscription().position == 5
    assert consumer.stats().unacknowledged == 0


def test_a_consumer_that_holds_too_much_is_blocked_until_it_holds_half() -> None:
    desk = Desk(settings=SubscriptionSettings(unacknowledged_per_consumer_max=4))
    consumer, got = desk.subscribe(SHARED, permits=100)
    _, other = desk.subscribe(SHARED, permits=2)
    desk.append(*[1] * 8)
    desk.run()
    assert len(got.take()) == 4
    assert other.take() == [4, 5]
    assert consumer.stats().blocked
    consumer.acknowledge([(0, None)])
    desk.run()
    assert got.take() == []
    consumer.acknowledge([(1, None)])
    desk.run()
    assert got.take() == [6, 7]


def test_a_subscription_that_holds_too_much_is_blocked_until_it_holds_half() -> None:
    desk = Desk(settings=SubscriptionSettings(unacknowledged_max=4))
    desk.append(*[1] * 8)
    consumer, got = desk.subscribe(SHARED, permits=100)
    assert got.take() == [0, 1, 2, 3]
    assert desk.subscription().stats().blocked
    consumer.acknowledge([(0, None), (1, None)])
    desk.run()
    assert got.take() == [4, 5]
    _, other = desk.subscribe(SHARED, permits=100)
    consumer.close()
    desk.run()
    assert other.take() == [2, 3, 4, 5]


def test_a_delayed_frame_comes_at_its_time_and_others_pass_it() -> None:
    desk = Desk()
    now_ms = desk.runtime.now_ms()
    desk.inspector.times = {0: now_ms + 500, 1: now_ms - 1, 2: now_ms + 200}
    desk.append(*[1] * 4)
    consumer, got = desk.subscribe(SHARED, permits=10)
    assert got.take() == [1, 3]
    assert desk.subscription().stats().delayed == 2
    desk.pass_ms(199)
    assert got.take() == []
    desk.pass_ms(2)
    assert got.take_counts() == [(2, 0)]
    consumer.acknowledge([(0, None)])
    desk.pass_ms(1000)
    assert got.take() == []


def test_an_acknowledgement_of_what_was_never_read_is_kept() -> None:
    desk = Desk()
    desk.append(2, 1, 1)
    consumer, got = desk.subscribe(SHARED)
    consumer.acknowledge([(2, None), (0, 0b10)])
    consumer.flow(10)
    desk.run()
    assert [(one.header.base_offset, one.wanted) for one in got.deliveries] == [(0, 0b10), (3, None)]


def test_what_was_deleted_from_the_log_is_done_with() -> None:
    desk = Desk()
    desk.append(*[1] * 6)
    consumer, got = desk.subscribe(SHARED, permits=3)
    consumer.redeliver(None)
    desk.broker.wait(desk.broker.broker.delete_records(desk.partition, 2))
    got.take()
    consumer.flow(10)
    desk.run()
    assert got.take() == [2, 3, 4, 5]
    assert consumer.stats().unacknowledged == 4
    assert desk.subscription().position == 2


def test_a_frame_that_cannot_be_read_now_is_not_passed_over() -> None:
    desk = Desk()
    desk.append(*[1] * 3)
    consumer, got = desk.subscribe(SHARED, permits=3)
    consumer.redeliver(None)
    got.take()
    read = desk.log.read

    def fail(offset: int, max_bytes: int) -> tuple[memoryview, int]:
        raise OSError(5, "input/output error")

    desk.log.read = fail  # type: ignore[method-assign]  # the disk fails for a while
    consumer.flow(10)
    desk.run()
    desk.log.read = read  # type: ignore[method-assign]
    assert got.take() == []
    desk.append(1)
    desk.run()
    assert got.take() == [0, 1, 2, 3]


def test_slow_readers_stop_themselves_alone() -> None:
    desk = Desk(settings=SubscriptionSettings(entries_per_consumer=1))
    slow, slow_got = desk.subscribe(SHARED, permits=100)
    _, got = desk.subscribe(SHARED, permits=100)
    slow_got.room = 0
    desk.append(*[1] * 3)
    desk.run()
    assert got.take() == [0, 1, 2]
    slow_got.room = 1
    slow.resume()
    desk.append(*[1] * 3)
    desk.run()
    assert sorted(got.take() + slow_got.take()) == [3, 4, 5]
    assert slow.delivered_records == 1
