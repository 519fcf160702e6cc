"""What the driver does when all tasks of a batch are done: it publishes the batch, once.

Every task has written its rows in a transaction of its own, whose commit makes them visible. Between the first
commit and the last anything may die. So the driver first writes the intent into the ledger, with all transactions of
the batch; from then on the batch is to be published, by whoever finds the intent; then it commits them; then it
writes that the batch is done. When Spark runs a batch again,

- done: its tasks and its driver do nothing;
- there is an intent: each task commits what its former self has written. A part that has been lost meanwhile (the
  broker aborts transactions that are open for too long) is written again, if it is the same, and the driver commits
  that one in its place;
- there is neither: nothing of it is visible, and what is open is aborted when its slot is used again.
"""

from collections.abc import Sequence

from millstream.spark.errors import BrokerUnreachable, PublicationLost, TransactionLost, WriteRefused
from millstream.spark.write.cluster import Cluster
from millstream.spark.write.ledger import Entry, Ledger, Part, Place, State
from millstream.spark.write.options import Delivery, WriteOptions
from millstream.spark.write.task import Job, Written, check_query, remedy
from millstream.spark.write.transactions import WHY_LOST, Ended, Transactions

__all__ = ["publish", "withdraw"]


def publish(options: WriteOptions, written: Sequence[Written]) -> None:
    """Publish what the tasks of one batch have written.

    Args:
        options: how.
        written: what each task has done; all of one job.

    Raises:
        TransactionLost: the broker had dropped transactions; nothing was published.
        PublicationLost: the same, and some was published.
        WriteRefused, BrokerUnreachable: the broker does not do as it is told. It may have begun to.
    """
    if not written or options.delivery is Delivery.AT_LEAST_ONCE:
        return
    job = written[0].job
    with Cluster(options) as cluster:
        transactions = cluster.transactions(job.application_id)
        oldest_first = sorted((one for one in written if one.part is not None), key=lambda one: one.begun_ms)
        parts = [one.part for one in oldest_first if one.part is not None]
        if job.batch_id is None:
            _commit(transactions, parts, job, may_have_begun=False)
        else:
            ends: dict[Place, int] = {}
            for one in oldest_first:
                for place, end in one.ends.items():
                    ends[place] = max(ends.get(place, 0), end)
            _publish_once(cluster.ledger(job.application_id), transactions, job, job.batch_id, parts, ends)
        _sweep(transactions, options)


def withdraw(options: WriteOptions, written: Sequence[Written]) -> None:
    """Drop what the tasks of one batch have written, unless its publication has been decided on.

    Args:
        options: how.
        written: what those tasks have done that were done; perhaps none.

    Raises:
        WriteRefused, BrokerUnreachable: the broker does not do as it is told; it drops them at their timeout.
    """
    if not written or options.delivery is Delivery.AT_LEAST_ONCE:
        return
    job = written[0].job
    with Cluster(options) as cluster:
        transactions = cluster.transactions(job.application_id)
        kept: set[Part] = set()
        if job.batch_id is not None:
            entry = cluster.ledger(job.application_id).read()
            # Those of an intent are to be committed, whichever batch it is of.
            kept = set(entry.parts) if entry is not None else set()
        _abort(transactions, [one.part for one in written if one.part is not None and one.part not in kept])
        if not kept:
            _sweep(transactions, options)


