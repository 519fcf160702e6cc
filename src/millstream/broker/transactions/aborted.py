"""The offsets of aborted transactions, made to last for as long as the log has them.

One document for each transaction and partition, stored together with the decision; many of one partition become one.
"""

import logging
from collections.abc import Callable
from typing import Final
from uuid import UUID

from millstream.broker.documents import Document, DocumentChange, Documents
from millstream.broker.partition import Partition
from millstream.broker.subscriptions.ranges import OffsetRanges, RangesDamaged
from millstream.broker.transactions.acknowledgements import decode_document, encode_document
from millstream.broker.transactions.partition import PartitionTransactions
from millstream.broker.transactions.transaction import Place, Transaction
from millstream.model.pending import Pending

__all__ = ["StoredAborted", "transactions_of"]

_log = logging.getLogger(__name__)
ABORTED_DOCUMENT: Final = "transaction-aborted"
_MERGED: Final = "merged"
_MERGE_COUNT: Final = 256
"""Documents of one partition that are made one: some milliseconds of work, and a few bytes left of each."""


def transactions_of(partition: Partition) -> PartitionTransactions:
    """The transactions of a partition, which are there from now on."""
    if partition.transactions is None:
        partition.transactions = PartitionTransactions(partition)
    return partition.transactions


class StoredAborted:
    """The documents.

    Args:
        documents: where they last.
        partition_of: finds a partition; None if it is gone.
    """

    def __init__(self, documents: Documents, partition_of: Callable[[Place], Partition | None]) -> None:
        self._documents = documents
        self._partition_of = partition_of
        self._single: dict[tuple[Place, bool], list[str]] = {}

    def load(self) -> None:
        """Tell the partitions what is stored."""
        for key, document in list(self._documents.of_kind(ABORTED_DOCUMENT).items()):
            place, shown = _place_of(key), bool(document.get("shown"))
            partition = self._partition_of(place)
            if partition is None:
                continue
            ranges = _decoded(key, document)
            if ranges is not None:
                transactions_of(partition).abort(ranges, shown=shown)
                self._note(place, key, shown=shown)

    def is_stored(self, place: Place, number: int) -> bool:
        """Whether a transaction has a document of its own for a partition."""
        return self._documents.find(ABORTED_DOCUMENT, _key(place, number)) is not None

    def changes(self, transaction: Transaction) -> list[DocumentChange]:
        """What is to be stored together with the decision that a transaction is aborted."""
        found: list[DocumentChange] = []
        for place in transaction.partitions:
            partition = self._partition_of(place)
            transactions = partition.transactions if partition is not None else None
            written = transactions.written(transaction.number) if transactions is not None else None
            if written is not None:
                found.append(_change(place, transaction, written))
        return found

    def put(self, place: Place, transaction: Transaction, written: OffsetRanges) -> Pending[None]:
        """Store what an aborted transaction has written to a partition."""
        return self._documents.change([_change(place, transaction, written)])

    def note(self, place: Place, transaction: Transaction) -> None:
        """It is stored, or about to be."""
        self._note(place, _key(place, transaction.number), shown=transaction.is_shown)

    def _note(self, place: Place, key: str, *, shown: bool) -> None:
        if _MERGED in key:
            return
        single = self._single.setdefault((place, shown), [])
        single.append(key)
        if len(single) >= _MERGE_COUNT:
            self._merge(self._single.pop((place, shown)), shown=shown)

    def _merge(self, keys: list[str], *, shown: bool) -> None:
        whole = OffsetRanges()
        merged: list[DocumentChange] = []
        for key in keys:
            document = self._documents.find(ABORTED_DOCUMENT, key)
            ranges = _decoded(key, document) if document is not None else None
            if ranges is not None:
                merged.append((ABORTED_DOCUMENT, key, None))
                for start, end in ranges:
                    whole.add(start, end)
        if whole:
            document = {**encode_document(whole), "shown": shown}
            # No other is called like it: each has the name of a transaction that only this one has taken up.
            self._documents.change([(ABORTED_DOCUMENT, f"{merged[-1][1]}-{_MERGED}", document), *merged])

    def expire(self) -> None:
        """Forget what the logs do not have any more."""
        for key, document in list(self._documents.of_kind(ABORTED_DOCUMENT).items()):
            partition = self._partition_of(_place_of(key))
            if partition is None:
                continue
            start_offset = partition.log.start_offset
            ranges = _decoded(key, document)
            if ranges is not None and ranges.last_end <= start_offset:
                self._documents.delete(ABORTED_DOCUMENT, key)
            if partition.transactions is not None:
                partition.transactions.forget_before(start_offset)

    def emptied(self, place: Place, offset: int) -> list[DocumentChange]:
        """What is to be stored once compaction has left nothing of what was aborted before an offset."""
        partition = self._partition_of(place)
        aborted = partition.transactions.aborted if partition is not None and partition.transactions else None
        if not aborted or aborted.first[0] >= offset:
            return []
        changes: list[DocumentChange] = []
        for key, document in self._documents.of_kind(ABORTED_DOCUMENT).items():
            ranges = _decoded(key, document) if _place_of(key) == place else None
            if ranges is not None and ranges.remove_before(offset):
                left = {**document, **encode_document(ranges)} if ranges else None
                changes.append((ABORTED_DOCUMENT, key, left))
        return changes

    def forget_before(self, place: Place, offset: int) -> None:
        """Let it not be known any more either, of what was aborted before an offset."""
        partition = self._partition_of(place)
        if partition is not None and partition.transactions is not None:
            partition.transactions.forget_before(offset)

    def forget_topic(self, topic_id: UUID, first: int) -> None:
        """The partitions of a topic from one on are gone."""
        for key in list(self._documents.of_kind(ABORTED_DOCUMENT)):
            owner, index = _place_of(key)
            if owner == topic_id and index >= first:
                self._documents.delete(ABORTED_DOCUMENT, key)
        for place, shown in list(self._single):
            if place[0] == topic_id and place[1] >= first:
                del self._single[place, shown]


def _key(place: Place, number: int) -> str:
    return f"{place[0]}/{place[1]}/{number}"


def _change(place: Place, transaction: Transaction, written: OffsetRanges) -> DocumentChange:
    document = {**encode_document(written), "shown": transaction.is_shown}
    return ABORTED_DOCUMENT, _key(place, transaction.number), document


def _place_of(key: str) -> Place:
    topic_id, index, _ = key.split("/")
    return UUID(topic_id), int(index)


def _decoded(key: str, document: Document) -> OffsetRanges | None:
    try:
        return decode_document(document)
    except (RangesDamaged, ValueError) as error:
        _log.error("aborted transaction damaged: its records show key=%s reason=%s", key, error)
        return None
