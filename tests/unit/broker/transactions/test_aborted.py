"""The offsets of aborted transactions: who does not see them, for how long, and in how many documents."""

from pathlib import Path

from millstream.broker.transactions.partition import PartitionTransactions
from tests.unit.broker.transactions.bank import Bank


def test_what_is_shown_is_aborted_for_readers_of_what_is_committed_only() -> None:
    bank = Bank()
    for _ in range(10):
        bank.append()
    found = PartitionTransactions(bank.partition())
    found.wrote(1, 2, 4, shown=True)
    found.wrote(2, 5, 6)
    assert (found.stable_offset, found.uncommitted_offset) == (2, 5)
    found.end(1, commit=False)
    assert (found.stable_offset, found.uncommitted_offset) == (5, 5)
    found.end(2, commit=False)
    assert (found.stable_offset, found.uncommitted_offset) == (10, 10)
    assert [n for n in range(10) if found.is_aborted(n)] == [2, 3, 5]
    assert [n for n in range(10) if found.is_withheld(n)] == [5]
    assert [found.has_aborted(*span) for span in ((0, 2), (0, 3), (3, 4), (4, 5), (6, 10))] == [
        False,
        True,
        True,
        False,
        False,
    ]
    found.forget_before(4)
    assert [n for n in range(10) if found.is_aborted(n)] == [5]


def test_many_documents_become_one(tmp_path: Path) -> None:
    bank = Bank(str(tmp_path / "metadata"))
    for n in range(300):
        number = bank.begin(0)
        bank.write(number)
        bank.end(number, commit=n % 3 == 0)
    documents = bank.broker.broker.documents.of_kind("transaction-aborted")
    bank.run()
    assert len(documents) == 200
    for _ in range(100):
        number = bank.begin(0)
        bank.write(number)
        bank.end(number, commit=False)
    bank.run()
    assert len(documents) == 300 - 256 + 1
    before = bank.readable()
    assert len(before) == 100
    bank.kill()
    assert bank.readable() == before


def test_a_damaged_document_is_told_and_the_others_count() -> None:
    bank = Bank()
    number = bank.begin(0)
    bank.write(number)
    bank.append()
    bank.end(number, commit=False)
    documents = bank.broker.broker.documents
    [key] = documents.of_kind("transaction-aborted")
    bank.broker.wait(documents.put("transaction-aborted", key, {"position": 0, "ranges": "AAAA"}))
    bank.transactions.expire()
    assert bank.readable() == [1]
