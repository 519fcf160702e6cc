"""The coordinator: what is hidden and when, what survives a crash, and what is refused."""

from pathlib import Path

import pytest

from millstream.broker.transactions import (
    InvalidTransactionState,
    InvalidTransactionTimeout,
    NotInTransaction,
    TransactionNotFound,
    TransactionsDisabled,
    TransactionState,
)
from millstream.model.frame import read_frame_header, transaction_fields, transaction_of
from millstream.storage.metadata import MetadataFailed
from tests.unit.broker.simulated_broker import SimulatedBroker
from tests.unit.broker.transactions.bank import Bank, transactional


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "metadata")


@pytest.mark.parametrize("number", [0, 1, 2**31 - 1, 2**31, 2**46 - 1])
def test_a_frame_names_its_transaction(number: int) -> None:
    frame = transactional(number)
    assert transaction_of(read_frame_header(frame)) == number
    epoch, sequence = transaction_fields(number)
    assert 0 <= epoch < 2**15
    assert 0 <= sequence < 2**31


def test_committed_records_show_and_aborted_ones_never() -> None:
    bank = Bank()
    plain = bank.append()
    number, other = bank.begin(0), bank.begin(0)
    first, second = bank.write(number), bank.write(other, 3)
    behind = bank.append()
    assert bank.readable() == [plain]
    assert bank.partition().stable_offset == first
    bank.end(number, commit=True)
    assert bank.readable() == [plain, first]
    assert bank.partition().stable_offset == second
    bank.end(other, commit=False)
    assert bank.readable() == [plain, first, behind]
    assert bank.partition().stable_offset == bank.partition().log.end_offset


def test_a_transaction_over_partitions_ends_everywhere_at_once() -> None:
    bank = Bank()
    number = bank.begin(0, 1)
    bank.write(number, index=0)
    bank.write(number, index=1)
    assert (bank.readable(0), bank.readable(1)) == ([], [])
    bank.end(number, commit=True)
    assert (bank.readable(0), bank.readable(1)) == ([0], [0])


def test_consumers_wait_for_the_decision_and_skip_what_was_aborted() -> None:
    bank = Bank()
    _, receiver = bank.subscribe()
    number, other = bank.begin(0), bank.begin(0)
    bank.write(number)
    bank.write(other)
    bank.append()
    bank.run()
    assert receiver.take() == []
    bank.end(number, commit=False)
    assert receiver.take() == []
    bank.end(other, commit=True)
    assert receiver.take() == [1, 2]
    assert bank.subscription().position == 1, "what was aborted needs no acknowledgement"


def test_it_is_aborted_when_its_time_is_over() -> None:
    bank = Bank()
    number = bank.begin(0, timeout_ms=5000)
    bank.write(number)
    bank.append()
    bank.broker.pass_ms(4999)
    assert bank.readable() == []
    bank.broker.pass_ms(2)
    assert bank.readable() == [1]
    assert bank.transactions.find(number).state is TransactionState.ABORTED
    with pytest.raises(InvalidTransactionState, match="aborted"):
        bank.transactions.end(number, commit=True)
    with pytest.raises(InvalidTransactionState):
        bank.write(number)


def test_the_same_end_twice_is_answered_twice() -> None:
    bank = Bank()
    number = bank.begin(0)
    pendings = [bank.transactions.end(number, commit=True) for _ in range(2)]
    bank.run()
    for pending in pendings:
        pending.result()
    bank.end(number, commit=True)
    with pytest.raises(InvalidTransactionState):
        bank.transactions.end(number, commit=False)
    with pytest.raises(InvalidTransactionState):
        bank.transactions.add_partitions(number, [(bank.broker.topic(), 1)])


def test_what_is_refused() -> None:
    bank = Bank()
    number = bank.begin(1)
    with pytest.raises(InvalidTransactionState, match="not added"):
        bank.write(number, index=0)
    with pytest.raises(TransactionNotFound):
        bank.transactions.end(number + 1, commit=True)
    for timeout_ms in (0, -1, 24 * 3600 * 1000 + 1):
        with pytest.raises(InvalidTransactionTimeout):
            bank.transactions.begin(timeout_ms)
    off = SimulatedBroker(pulsar__transactions__enable="false")
    with pytest.raises(TransactionsDisabled):
        off.broker.transactions.begin(1000)


def test_nothing_is_written_before_that_a_partition_was_added_lasts() -> None:
    bank = Bank()
    number = bank.begin()
    topic = bank.broker.topic()
    adding = [bank.transactions.add_partitions(number, [(topic, 0)]) for _ in range(2)]
    with pytest.raises(NotInTransaction):
        bank.write(number)
    bank.run()
    assert [one.result() for one in adding] == [None, None]
    bank.write(number)


def test_a_partition_that_could_not_be_added_was_not() -> None:
    bank = Bank()
    number = bank.begin()
    bank.broker.store.failing = True
    with pytest.raises(MetadataFailed):
        bank.broker.wait(bank.transactions.add_partitions(number, [(bank.broker.topic(), 0)]))
    bank.broker.store.failing = False
    with pytest.raises(NotInTransaction):
        bank.write(number)


