"""The numbers of transactions: each is given out once, for ever."""

from typing import Final

from millstream.broker.documents import Documents
from millstream.model.pending import Pending, settled

__all__ = ["TransactionNumbers"]

NUMBER_DOCUMENT: Final = "transaction-number"
_KEY: Final = "next"
_BLOCK: Final = 1000
"""Numbers taken from the store at a time; a start skips what is left of a block."""


class TransactionNumbers:
    """Gives out numbers from 0 on.

    Args:
        documents: remember where the next block begins.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        stored = documents.find(NUMBER_DOCUMENT, _KEY)
        self._next = self._block_end = 0 if stored is None else int(stored["number"])
        self._reserving: Pending[None] | None = None

    def take(self) -> Pending[int]:
        """A number that no transaction has had. Fails with MetadataFailed."""
        if self._next < self._block_end:
            self._next += 1
            return settled(self._next - 1)
        if self._reserving is None:
            block_end = self._block_end + _BLOCK

            def reserved(_: Pending[None]) -> None:
                self._reserving = None

            def extend(_: None) -> None:
                self._block_end = block_end

            stored = self._documents.put(NUMBER_DOCUMENT, _KEY, {"number": block_end})
            self._reserving = stored.then(extend)
            self._reserving.when_done(reserved)
        return self._reserving.chain(lambda _: self.take())
