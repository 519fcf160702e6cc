"""Key_Shared: who has which keys, and the order of each while members come and go."""

from collections import Counter

import pytest

from millstream.broker.subscriptions import (
    KeyRangesTaken,
    KeySharedPolicy,
    PolicyMismatch,
    SubscriptionKind,
    SubscriptionSettings,
)
from millstream.broker.subscriptions.interface import KEY_SLOTS
from millstream.broker.subscriptions.key_ring import NOBODY, AutoSplit, StickyRanges
from millstream.broker.subscriptions.murmur3 import key_slot, murmur3_32
from tests.unit.broker.subscriptions.desk import Desk

KEY_SHARED = SubscriptionKind.KEY_SHARED
HALVES = ((0, KEY_SLOTS // 2 - 1),), ((KEY_SLOTS // 2, KEY_SLOTS - 1),)


def keys_of_both_halves() -> tuple[bytes, bytes]:
    """A key of the lower and one of the upper half of the slots."""
    keys = [b"key-%d" % n for n in range(100)]
    low = next(key for key in keys if key_slot(key) < KEY_SLOTS // 2)
    return low, next(key for key in keys if key_slot(key) >= KEY_SLOTS // 2)


def keyed(desk: Desk, *keys: bytes) -> None:
    """Append a frame for each key."""
    for key in keys:
        desk.inspector.keys[desk.log.end_offset] = key
        desk.append(1)


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"", 0), (b"a", 0x3C2569B2), (b"abc", 0xB3DD93FA), (b"test", 0xBA6BD213), (b"Hello, world!", 0xC0363E43)],
)
def test_the_hash_is_murmur3(data: bytes, value: int) -> None:
    assert murmur3_32(data) == value & 0x7FFFFFFF


def test_slots_are_shared_out_evenly_and_few_move() -> None:
    ring = AutoSplit()
    for number in range(4):
        ring.add(number, f"consumer-{number % 3}")
    before = [ring.owner(slot) for slot in range(KEY_SLOTS)]
    shares = Counter(before)
    assert set(shares) == {0, 1, 2, 3}
    assert all(share > KEY_SLOTS / 4 / 2 for share in shares.values())
    assert sum(last - first + 1 for first, last in ring.ranges(2)) == shares[2]
    ring.remove(2)
    assert all(ring.owner(slot) == owner for slot, owner in enumerate(before) if owner != 2)
    for number in (0, 1, 3):
        ring.remove(number)
    assert ring.owner(5) == NOBODY


def test_sticky_ranges_do_not_overlap() -> None:
    ring = StickyRanges()
    ring.add(1, ((10, 20), (30, 30)))
    for taken in ((), ((20, 21),), ((0, 65_536),), ((-1, 4),), ((5, 4),), ((40, 50), (50, 60)), ((0, 100),)):
        with pytest.raises(KeyRangesTaken):
            ring.check(taken)
    ring.check(((21, 29), (31, 40)))
    assert [ring.owner(slot) for slot in (9, 10, 20, 21, 30, 31)] == [NOBODY, 1, 1, NOBODY, 1, NOBODY]
    assert ring.ranges(1) == ((10, 20), (30, 30))


def test_sticky_consumers_get_their_slots_and_others_wait() -> None:
    desk = Desk()
    low, high = keys_of_both_halves()
    _, got = desk.subscribe(KEY_SHARED, permits=10, key_shared=KeySharedPolicy(HALVES[0]))
    keyed(desk, low, high, low, high)
    desk.run()
    assert got.take() == [0, 2]
    with pytest.raises(PolicyMismatch):
        desk.subscribe(KEY_SHARED)
    with pytest.raises(KeyRangesTaken):
        desk.subscribe(KEY_SHARED, key_shared=KeySharedPolicy(((5, 5),)))
    other, other_got = desk.subscribe(KEY_SHARED, permits=10, key_shared=KeySharedPolicy(HALVES[1]))
    assert other_got.take_counts() == [(1, 0), (3, 0)]
    assert other.stats().key_ranges == HALVES[1]


def test_a_key_stays_where_it_is_unacknowledged_when_others_come() -> None:
    desk = Desk()
    keys = [b"key-%d" % n for n in range(50)]
    first, got = desk.subscribe(KEY_SHARED, "first", permits=1000)
    keyed(desk, *keys)
    desk.run()
    assert got.take() == list(range(50))
    _, second_got = desk.subscribe(KEY_SHARED, "second", permits=1000)
    keyed(desk, *keys)
    desk.run()
    kept = got.take()
    moved = sorted({*range(50, 100)} - {*kept})
    assert kept
    assert moved
    assert second_got.take() == [], "all of its keys are unacknowledged at the first"
    assert desk.subscription().stats().waiting == len(moved)
    first.acknowledge([(moved[0] - 50, None), (moved[1] - 50, None)])
    desk.run()
    assert second_got.take() == moved[:2]
    first.close()
    desk.run()
    taken = second_got.take_counts()
    for key in range(50):
        per_key = [(offset, count) for offset, count in taken if offset % 50 == key]
        assert per_key == sorted(per_key)
        if key + 50 in moved[2:]:
            assert per_key == [(key, 1), (key + 50, 0)]
        elif key + 50 in kept:
            assert per_key == [(key, 1), (key + 50, 1)]


def test_out_of_order_a_key_moves_at_once() -> None:
    desk = Desk()
    keys = [b"key-%d" % n for n in range(20)]
    policy = KeySharedPolicy(allow_out_of_order=True)
    desk.subscribe(KEY_SHARED, "first", permits=1000, key_shared=policy)
    keyed(desk, *keys)
    desk.run()
    _, second_got = desk.subscribe(KEY_SHARED, "second", permits=1000, key_shared=policy)
    keyed(desk, *keys)
    desk.run()
    assert second_got.take()
    assert not desk.subscription().stats().waiting


def test_a_consumer_without_permits_holds_back_its_keys_alone() -> None:
    desk = Desk(settings=SubscriptionSettings(look_ahead_per_consumer=3))
    low, high = keys_of_both_halves()
    stuck, stuck_got = desk.subscribe(KEY_SHARED, permits=1, key_shared=KeySharedPolicy(HALVES[0]))
    _, got = desk.subscribe(KEY_SHARED, permits=1000, key_shared=KeySharedPolicy(HALVES[1]))
    keyed(desk, *[low, high] * 10)
    desk.run()
    assert stuck_got.take() == [0]
    assert got.take() == [1, 3, 5, 7, 9, 11], "six frames are read ahead, and no more"
    stuck.flow(2)
    desk.run()
    assert stuck_got.take() == [2, 4]
    assert got.take() == [13, 15]
    stuck.flow(100)
    desk.run()
    assert stuck_got.take() == [6, 8, 10, 12, 14, 16, 18]
    assert got.take() == [17, 19]


def test_what_comes_again_goes_before_what_is_new_of_its_key() -> None:
    desk = Desk()
    consumer, got = desk.subscribe(KEY_SHARED, permits=2)
    keyed(desk, b"k", b"k", b"k", b"other")
    desk.run()
    consumer.redeliver([1, 0])
    consumer.flow(2)
    desk.run()
    got.take()
    consumer.redeliver(None)
    consumer.flow(10)
    desk.run()
    assert got.take_counts() == [(0, 2), (1, 2), (2, 0), (3, 0)]
    consumer.redeliver([2])
    consumer.acknowledge([(2, None), (0, None)])
    desk.run()
    assert got.take() == []


def test_delays_hold_for_keys_too() -> None:
    desk = Desk()
    desk.inspector.times = {0: desk.runtime.now_ms() + 100}
    _, got = desk.subscribe(KEY_SHARED, permits=10)
    keyed(desk, b"a", b"b")
    desk.run()
    assert got.take() == [1]
    desk.pass_ms(101)
    assert got.take() == [0]
