"""Finding in a log what transactions have written that are not decided: a start has it from nowhere else."""

from collections.abc import Iterator, Sequence
from typing import Final

from millstream.broker.partition import Partition
from millstream.broker.transactions.aborted import transactions_of
from millstream.broker.transactions.transaction import Place, ProducerEpoch, Transaction
from millstream.model.frame import Attributes, FrameHeader, read_frame_header, transaction_of
from millstream.storage.log import PartitionLog

__all__ = ["find_written"]

_READ_BYTES: Final = 1024 * 1024


def find_written(partition: Partition, place: Place, transactions: Sequence[Transaction]) -> None:
    """Tell a partition what some transactions have written to it.

    Args:
        partition: the partition.
        place: which it is; every transaction has added it.
        transactions: those to look for. Of one producer and epoch there is one at most.
    """
    written = transactions_of(partition)
    for transaction, header in _frames(partition.log, place, transactions):
        shown = transaction.is_shown
        written.wrote(transaction.number, header.base_offset, header.last_offset + 1, shown=shown)
        transaction.writing[place] = None  # a crash of the process leaves what may not be on the disk yet


def _frames(
    log: PartitionLog, place: Place, transactions: Sequence[Transaction]
) -> Iterator[tuple[Transaction, FrameHeader]]:
    by_number = {one.number: one for one in transactions if one.owner is None}
    by_producer = {one.owner.producer: one for one in transactions if one.owner is not None}
    offset = max(log.start_offset, min(one.partitions[place] for one in transactions))
    while offset < log.end_offset:
        data, behind = log.read(offset, _READ_BYTES)
        position = 0
        while position < len(data):
            header = read_frame_header(data, position)
            position += header.size
            if not header.attributes & Attributes.TRANSACTIONAL:
                continue
            number = transaction_of(header)
            if number is not None:
                transaction = by_number.get(number)
            else:
                transaction = by_producer.get(ProducerEpoch(header.producer_id, header.producer_epoch))
            # The same producer's transactions before this one may have had the same epoch.
            if transaction is not None and header.base_offset >= transaction.partitions[place]:
                yield transaction, header
        if behind <= offset:
            return
        offset = behind
