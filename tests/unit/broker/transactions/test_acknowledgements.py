"""Acknowledgements in transactions: pending, conflicts, and what becomes of them."""

from pathlib import Path

import pytest

from millstream.broker.subscriptions import AcknowledgementConflict, KindMismatch, SubscriptionKind
from millstream.broker.transactions import InvalidTransactionState
from tests.unit.broker.transactions.bank import Bank

SHARED, KEY_SHARED = SubscriptionKind.SHARED, SubscriptionKind.KEY_SHARED
EXCLUSIVE, FAILOVER = SubscriptionKind.EXCLUSIVE, SubscriptionKind.FAILOVER
ALL = [EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED]


def opened(kind: SubscriptionKind, *counts: int, database: str = "") -> Bank:
    bank = Bank(database)
    for count in counts:
        bank.append(count)
    bank.subscribe(kind)
    return bank


@pytest.mark.parametrize("kind", ALL)
def test_committed_acknowledgements_count_and_aborted_ones_come_again(kind: SubscriptionKind) -> None:
    bank = Bank()
    for _ in range(4):
        bank.append()
    consumer, receiver = bank.subscribe(kind)
    assert receiver.take() == [0, 1, 2, 3]
    number = bank.begin(subscription="s")
    bank.acknowledge(number, 0, 1)
    assert bank.subscription().position == 0
    consumer.redeliver(None)
    bank.run()
    assert receiver.take() == [2, 3], "what is pending is delivered to nobody"
    bank.end(number, commit=False)
    assert set(receiver.take()) >= {0, 1}
    again = bank.begin(subscription="s")
    bank.acknowledge(again, 0, 1)
    bank.end(again, commit=True)
    assert bank.subscription().position == 2
    assert bank.subscription().stats().unacknowledged == 2
    consumer.acknowledge([(2, None), (3, None)])
    assert bank.subscription().stats().unacknowledged == 0
    assert consumer.unacknowledged == 0


@pytest.mark.parametrize("kind", ALL)
def test_what_is_pending_goes_to_no_other_consumer(kind: SubscriptionKind) -> None:
    bank = Bank()
    bank.append()
    bank.append()
    consumer, _ = bank.subscribe(kind)
    number = bank.begin(subscription="s")
    bank.acknowledge(number, 0)
    consumer.close()
    _, receiver = bank.subscribe(kind)
    assert receiver.take() == [1]
    bank.end(number, commit=False)
    assert 0 in receiver.take()


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, KEY_SHARED])
def test_messages_of_a_batch(kind: SubscriptionKind) -> None:
    bank = Bank()
    bank.append(4)
    consumer, receiver = bank.subscribe(kind)
    receiver.take()
    number, other = bank.begin(subscription="s"), bank.begin(subscription="s")
    bank.acknowledge(number, (0, 0b1100))
    bank.acknowledge(other, (0, 0b0011))
    consumer.redeliver(None)
    bank.run()
    assert receiver.take() == []
    bank.end(number, commit=True)
    assert bank.subscription().position == 2
    bank.end(other, commit=False)
    assert [one.wanted for one in receiver.deliveries] == [0b1100]
    assert bank.subscription().stats().unacknowledged == 2
    consumer.acknowledge([(0, None)])
    assert bank.subscription().stats().unacknowledged == 0
    assert bank.subscription().position == 4


def test_a_part_of_a_frame_that_is_held_comes_again_when_aborted() -> None:
    bank = Bank()
    bank.append(4)
    consumer, receiver = bank.subscribe(SHARED)
    receiver.take()
    number = bank.begin(subscription="s")
    bank.acknowledge(number, (0, 0b1110))
    assert consumer.unacknowledged == 3
    bank.end(number, commit=False)
    assert receiver.take_counts() == [(0, 1)]
    assert consumer.unacknowledged == 4
    consumer.acknowledge([(0, None)])
    assert (consumer.unacknowledged, bank.subscription().position) == (0, 4)


