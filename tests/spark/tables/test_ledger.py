"""Which micro-batches are new."""

import pytest

from millstream.spark.errors import StaleBatch
from millstream.spark.tables.ledger import Batch, is_committed


def test_a_query_under_its_own_id() -> None:
    ledger: dict[str, int] = {}
    for number in (0, 1, 4):  # micro-batches without rows leave no trace
        batch = Batch("query", number, "query")
        assert not is_committed(batch, ledger.get)
        ledger.update(batch.entries())
        assert is_committed(batch, ledger.get)
    assert ledger == {"query": 4}
    with pytest.raises(StaleBatch, match=r"batch 3 .* though the table holds batch 4: the checkpoint is older"):
        is_committed(Batch("query", 3, "query"), ledger.get)
    assert not is_committed(Batch("other", 0, "other"), ledger.get)
    assert not is_committed(None, ledger.get)


def test_an_application_id_that_was_given() -> None:
    batch = Batch("nightly", 0, "query")
    ledger = batch.entries()
    assert is_committed(batch, ledger.get)
    assert not is_committed(Batch("nightly", 1, "query"), ledger.get)
    # The same number from a checkpoint made anew holds other rows: to take it for a repetition would lose them.
    for number in (0, 1):
        with pytest.raises(StaleBatch, match="'nightly' from another checkpoint; give the option applicationId"):
            is_committed(Batch("nightly", number, "another"), ledger.get)
