"""What one task does: its rows go to the brokers, in a transaction that it leaves to the driver to commit."""

import shlex
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from millstream.spark.errors import PublicationLost, SparkSourceError
from millstream.spark.write.batches import BatchMaker, ProducerIdentity
from millstream.spark.write.cluster import Cluster
from millstream.spark.write.columns import rows_of
from millstream.spark.write.ledger import Entry, Part, Place, group_of
from millstream.spark.write.options import Delivery, WriteOptions
from millstream.spark.write.partitioners import Spreading
from millstream.spark.write.producer import Producer
from millstream.spark.write.transactions import Ended, Slot, Transaction, Transactions

__all__ = ["Job", "Written", "check_query", "write_rows"]

_BLOCK_BYTES: Final = 16 * 1024 * 1024
"""About how much is encoded at once: enough for a full batch of each of many partitions, and little memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a task is part of.

    Args:
        application_id: under which transactions, and the ledger, stand.
        query_id: of the streaming query; None for a table that is written by itself.
        batch_id: the number of the batch in the ledger; None if there is no ledger.
    """

    application_id: str
    query_id: str | None
    batch_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a task has done.

    Args:
        job: what it was part of.
        part: what it has written in a transaction; None if nothing.
        begun_ms: when the transaction was begun, in ms since 1970.
        ends: the offsets behind what was written, by partition.
    """

    job: Job
    part: Part | None = None
    begun_ms: int = 0
    ends: dict[Place, int] = field(default_factory=dict)


def write_rows(options: WriteOptions, job: Job, slot: Slot, batches: Iterable[Any]) -> Written:
    """Write the rows of one task.

    Args:
        options: how.
        job: what the task is part of.
        slot: the task and its attempt.
        batches: its rows, as Arrow record batches.

    Raises:
        SparkSourceError: they cannot be written. The transaction has been aborted.
    """
    with Cluster(options) as cluster:
        if options.delivery is Delivery.EXACTLY_ONCE and job.batch_id is not None:
            entry = cluster.ledger(job.application_id).read()
            if _is_published(cluster.transactions(job.application_id), entry, job, job.batch_id, slot):
                # Spark wants all of its rows to be taken, also by who does not need them.
                for _ in batches:
                    pass
                return Written(job=job)
        return _Task(cluster, options, job, slot).write(batches)


def _is_published(transactions: Transactions, entry: Entry | None, job: Job, batch_id: int, slot: Slot) -> bool:
    """Whether what a task is to write has been published, or is being so by an earlier run of the same batch.

    A part of an earlier run that has been decided on, and has been lost since, is to be written again.
    """
    check_query(entry, job)
    if entry is None:
        return False
    if entry.covers(batch_id):
        return True
    if not entry.intends(batch_id):
        if entry.parts:
            raise PublicationLost(
                f"batch {entry.batch_id} is to be published and is not finished, and this is batch {batch_id}: run "
                f"batch {entry.batch_id} first, under the same applicationId and with the same checkpoint"
            )
        return False
    part = entry.part_of(slot.partition)
    if part is None:
        # Its rows, if there are any, are in the parts of others; unless there are none at all.
        return bool(entry.parts)
    ended = transactions.end(part.transaction, commit=True)
    if ended is Ended.FORGOTTEN:
        raise PublicationLost(
            f"the broker has forgotten a transaction of batch {batch_id}, which an earlier run left to be committed: "
            f"whether it was is not known; {remedy(job)}"
        )
    return ended is Ended.AS_ASKED


def check_query(entry: Entry | None, job: Job) -> None:
    """Check that the ledger is of the same query: one with another checkpoint numbers its batches anew.

    Raises:
        PublicationLost: it is not, so that rows would be taken for published that are not.
    """
    if entry is not None and entry.query_id != job.query_id:
        raise PublicationLost(
            f"the applicationId {job.application_id!r} is that of another query (its checkpoint was "
            f"{entry.query_id or 'none'}, this one is {job.query_id or 'none'}), whose batch {entry.batch_id} is "
            "published: take another applicationId, or delete the group to publish all batches of this query "
            f"({_deletion(job)})"
        )


def remedy(job: Job) -> str:
    """What a human may do when a batch is published in part."""
    return (
        "look which rows are in the topic; then delete the group to publish the whole batch (once more) "
        f"({_deletion(job)})"
    )


def _deletion(job: Job) -> str:
    return f"millstream group delete {shlex.quote(group_of(job.application_id))}"


class _Task:
    """Writes the rows of one attempt of a task; the transaction begins with the first row."""

    def __init__(self, cluster: Cluster, options: WriteOptions, job: Job, slot: Slot) -> None:
        self._cluster = cluster
        self._options = options
        self._job = job
        self._slot = slot
        self._transactions = cluster.transactions(job.application_id)
        self._transaction: Transaction | None = None
        self._added: set[Place] = set()
        self._rows = 0
        self._begun_ms = 0

    def write(self, batches: Iterable[Any]) -> Written:
        """Write all rows."""
        blocks = _blocks(batches)
        first = next(blocks, None)
        if first is None:
            return Written(job=self._job)
        self._begun_ms = time.time_ns() // 1_000_000
        identity = self._identity()
        try:
            maker, producer = self._maker(identity), self._producer()
            self._write_block(maker, producer, first)
            for block in blocks:
                self._write_block(maker, producer, block)
            producer.flush()
        except BaseException:
            self._abort()
            raise
        part = None
        if self._transaction is not None:
            part = Part(self._transaction, self._rows, maker.digest)
        return Written(job=self._job, part=part, begun_ms=self._begun_ms, ends=producer.ends)

    def _identity(self) -> ProducerIdentity:
        """Begin the transaction, if there is to be one."""
        if self._options.delivery is Delivery.AT_LEAST_ONCE:
            producer_id, epoch = self._transactions.plain_producer()
            return ProducerIdentity(producer_id, epoch, is_transactional=False)
        self._transaction = self._transactions.begin(self._slot, self._options.transaction_timeout_ms)
        return ProducerIdentity(self._transaction.producer_id, self._transaction.epoch, is_transactional=True)

    def _maker(self, identity: ProducerIdentity) -> BatchMaker:
        options = self._options
        return BatchMaker(
            identity=identity,
            codec=options.codec,
            batch_bytes=options.batch_bytes,
            partitioner=options.partitioner,
            spreading=Spreading(self._slot.partition + (self._job.batch_id or 0), options.batch_bytes),
            partition_counts=self._cluster.topics.partition_counts,
        )

    def _producer(self) -> Producer:
        return Producer(
            self._cluster.connections,
            self._cluster.topics,
            transactional_id=None if self._transaction is None else self._transactions.name(self._slot),
            patience_s=self._options.patience_s,
        )

    def _write_block(self, maker: BatchMaker, producer: Producer, block: Any) -> None:
        options = self._options
        now_ms = time.time_ns() // 1_000_000
        rows = rows_of(block, topic_is_given=options.topic is not None, now_ms=now_ms)
        batches = maker.batches(rows, options.topic)
        if self._transaction is not None:
            new = {(batch.topic, batch.partition) for batch in batches} - self._added
            if new:
                self._transactions.add(self._transaction, sorted(new))
                self._added |= new
        producer.send(batches)
        self._rows += len(rows)

    def _abort(self) -> None:
        """Abort the transaction; if that fails, the next attempt or the broker's timeout does it."""
        if self._transaction is None:
            return
        try:
            self._transactions.end(self._transaction, commit=False)
        except SparkSourceError:
            # What made the task fail is what is to be told.
            return


def _blocks(batches: Iterable[Any]) -> Iterator[Any]:
    """Put small record batches together, and cut large ones."""
    waiting: list[Any] = []
    size = 0
    for batch in batches:
        for piece in _pieces(batch):
            waiting.append(piece)
            size += piece.nbytes
            if size >= _BLOCK_BYTES:
                yield _joined(waiting)
                waiting, size = [], 0
    if waiting:
        yield _joined(waiting)


def _pieces(batch: Any) -> Iterator[Any]:
    if not len(batch):
        return
    if batch.nbytes <= 2 * _BLOCK_BYTES or len(batch) == 1:
        yield batch
        return
    half = len(batch) // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


def _joined(batches: list[Any]) -> Any:
    if len(batches) == 1:
        return batches[0]
    [joined] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined
