"""Offsets that groups have committed in transactions: they take effect with the decision, or never.

One document for each transaction and group. What a decision makes of them is stored together with the decision.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from millstream.broker.documents import DocumentChange, Documents
from millstream.broker.offsets import Offsets
from millstream.broker.transactions.errors import TransactionTooLarge
from millstream.broker.transactions.transaction import Place, Transaction
from millstream.storage.metadata import Change, CommittedOffset

__all__ = ["PendingOffsets", "Settlement"]

_log = logging.getLogger(__name__)
OFFSETS_DOCUMENT: Final = "transaction-offsets"
_OFFSETS_MAX: Final = 10_000
"""Offsets of one transaction: the document of a group is written anew with each commit."""
_NOTES_BYTES_MAX: Final = 1024 * 1024
"""Bytes of the texts kept with them, together: each may have offset.metadata.max.bytes."""

Settlement = tuple[Sequence[DocumentChange], Sequence[Change], Callable[[], None]]
"""What a decision changes: documents, offsets, and what is to be done once that lasts."""


class PendingOffsets:
    """What all transactions have committed that are not decided.

    Args:
        documents: where it lasts.
        offsets: where it goes.
    """

    def __init__(self, documents: Documents, offsets: Offsets) -> None:
        self._documents = documents
        self._offsets = offsets
        self._waiting: dict[str, dict[Place, set[int]]] = {}

    def load(self, transactions: Mapping[int, Transaction]) -> None:
        """Take over what is stored, into the transactions that it belongs to."""
        for key, document in list(self._documents.of_kind(OFFSETS_DOCUMENT).items()):
            number, group_id = key.split("/", 1)
            transaction = transactions.get(int(number))
            if transaction is None:
                _log.error("offsets of no transaction dropped transaction=%s group=%s", number, group_id)
                self._documents.delete(OFFSETS_DOCUMENT, key)
                continue
            transaction.offsets[group_id] = offsets = _decoded(document)
            self._note(transaction.number, group_id, offsets)

    def is_pending(self, group_id: str, place: Place) -> bool:
        """Whether a transaction that is not decided has committed an offset of a group in a partition."""
        return place in self._waiting.get(group_id, ())

    def check_room(self, transaction: Transaction, group_id: str, offsets: Mapping[Place, CommittedOffset]) -> None:
        """Check that a transaction takes some more offsets. Raises TransactionTooLarge."""
        after = {**transaction.offsets, group_id: {**transaction.offsets.get(group_id, {}), **offsets}}
        count = sum(map(len, after.values()))
        if count > _OFFSETS_MAX:
            raise TransactionTooLarge(f"a transaction commits {_OFFSETS_MAX} offsets at most, and this is {count}")
        notes_bytes = sum(len(one.note) for found in after.values() for one in found.values())
        if notes_bytes > _NOTES_BYTES_MAX:
            raise TransactionTooLarge(f"the texts kept with the offsets of a transaction have {notes_bytes} bytes")

    def put(
        self, transaction: Transaction, group_id: str, offsets: Mapping[Place, CommittedOffset]
    ) -> DocumentChange:
        """Commit offsets in a transaction. They are pending at once; gives what is to be stored.

        Should that fail, whoever commits the transaction all the same commits them with it.
        """
        pending = transaction.offsets.setdefault(group_id, {})
        pending.update(offsets)
        self._note(transaction.number, group_id, offsets)
        return OFFSETS_DOCUMENT, _key(transaction.number, group_id), _encoded(pending)

    def _note(self, number: int, group_id: str, offsets: Mapping[Place, CommittedOffset]) -> None:
        waiting = self._waiting.setdefault(group_id, {})
        for place in offsets:
            waiting.setdefault(place, set()).add(number)

    def settle(self, transaction: Transaction, *, commit: bool, now_ms: int) -> Settlement:
        """A transaction is about to be decided: what becomes of its offsets."""
        changes: list[Change] = []
        applies: list[Callable[[], None]] = []
        if commit:
            for group_id, pending in transaction.offsets.items():
                committed = {place: replace(one, committed_ms=now_ms) for place, one in pending.items()}
                more, apply = self._offsets.prepare(group_id, committed)
                changes += more
                applies.append(apply)

        def apply_all() -> None:
            for apply in applies:
                apply()
            self._forget(transaction)

        documents = [(OFFSETS_DOCUMENT, _key(transaction.number, group_id), None) for group_id in transaction.offsets]
        return documents, changes, apply_all

    def _forget(self, transaction: Transaction) -> None:
        for group_id, pending in transaction.offsets.items():
            waiting = self._waiting.get(group_id, {})
            for place in pending:
                numbers = waiting.get(place, set())
                numbers.discard(transaction.number)
                if not numbers:
                    waiting.pop(place, None)
            if not waiting:
                self._waiting.pop(group_id, None)

    def forget_topic(self, transaction: Transaction, topic_id: UUID, first: int) -> None:
        """The partitions of a topic from one on are gone, and what a transaction has committed there."""
        for group_id, pending in transaction.offsets.items():
            gone = [place for place in pending if place[0] == topic_id and place[1] >= first]
            if not gone:
                continue
            for place in gone:
                del pending[place]
                self._waiting.get(group_id, {}).pop(place, None)
            if not transaction.state.is_decided:
                self._documents.put(OFFSETS_DOCUMENT, _key(transaction.number, group_id), _encoded(pending))


def _key(number: int, group_id: str) -> str:
    return f"{number}/{group_id}"


def _encoded(offsets: Mapping[Place, CommittedOffset]) -> dict[str, Any]:
    return {
        "offsets": [
            [str(topic_id), index, one.offset, one.leader_epoch, one.note, one.committed_ms]
            for (topic_id, index), one in offsets.items()
        ]
    }


def _decoded(document: Mapping[str, Any]) -> dict[Place, CommittedOffset]:
    return {
        (UUID(topic_id), index): CommittedOffset(offset, leader_epoch, note, committed_ms)
        for topic_id, index, offset, leader_epoch, note, committed_ms in document["offsets"]
    }