def _publish_once(
    ledger: Ledger,
    transactions: Transactions,
    job: Job,
    batch_id: int,
    parts: list[Part],
    ends: dict[Place, int],
) -> None:
    entry = ledger.read()
    check_query(entry, job)
    if entry is not None and entry.covers(batch_id):
        _abort(transactions, parts)
        if entry.parts:
            # A later batch has been decided on, and its query put back to an earlier one.
            _finish(ledger, transactions, job, entry, list(entry.parts), {})
        return
    begun = entry.parts if entry is not None and entry.intends(batch_id) else ()
    if not begun and not parts:
        return
    if entry is not None and begun:
        place, offset = entry.place, entry.offset
        all_parts = _merged(begun, parts, job)
    else:
        place = min(ends)
        offset, all_parts = ends[place], parts
    in_order = tuple(sorted(all_parts, key=lambda part: part.transaction.slot))
    intent = Entry(State.INTENT, batch_id, job.query_id, place, offset, in_order)
    if in_order != begun:
        ledger.write(intent, ends)
    _finish(ledger, transactions, job, intent, all_parts, ends, may_have_begun=bool(begun))


def _finish(
    ledger: Ledger,
    transactions: Transactions,
    job: Job,
    intent: Entry,
    parts: list[Part],
    ends: dict[Place, int],
    *,
    may_have_begun: bool = True,
) -> None:
    """Commit the transactions of an intent, and note that it is done."""
    try:
        _commit(transactions, parts, job, may_have_begun=may_have_begun)
    except TransactionLost:
        # Nothing of it is visible, and nothing is to be: an intent without parts is none.
        ledger.write(Entry(State.INTENT, intent.batch_id, job.query_id, intent.place, intent.offset), ends)
        raise
    ledger.write(Entry(State.DONE, intent.batch_id, job.query_id, intent.place, intent.offset), ends)


def _commit(transactions: Transactions, parts: list[Part], job: Job, *, may_have_begun: bool) -> None:
    """Commit all transactions; if the first, which is the oldest, has been lost, none.

    Raises:
        TransactionLost: none is committed.
        PublicationLost: some are.
    """
    if not parts:
        return
    what = "the table" if job.batch_id is None else f"batch {job.batch_id}"
    first = transactions.end(parts[0].transaction, commit=True)
    if first is not Ended.AS_ASKED and not may_have_begun:
        _abort(transactions, parts[1:])
        raise TransactionLost(
            f"nothing of {what} was published: a transaction has ended before its commit; {WHY_LOST}"
        )
    results = [first, *transactions.end_all([part.transaction for part in parts[1:]], commit=True)]
    lost = [part for part, ended in zip(parts, results, strict=True) if ended is not Ended.AS_ASKED]
    if not lost:
        return
    rows = sum(part.rows for part in lost)
    if job.batch_id is None:
        advice = f"{WHY_LOST}; look which rows are in the topic, and write the others again"
    else:
        advice = (
            f"{WHY_LOST}; run it again: what is missing is written once more if it is the same. Where it is not, "
            f"{remedy(job)}"
        )
    raise PublicationLost(
        f"{what} was published in part: {len(lost)} of {len(parts)} transactions ({rows} rows) are lost; {advice}"
    )


def _merged(begun: Sequence[Part], new: Sequence[Part], job: Job) -> list[Part]:
    """The parts of an intent, with those that were lost replaced by what their tasks have written again.

    Raises:
        PublicationLost: what was written again is not the same, so that rows could be twice in the topic or nowhere.
    """
    again = {part.transaction.slot.partition: part for part in new}
    merged = []
    for part in begun:
        other = again.pop(part.transaction.slot.partition, part)
        if (other.rows, other.digest) != (part.rows, part.digest):
            raise PublicationLost(
                f"batch {job.batch_id} was published in part, and brings other rows now that it runs again "
                f"({other.rows} in place of {part.rows} in task {part.transaction.slot.partition}); {remedy(job)}"
            )
        merged.append(other)
    return merged


def _abort(transactions: Transactions, parts: Sequence[Part]) -> None:
    transactions.end_all([part.transaction for part in parts], commit=False)


def _sweep(transactions: Transactions, options: WriteOptions) -> None:
    try:
        transactions.sweep(options.transaction_timeout_ms)
    except (BrokerUnreachable, WriteRefused):
        # The batch is what it is to be. What killed attempts have left is dropped at its timeout as well.
        return
