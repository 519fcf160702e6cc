"""Turns of a partition's subscriptions, the rounds within them, and acknowledging parts of frames."""

import struct

import pytest

from millstream.broker.subscriptions import SubscriptionKind, SubscriptionSettings
from millstream.broker.subscriptions.consumer import PERMITS_MAX
from millstream.broker.subscriptions.cursor import Cursor
from millstream.broker.subscriptions.dispatcher import acknowledge_records
from millstream.broker.subscriptions.errors import SubscriptionError, SubscriptionGone
from millstream.broker.subscriptions.key_shared import KeySharedDispatcher
from millstream.broker.subscriptions.pooled import PooledDispatcher
from millstream.broker.subscriptions.round import Round
from millstream.broker.subscriptions.shared import SharedDispatcher
from millstream.broker.subscriptions.subscription import Subscription
from millstream.broker.subscriptions.subscriptions import Subscriptions
from millstream.broker.subscriptions.turns import PartitionBounds, PartitionTurns
from millstream.model.frame import frame_crc
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import append
from tests.unit.broker.subscriptions.desk import Desk, NotedReceiver


class Counting:
    """A subscriber that counts its turns."""

    def __init__(self) -> None:
        self.turns = 0

    def turn(self) -> None:
        self.turns += 1


class NarrowReceiver(NotedReceiver):
    """A connection that always has room for one frame more."""

    def room_bytes(self) -> int:
        return 1


def turns_of(desk: Desk) -> PartitionTurns:
    return PartitionTurns(desk.partition, desk.runtime, PartitionBounds())


def test_a_turn_comes_once_and_after_the_work_at_hand() -> None:
    desk = Desk()
    turns, one, other = turns_of(desk), Counting(), Counting()
    turns.schedule(one)
    turns.schedule(one)
    turns.schedule(other)
    turns.forget(other)
    assert one.turns == 0
    desk.run()
    assert (one.turns, other.turns) == (1, 0)


def test_news_give_a_turn_to_those_who_wait_for_them() -> None:
    desk = Desk()
    turns, one, other = turns_of(desk), Counting(), Counting()
    turns.await_news(one)
    turns.await_news(other)
    turns.forget(other)
    desk.append(1, 1)
    desk.run()
    desk.append(1)
    desk.run()
    assert (one.turns, other.turns) == (1, 0)


def test_a_piece_of_the_log_is_looked_into_by_offset() -> None:
    desk = Desk()
    desk.append(2, 3, 1)
    turns = turns_of(desk)
    chunk = turns.read(1, 10, 1 << 20)
    assert chunk is not None
    assert (chunk.start, chunk.end) == (1, 6)
    assert [chunk.place(offset) for offset in (0, 1, 2, 4, 5, 6)] == [0, 0, 1, 1, 2, 3]
    assert turns.read(2, 10, 1 << 20) is chunk
    assert turns.read(6, 10, 1 << 20) is None
    header = turns.header_at(2)
    assert header is not None
    assert header.record_count == 3
    assert [turns.header_at(offset) for offset in (-1, 3, 6)] == [None, None, None]


def test_a_round_goes_over_those_of_the_best_priority_who_have_room() -> None:
    desk = Desk()
    consumers = [desk.subscribe(SubscriptionKind.SHARED, name, priority=n // 2)[0] for n, name in enumerate("abcd")]
    for consumer in consumers:
        consumer.permits = 1
    consumers[0].closed = True
    this_round = Round(consumers, 1)
    assert this_round.permits == 3
    assert [one.name for one in this_round.takers] == ["b", "c", "d"]
    assert this_round.next() is consumers[1]
    consumers[1].permits = 0
    assert this_round.next() is consumers[2]
    consumers[0].closed = False


@pytest.mark.parametrize(
    ("wanted", "left"),
    [(None, []), (0, []), (0b11111, [0, 1, 2, 3, 4]), (0b10101, [0, 2, 4]), (0b01110, [1, 2, 3]), (~0 << 70, [])],
)
def test_bits_that_are_not_set_are_acknowledged(wanted: int | None, left: list[int]) -> None:
    desk = Desk()
    cursor = Cursor(desk.runtime, None, "s", (desk.topic.id, 0), 10, 50, moved=lambda _: None, dropped=lambda: None)
    assert acknowledge_records(cursor, 10, 5, wanted) == 5 - len(left)
    mask = cursor.wanted(10, 5)
    assert [n for n in range(5) if mask is None or mask >> n & 1] == left


def test_permits_do_not_run_over() -> None:
    desk = Desk()
    consumer, _ = desk.subscribe(SubscriptionKind.SHARED, permits=PERMITS_MAX)
    consumer.flow(PERMITS_MAX)
    assert consumer.permits == PERMITS_MAX


def test_a_subscription_that_has_ended_takes_nobody() -> None:
    desk = Desk()
    consumer, receiver = desk.subscribe(SubscriptionKind.SHARED)
    subscription: Subscription = desk.subscription()
    subscription.unsubscribe()
    with pytest.raises(SubscriptionGone):
        subscription.attach(consumer.request, receiver)
    assert issubclass(SubscriptionGone, SubscriptionError)
    assert isinstance(desk.subscriptions, Subscriptions)


def test_both_rules_for_several_consumers_are_of_one_family() -> None:
    assert issubclass(SharedDispatcher, PooledDispatcher)
    assert issubclass(KeySharedDispatcher, PooledDispatcher)


@pytest.mark.parametrize("kind", list(SubscriptionKind))
def test_a_connection_with_little_room_is_asked_again_and_again(kind: SubscriptionKind) -> None:
    desk = Desk()
    consumer, receiver = desk.subscribe(kind)
    narrow = NarrowReceiver()
    consumer.receiver = narrow
    desk.append(*[1] * 5)
    consumer.flow(9)
    desk.run()
    assert narrow.turns == [1] * 5
    assert receiver.turns == []


@pytest.mark.parametrize("kind", [SubscriptionKind.EXCLUSIVE, SubscriptionKind.SHARED])
def test_a_turn_has_its_limit_in_records_too(kind: SubscriptionKind) -> None:
    desk = Desk(settings=SubscriptionSettings(unacknowledged_max=0, unacknowledged_per_consumer_max=0))
    for _ in range(3):
        frame = batch(b"a few bytes that say that they unpack to a million records")
        struct.pack_into(">i", frame, 23, 10**6 - 1)
        struct.pack_into(">i", frame, 57, 10**6)
        struct.pack_into(">I", frame, 17, frame_crc(memoryview(frame)))
        append(desk.partition, frame)
    consumer, got = desk.subscribe(kind)
    consumer.flow(2**31)
    consumer.acknowledge([(0, None)])
    desk.run()
    assert got.turns == [1, 1]
