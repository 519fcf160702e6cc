"""What open transactions have acknowledged, made to last: one document for each transaction and subscription.

A write takes all that has been acknowledged until it begins; what comes while it is under way goes into the next.
"""

import base64
import logging
from uuid import UUID

from millstream.broker.documents import Document, Documents
from millstream.broker.subscriptions import Subscription
from millstream.broker.subscriptions.ranges import OffsetRanges, RangesDamaged, decode_ranges
from millstream.broker.transactions.transaction import SubscriptionPlace
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled

__all__ = ["StoredAcknowledgements", "decode_document", "encode_document"]

_log = logging.getLogger(__name__)
ACKNOWLEDGED_DOCUMENT = "transaction-acknowledgements"


def encode_document(ranges: OffsetRanges) -> Document:
    """A set of offsets that is not empty, as a document."""
    position = ranges.first[0]
    return {"position": position, "ranges": base64.b64encode(ranges.encode(position)).decode()}


def decode_document(document: Document) -> OffsetRanges:
    """Read such a document. Raises RangesDamaged."""
    return decode_ranges(base64.b64decode(document["ranges"]), document["position"])


class _Write:
    """The writes of one document."""

    __slots__ = ("again", "running")

    def __init__(self) -> None:
        self.running: Pending[None] | None = None
        self.again: Pending[None] | None = None


class StoredAcknowledgements:
    """The documents of all transactions.

    Args:
        documents: where they last.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._writes: dict[str, _Write] = {}

    def load(self) -> list[tuple[int, SubscriptionPlace, OffsetRanges]]:
        """All that is stored: by the number of the transaction, and the subscription."""
        found = []
        for key, document in self._documents.of_kind(ACKNOWLEDGED_DOCUMENT).items():
            number, topic_id, partition, name = key.split("/", 3)
            try:
                ranges = decode_document(document)
            except (RangesDamaged, ValueError) as error:
                _log.error("acknowledgements of a transaction damaged transaction=%s reason=%s", number, error)
                continue
            found.append((int(number), SubscriptionPlace(UUID(topic_id), int(partition), name), ranges))
        return found

    def keep(self, number: int, subscription: Subscription) -> Pending[None]:
        """Make last what a transaction has acknowledged on a subscription so far. Fails with MetadataFailed."""
        if not subscription.durable:
            return settled(None)
        key = _key(number, SubscriptionPlace(*subscription.place, subscription.name))
        write = self._writes.setdefault(key, _Write())
        if write.again is not None:
            return write.again
        if write.running is not None:
            write.again = Pending()
            return write.again
        written: Pending[None] = Pending()
        self._write(key, number, subscription, write, written)
        return written

    def _write(
        self, key: str, number: int, subscription: Subscription, write: _Write, written: Pending[None]
    ) -> None:
        write.running = written
        ranges = subscription.pending.of(number)
        stored = settled(None)
        if ranges is not None:
            stored = self._documents.put(ACKNOWLEDGED_DOCUMENT, key, encode_document(ranges))

        def finish(outcome: Pending[None]) -> None:
            again, write.again, write.running = write.again, None, None
            if again is not None:
                self._write(key, number, subscription, write, again)
            else:
                self._writes.pop(key, None)
            try:
                written.resolve(outcome.result())
            except MillstreamError as error:
                written.fail(error)

        stored.when_done(finish)

    def drop(self, number: int, place: SubscriptionPlace) -> Pending[None]:
        """What a transaction has acknowledged on a subscription is decided."""
        key = _key(number, place)
        if self._documents.find(ACKNOWLEDGED_DOCUMENT, key) is None:
            return settled(None)
        return self._documents.delete(ACKNOWLEDGED_DOCUMENT, key)


def _key(number: int, place: SubscriptionPlace) -> str:
    return f"{number}/{place.topic_id}/{place.partition}/{place.name}"