def test_a_transaction_of_a_producer_is_not_ended_by_its_number() -> None:
    bank = Bank()
    producers = bank.broker.broker.transactional_producers
    identity = bank.broker.wait(producers.open("p", 60_000))
    bank.broker.wait(producers.add_partitions("p", identity, [(bank.broker.topic(), 0)]))
    [transaction] = bank.transactions.open
    with pytest.raises(TransactionNotFound):
        bank.transactions.end(transaction.number, commit=True)
    with pytest.raises(TransactionNotFound):
        bank.transactions.check_writer(transaction.number, bank.broker.topic(), 0)


def test_a_decision_that_cannot_be_stored_is_none() -> None:
    bank = Bank()
    number = bank.begin(0)
    bank.write(number)
    bank.broker.store.failing = True
    with pytest.raises(MetadataFailed):
        bank.end(number, commit=True)
    assert bank.transactions.find(number).state is TransactionState.OPEN
    assert bank.readable() == []
    bank.broker.store.failing = False
    bank.end(number, commit=False)
    assert bank.readable() == []
    assert bank.partition().stable_offset == 1


def test_a_begin_that_cannot_be_stored_is_none() -> None:
    bank = Bank()
    bank.begin()
    bank.broker.store.failing = True
    pending = bank.transactions.begin(1000)
    with pytest.raises(MetadataFailed):
        bank.broker.wait(pending)
    assert len(bank.transactions.open) == 1


def test_a_timeout_that_cannot_be_stored_is_tried_again() -> None:
    bank = Bank()
    number = bank.begin(0, timeout_ms=1000)
    bank.broker.store.failing = True
    bank.broker.pass_ms(5000)
    assert not bank.transactions.find(number).state.is_decided
    bank.broker.store.failing = False
    bank.broker.pass_ms(2000)
    assert bank.transactions.find(number).state is TransactionState.ABORTED


# What survives a crash


def test_an_open_transaction_goes_on_after_a_crash(database: str) -> None:
    bank = Bank(database)
    bank.append()
    number = bank.begin(0, 1)
    first = bank.write(number, 2)
    behind = bank.append()
    bank.write(number, index=1)
    bank.kill()
    assert bank.partition().stable_offset == first
    assert bank.readable(1) == []
    more = bank.write(number)
    bank.kill()
    bank.end(number, commit=True)
    assert bank.readable() == [0, first, behind, more]
    assert bank.readable(1) == [0]


def test_an_open_transaction_is_aborted_in_time_after_a_crash(database: str) -> None:
    bank = Bank(database)
    number = bank.begin(0, timeout_ms=3000)
    bank.write(number)
    bank.append()
    bank.kill()
    bank.broker.pass_ms(1500)
    assert bank.readable() == []
    bank.broker.pass_ms(2000)
    assert bank.readable() == [1]
    bank.kill()
    assert bank.readable() == [1]


@pytest.mark.parametrize("commit", [True, False])
def test_a_decision_that_was_answered_survives(database: str, commit: bool) -> None:
    bank = Bank(database)
    number = bank.begin(0)
    bank.write(number, 2)
    bank.append()
    pending = bank.transactions.end(number, commit=commit)
    while not pending.done:  # not a step further: what follows from the decision is not stored yet
        bank.broker.runtime.step()
    pending.result()
    bank.kill()
    assert bank.readable() == ([0, 2] if commit else [2])
    bank.end(number, commit=commit)
    bank.kill()
    assert bank.readable() == ([0, 2] if commit else [2])


def test_numbers_are_never_given_out_again(database: str) -> None:
    bank = Bank(database)
    seen = [bank.begin() for _ in range(3)]
    for number in seen:
        bank.end(number, commit=True)
    bank.kill()
    assert bank.begin() > max(seen)


def test_ended_transactions_are_forgotten_after_a_while(database: str) -> None:
    bank = Bank(database)
    committed, aborted = bank.begin(0), bank.begin(0)
    bank.write(aborted)
    bank.write(committed)
    bank.end(committed, commit=True)
    bank.end(aborted, commit=False)
    bank.broker.pass_ms(16 * 60 * 1000)
    bank.transactions.expire()
    bank.run()
    with pytest.raises(TransactionNotFound):
        bank.transactions.find(committed)
    documents = bank.broker.broker.documents
    assert len(documents.of_kind("transaction")) == 0
    bank.kill()
    assert bank.readable() == [1], "what was aborted is remembered longer than the transaction"
    bank.broker.wait(bank.broker.broker.delete_records(bank.partition(), 2))
    bank.transactions.expire()
    bank.run()
    assert len(bank.broker.broker.documents.of_kind("transaction-aborted")) == 0


def test_a_topic_that_is_deleted_takes_its_part_along(database: str) -> None:
    bank = Bank(database)
    number, other = bank.begin(0), bank.begin(0)
    bank.write(number)
    bank.write(other)
    bank.end(other, commit=False)
    bank.broker.wait(bank.broker.broker.delete_topic(bank.broker.topic()))
    assert len(bank.broker.broker.documents.of_kind("transaction-aborted")) == 0
    bank.kill()
    bank.end(number, commit=True)


def test_a_clean_restart(database: str) -> None:
    bank = Bank(database)
    number = bank.begin(0)
    bank.write(number)
    bank.broker.restart()
    assert bank.readable() == []
    bank.end(number, commit=True)
    assert bank.readable() == [0]
