"""Documents: what is durable of nouns that are few, small and read whole, such as namespaces, schemas and users."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from millstream.model.pending import Pending
from millstream.storage.metadata import Change, DeleteDocument, MetadataStore, PutDocument

__all__ = ["Document", "DocumentChange", "Documents"]

Document = Mapping[str, Any]
"""Anything JSON can hold, by name."""
DocumentChange = tuple[str, str, Document | None]
"""Kind, key, and the document to put there; None to delete it."""


class Documents:
    """All documents, in memory and in the metadata store.

    Args:
        store: where they last.
        loaded: what the store held at the start, JSON by (kind, key).
    """

    def __init__(self, store: MetadataStore, loaded: Mapping[tuple[str, str], str]) -> None:
        self._store = store
        self._kinds: dict[str, dict[str, Document]] = {}
        self._changing: dict[tuple[str, str], _Changing] = {}
        for (kind, key), value in loaded.items():
            self._kinds.setdefault(kind, {})[key] = json.loads(value)

    def of_kind(self, kind: str) -> Mapping[str, Document]:
        """The documents of one kind, by key; the view follows later changes."""
        return MappingProxyType(self._kinds.setdefault(kind, {}))

    def find(self, kind: str, key: str) -> Document | None:
        """One document, None if there is none."""
        return self._kinds.get(kind, {}).get(key)

    def put(self, kind: str, key: str, value: Document) -> Pending[None]:
        """Set a document. It is seen at once, so that the next change builds on this one.

        Returns:
            Resolves once it lasts; fails with MetadataFailed, and then it is taken back.
        """
        return self.change([(kind, key, value)])

    def delete(self, kind: str, key: str) -> Pending[None]:
        """Delete a document; as `put`."""
        return self.change([(kind, key, None)])

    def change(self, changes: Sequence[DocumentChange], also: Sequence[Change] = ()) -> Pending[None]:
        """Put and delete several documents, all or none of them; as `put`.

        Args:
            changes: of documents.
            also: other changes that are made with them, or not made with them. To see them is the caller's.
        """
        noted = [(kind, key, value, self._begin(kind, key, value)) for kind, key, value in changes]

        def done(pending: Pending[None]) -> None:
            for kind, key, value, changing in noted:
                changing.under_way -= 1
                if not pending.failed:
                    changing.lasting = None if value is None else dict(value)
                if not changing.under_way:
                    # Where the last of them failed, what lasts is none of those before it that failed as well.
                    _set(self._kinds[kind], key, changing.lasting)
                    del self._changing[kind, key]

        stored = self._store.submit([*(_stored(*change) for change in changes), *also])
        stored.when_done(done)
        return stored

    def _begin(self, kind: str, key: str, value: Document | None) -> "_Changing":
        documents = self._kinds.setdefault(kind, {})
        changing = self._changing.setdefault((kind, key), _Changing(documents.get(key)))
        _set(documents, key, None if value is None else dict(value))
        changing.under_way += 1
        return changing


class _Changing:
    """A document with changes that are not stored yet: how many, and what it is as far as it lasts."""

    __slots__ = ("lasting", "under_way")

    def __init__(self, lasting: Document | None) -> None:
        self.lasting = lasting
        self.under_way = 0


def _set(documents: dict[str, Document], key: str, value: Document | None) -> None:
    if value is None:
        documents.pop(key, None)
    else:
        documents[key] = value


def _stored(kind: str, key: str, value: Document | None) -> Change:
    return DeleteDocument(kind, key) if value is None else PutDocument(kind, key, json.dumps(value))
