"""Cursors that last: groups of acknowledgements, receipts, death, and one cursor with the group of the same name."""

from dataclasses import replace
from pathlib import Path

import pytest

from millstream.broker.subscriptions import CloseReason, SubscriptionKind, SubscriptionSettings
from millstream.broker.subscriptions.dispatcher import acknowledged_runs
from millstream.storage.metadata import CommittedOffset, MetadataFailed
from tests.unit.broker.subscriptions.desk import Desk

EXCLUSIVE, SHARED = SubscriptionKind.EXCLUSIVE, SubscriptionKind.SHARED


def commit(desk: Desk, offset: int, note: str = "") -> None:
    committed = CommittedOffset(offset, -1, note, desk.runtime.now_ms())
    desk.wait(desk.offsets.commit("s", {(desk.topic.id, 0): committed}))


def test_acknowledgements_are_stored_in_groups() -> None:
    desk = Desk()
    desk.append(*[1] * 9)
    consumer, _ = desk.subscribe(EXCLUSIVE, permits=10)
    for offset in range(5):
        consumer.acknowledge_cumulative(offset)
        desk.pass_ms(9)
    assert desk.stored() == 0
    desk.pass_ms(10)
    assert desk.stored() == 5
    assert desk.subscription().persist() is None, "there is nothing to wait for"


def test_a_receipt_waits_for_the_store_and_takes_along_what_came_with_it() -> None:
    desk = Desk()
    desk.append(*[1] * 9)
    consumer, _ = desk.subscribe(EXCLUSIVE, permits=10)
    consumer.acknowledge_cumulative(1)
    receipt = desk.subscription().persist()
    consumer.acknowledge([(3, None)])
    assert receipt is not None
    assert receipt is desk.subscription().persist()
    desk.runtime.hold("metadata")
    desk.run()
    assert not receipt.done
    consumer.acknowledge([(5, None)])
    second = desk.subscription().persist()
    assert second is not None
    assert second is not receipt
    desk.runtime.release("metadata")
    desk.wait(receipt)
    desk.wait(second)
    assert desk.stored() == 2


def test_what_was_answered_survives_death_and_nothing_else_is_passed_over(tmp_path: Path) -> None:
    desk = Desk(str(tmp_path / "metadata.db"))
    desk.append(*[2] * 10)
    consumer, _ = desk.subscribe(SHARED, permits=100)
    consumer.acknowledge([(0, None), (4, None), (8, 0b10), (19, None)])
    receipt = desk.subscription().persist()
    assert receipt is not None
    desk.wait(receipt)
    consumer.acknowledge([(2, None)])
    desk.kill()
    consumer, got = desk.subscribe(SHARED, permits=100)
    expected = [(2, None), (6, None), (8, 0b10), (10, None), (12, None), (14, None), (16, None), (18, None)]
    assert [(one.header.base_offset, one.wanted) for one in got.deliveries] == expected


def test_a_stop_stores_what_nobody_waited_for(tmp_path: Path) -> None:
    desk = Desk(str(tmp_path / "metadata.db"))
    desk.append(*[1] * 9)
    consumer, _ = desk.subscribe(EXCLUSIVE, permits=10)
    consumer.acknowledge_cumulative(4)
    desk.subscriptions.close()
    desk.broker.restart()
    desk.open()
    assert desk.subscription().position == 5


def test_a_store_that_fails_fails_the_receipt_and_is_tried_again() -> None:
    desk = Desk()
    desk.append(*[1] * 9)
    consumer, _ = desk.subscribe(EXCLUSIVE, permits=10)
    desk.broker.store.failing = True
    consumer.acknowledge_cumulative(4)
    receipt = desk.subscription().persist()
    assert receipt is not None
    with pytest.raises(MetadataFailed):
        desk.wait(receipt)
    desk.broker.store.failing = False
    desk.pass_ms(60)
    assert desk.stored() == 5


def test_a_group_and_a_subscription_of_one_name_are_one_cursor() -> None:
    desk = Desk()
    desk.append(*[1] * 9)
    commit(desk, 3, "mine")
    consumer, got = desk.subscribe(EXCLUSIVE, permits=2)
    assert got.take() == [3, 4]
    assert desk.offsets.of_group("s")[desk.topic.id, 0].note == "mine"
    consumer.acknowledge([(4, None)])
    commit(desk, 4)
    assert desk.subscription().position == 5
    assert desk.stored() == 5
    commit(desk, 7, "ahead")
    consumer.flow(1)
    desk.run()
    assert got.take() == [7]
    commit(desk, 1)
    consumer.flow(2)
    desk.run()
    assert got.take() == [1, 2]


