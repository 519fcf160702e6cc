"""Frames that are not done, and frames whose time has not come: lookups, taking out, and their memory."""

import tracemalloc
from random import Random

from millstream.broker.subscriptions.delays import Delays
from millstream.broker.subscriptions.entries import DONE, WAITING, Entries


def test_frames_are_found_by_base_offset_until_they_are_done() -> None:
    entries = Entries()
    for n in range(10):
        assert entries.add(3 * n, 3, holder=n % 2, slot=n) == n
    assert [entries.find(offset) for offset in (0, 1, 27, 30)] == [0, -1, 9, -1]
    entries.finish(4)
    assert entries.find(12) == -1
    assert len(entries) == 9
    assert list(entries.held_by(0)) == [0, 2, 6, 8]
    assert list(entries.before(7)) == [0, 1, 2]
    entries.compact()
    assert entries.slots[entries.find(15)] == 5
    assert len(entries.bases) == 9
    for place in range(9):
        entries.finish(place)
    entries.compact()
    assert not entries.bases


def test_what_is_done_is_taken_out_in_time() -> None:
    entries = Entries()
    for n in range(10_000):
        place = entries.add(n, 1, WAITING)
        if n:
            entries.finish(place)
    assert len(entries) == 1
    assert len(entries.bases) < 1000
    assert entries.find(0) == 0
    assert DONE in entries.holders


def test_redeliveries_do_not_run_over() -> None:
    entries = Entries()
    entries.add(0, 1, WAITING)
    entries.redeliveries[0] = 2**16 - 2
    for _ in range(3):
        entries.count_redelivery(0)
    assert entries.redeliveries[0] == 2**16 - 1


def test_a_frame_takes_some_twenty_bytes() -> None:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    entries, delays = Entries(), Delays()
    for n in range(100_000):
        entries.add(n, 1, 0)
        delays.add(n, n)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert used < 100_000 * 48


def test_delays_come_in_the_order_of_their_times() -> None:
    random = Random(3)
    delays = Delays()
    expected = []
    for n in range(2000):
        due_ms = random.randrange(10**6)
        delays.add(due_ms, n)
        expected.append((due_ms, n))
        if random.random() < 0.3:
            first_ms = min(expected)[0]
            assert delays.first_ms == first_ms
            expected.remove((first_ms, delays.pop()))
    while expected:
        first_ms = min(expected)[0]
        expected.remove((first_ms, delays.pop()))
    assert not delays
    delays.add(1, 1)
    delays.clear()
    assert len(delays) == 0