def test_a_plain_acknowledgement_of_what_is_pending_counts_at_once() -> None:
    bank = opened(SHARED, 1, 1)
    consumer = bank.subscription().consumers[0]
    number = bank.begin(subscription="s")
    bank.acknowledge(number, 0)
    consumer.acknowledge([(0, None)])
    assert bank.subscription().position == 1
    assert consumer.unacknowledged == 1
    bank.end(number, commit=False)
    assert bank.subscription().position == 1
    assert consumer.unacknowledged == 1


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED])
def test_conflicts(kind: SubscriptionKind) -> None:
    bank = opened(kind, 1, 2, 1)
    number, other = bank.begin(subscription="s"), bank.begin(subscription="s")
    bank.subscription().consumers[0].acknowledge([(0, None)])
    bank.acknowledge(number, 1)
    bank.acknowledge(number, 1)  # the same again is the same
    for taken in (0, 1):
        with pytest.raises(AcknowledgementConflict):
            bank.acknowledge(other, taken)
    with pytest.raises(AcknowledgementConflict):
        bank.acknowledge(other, 3, (1, 0b01))
    bank.acknowledge(number, 3)  # nothing of a refused command was kept
    bank.end(number, commit=True)
    with pytest.raises(AcknowledgementConflict):
        bank.acknowledge(other, 3)


def test_cumulative() -> None:
    bank = opened(EXCLUSIVE, 1, 3, 1)
    subscription = bank.subscription()
    number, other = bank.begin(subscription="s"), bank.begin(subscription="s")
    bank.broker.wait(bank.transactions.acknowledge_cumulative(number, subscription, 1, 0b100))
    with pytest.raises(AcknowledgementConflict):
        bank.transactions.acknowledge_cumulative(other, subscription, 4, None)
    bank.end(number, commit=True)
    assert subscription.position == 3
    bank.broker.wait(bank.transactions.acknowledge_cumulative(other, subscription, 4, None))
    bank.end(other, commit=False)
    assert subscription.position == 3
    late = bank.begin(subscription="s")
    with pytest.raises(AcknowledgementConflict):
        bank.transactions.acknowledge_cumulative(late, subscription, 0, None)
    shared = opened(SHARED, 1)
    number = shared.begin(subscription="s")
    with pytest.raises(KindMismatch):
        shared.transactions.acknowledge_cumulative(number, shared.subscription(), 0, None)


def test_a_subscription_has_to_be_added_first() -> None:
    bank = opened(EXCLUSIVE, 1)
    with pytest.raises(InvalidTransactionState):
        bank.acknowledge(bank.begin(), 0)


def test_many_acknowledgements_share_their_writes() -> None:
    bank = opened(SHARED, *[1] * 200)
    number = bank.begin(subscription="s")
    subscription = bank.subscription()
    pendings = [bank.transactions.acknowledge(number, subscription, [(offset, None)]) for offset in range(0, 200, 2)]
    assert len(set(map(id, pendings))) == 2, "one write is under way, and one waits for it"
    bank.run()
    for pending in pendings:
        pending.result()
    bank.end(number, commit=True)
    assert len(subscription.cursor.acknowledged) == 99


# What survives a crash


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("commit", [True, False])
def test_pending_acknowledgements_survive(tmp_path: Path, kind: SubscriptionKind, commit: bool) -> None:
    bank = opened(kind, 1, 2, 1, database=str(tmp_path / "metadata"))
    number = bank.begin(subscription="s")
    bank.acknowledge(number, 0, (1, 0b10))
    bank.kill()
    _, receiver = bank.subscribe(kind)
    assert receiver.take() == [1, 3]
    bank.end(number, commit=commit)
    if commit:
        assert bank.subscription().position == 2
    else:
        assert {0, 1} <= set(receiver.take())
    bank.kill()
    _, receiver = bank.subscribe(kind)
    assert receiver.take() == ([1, 3] if commit else [0, 1, 3])


def test_a_commit_that_was_answered_is_finished_at_the_next_start(tmp_path: Path) -> None:
    bank = opened(SHARED, 1, 1, database=str(tmp_path / "metadata"))
    number = bank.begin(subscription="s")
    bank.acknowledge(number, 0)
    pending = bank.transactions.end(number, commit=True)
    while not pending.done:
        bank.broker.runtime.step()
    bank.kill()
    assert bank.subscription().position == 1
    _, receiver = bank.subscribe(SHARED)
    assert receiver.take() == [1]
    bank.kill()
    assert bank.subscription().position == 1
    assert len(bank.broker.broker.documents.of_kind("transaction-acknowledgements")) == 0


def test_a_subscription_that_was_ended_meanwhile(tmp_path: Path) -> None:
    bank = opened(EXCLUSIVE, 1, database=str(tmp_path / "metadata"))
    number = bank.begin(subscription="s")
    bank.acknowledge(number, 0)
    bank.broker.wait(bank.subscription().unsubscribe())
    bank.kill()
    bank.end(number, commit=True)
    _, receiver = bank.subscribe()
    assert receiver.take() == [0]