def test_a_group_that_goes_back_takes_shared_consumers_with_it() -> None:
    desk = Desk()
    desk.append(*[1] * 4)
    consumer, got = desk.subscribe(SHARED, permits=10)
    consumer.acknowledge([(0, None), (2, None)])
    got.take()
    commit(desk, 0)
    assert got.take() == [0, 1, 2, 3]
    commit(desk, 2)
    assert consumer.stats().unacknowledged == 2


def test_a_commit_keeps_a_subscription_that_nobody_uses_one() -> None:
    desk = Desk()
    desk.append(*[1] * 9)
    place = desk.topic.id, 0
    stored = CommittedOffset(2, -1, "", 0, b"ranges", subscription=True)
    desk.wait(desk.offsets.put_cursor("s", place, stored))
    commit(desk, 2)
    assert desk.offsets.of_group("s")[place].acknowledged == b"ranges"
    commit(desk, 4)
    assert desk.offsets.of_group("s")[place] == replace(
        stored, offset=4, acknowledged=b"", committed_ms=desk.runtime.now_ms()
    )
    assert desk.offsets.expired("s", desk.runtime.now_ms() + 1) == []


def test_damaged_ranges_cost_only_themselves() -> None:
    desk = Desk()
    desk.append(*[1] * 5)
    stored = CommittedOffset(2, -1, "", 0, b"\x01\x01damaged", subscription=True)
    desk.wait(desk.offsets.put_cursor("s", (desk.topic.id, 0), stored))
    _, got = desk.subscribe(EXCLUSIVE, permits=10)
    assert got.take() == [2, 3, 4]


def test_a_position_behind_the_end_of_the_log_does_not_pass_over_what_comes() -> None:
    desk = Desk()
    desk.append(1, 1)
    stored = CommittedOffset(9, -1, "", 0, subscription=True)
    desk.wait(desk.offsets.put_cursor("s", (desk.topic.id, 0), stored))
    _, got = desk.subscribe(EXCLUSIVE, permits=10)
    desk.append(1)
    desk.run()
    assert got.take() == [2]


@pytest.mark.parametrize("places", [True, False])
def test_a_group_that_is_deleted_ends_its_subscription(places: bool) -> None:
    desk = Desk()
    _, got = desk.subscribe(EXCLUSIVE, permits=10)
    place = desk.topic.id, 0
    deleted = desk.offsets.delete("s", [place]) if places else desk.offsets.delete_group("s")
    desk.wait(deleted)
    assert got.reasons == [CloseReason.UNSUBSCRIBED]
    assert desk.subscriptions.names(desk.topic, 0) == []
    assert desk.subscriptions.hold_offset(*place) is None


def test_many_ranges_are_written_less_often() -> None:
    desk = Desk(settings=SubscriptionSettings(persist_interval_ms=1))
    _, _ = desk.subscribe(EXCLUSIVE)
    cursor = desk.subscription().cursor
    for n in range(50_000):
        cursor.acknowledge(1000 * n + 1, 1000 * n + 2)
    desk.pass_ms(2)
    stored = desk.offsets.of_group("s")[desk.topic.id, 0]
    assert 100_000 < len(stored.acknowledged) < 200_000
    cursor.acknowledge(3, 4)
    desk.pass_ms(10)
    assert desk.offsets.of_group("s")[desk.topic.id, 0] is stored
    desk.pass_ms(40)
    assert desk.offsets.of_group("s")[desk.topic.id, 0] is not stored


def test_what_a_sender_says_of_a_frame_takes_its_time_by_what_was_said() -> None:
    assert list(acknowledged_runs(100, 10**9, 0b101)) == [(101, 102), (103, 100 + 10**9)]
    assert list(acknowledged_runs(100, 4, 0b11110)) == [(100, 101)]
    assert list(acknowledged_runs(100, 4, 0)) == [(100, 104)]
    assert list(acknowledged_runs(100, 4, None)) == [(100, 104)]


def test_a_large_frame_is_looked_at_by_its_ranges() -> None:
    desk = Desk()
    desk.append(10, 10)
    consumer, _ = desk.subscribe(SHARED, permits=100)
    cursor = desk.subscription().cursor
    assert (cursor.is_acknowledged(0, 10), cursor.count_wanted(0, 10)) == (False, 10)
    assert cursor.unacknowledged(0, 10) is None
    consumer.acknowledge([(0, 0b1100), (10, 0b1)])
    assert (cursor.is_acknowledged(0, 10), cursor.count_wanted(0, 10)) == (False, 2)
    assert (cursor.is_acknowledged(11, 9), cursor.unacknowledged(11, 9), cursor.count_wanted(10, 10)) == (True, 0, 1)
    consumer.acknowledge([(0, None)])
    assert (cursor.is_acknowledged(0, 10), cursor.unacknowledged(0, 10), cursor.count_wanted(0, 10)) == (True, 0, 0)
    assert consumer.unacknowledged == 1
