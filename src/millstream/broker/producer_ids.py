"""Producer ids: each is given out once, for ever."""

from collections.abc import Mapping
from typing import Final

from millstream.model.pending import Pending, settled
from millstream.storage.metadata import MetadataStore, PutValue

__all__ = ["ProducerIds"]

_NEXT: Final = "producer.id.next"
_BLOCK: Final = 1000
"""Ids taken from the store at a time; a restart skips what is left of a block."""


class ProducerIds:
    """Gives out producer ids.

    Args:
        store: remembers where the next block begins.
        values: what the store held at the start.
    """

    def __init__(self, store: MetadataStore, values: Mapping[str, str]) -> None:
        self._store = store
        self._next = self._block_end = int(values.get(_NEXT, "0"))
        self._reserving: Pending[None] | None = None

    def take(self) -> Pending[int]:
        """A producer id that nobody has had. Fails with MetadataFailed."""
        if self._next < self._block_end:
            return settled(self._take())
        if self._reserving is None:
            block_end = self._block_end + _BLOCK

            def reserved(pending: Pending[None]) -> None:
                self._reserving = None

            def extend(_: None) -> None:
                self._block_end = block_end

            self._reserving = self._store.submit([PutValue(_NEXT, str(block_end))]).then(extend)
            self._reserving.when_done(reserved)
        return self._reserving.chain(lambda _: self.take())

    def _take(self) -> int:
        self._next += 1
        return self._next - 1
