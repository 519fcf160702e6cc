"""All ACLs: durable, and found by the resource that they apply to."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from millstream.broker.acl import WILDCARD, Acl, AclFilter, PatternType, ResourceType
from millstream.broker.documents import Documents
from millstream.model.pending import Pending

__all__ = ["Acls"]

_KIND: Final = "acl"


class Acls:
    """The ACLs of a broker.

    Changes are seen once they last, in the order in which they were asked for.

    Args:
        documents: where they last.

    `changed` is called after every change.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._all: dict[Acl, None] = {}
        self._named: dict[ResourceType, dict[str, dict[Acl, None]]] = defaultdict(dict)
        self._prefixed: dict[ResourceType, dict[str, dict[Acl, None]]] = defaultdict(dict)
        self._prefix_lengths: dict[ResourceType, Counter[int]] = defaultdict(Counter)
        self.changed: Callable[[], None] = lambda: None
        for document in documents.of_kind(_KIND).values():
            self._add(Acl.of_document(document))

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._all)

    def applying_to(self, resource_type: ResourceType, name: str) -> Iterator[Acl]:
        """The ACLs that speak of one resource: by its name, by a prefix of it, or of all of its type."""
        named, prefixed = self._named[resource_type], self._prefixed[resource_type]
        yield from named.get(name, ())
        if name != WILDCARD:
            yield from named.get(WILDCARD, ())
        for length in self._prefix_lengths[resource_type]:
            if length <= len(name):
                yield from prefixed.get(name[:length], ())

    def of_type(self, resource_type: ResourceType) -> Iterator[Acl]:
        """The ACLs of one type of resource."""
        for names in (self._named, self._prefixed):
            for acls in names[resource_type].values():
                yield from acls

    def matching(self, wanted: AclFilter) -> list[Acl]:
        """The ACLs that a filter means."""
        return [acl for acl in self._all if wanted.matches(acl)]

    def create(self, acls: Sequence[Acl]) -> Pending[None]:
        """Add ACLs, all or none of them; those that there are stay. Resolves once they last."""

        def done(_: None) -> None:
            for acl in acls:
                self._add(acl)
            self.changed()

        return self._documents.change([(_KIND, acl.key, acl.document()) for acl in acls]).then(done)

    def delete(self, acls: Sequence[Acl]) -> Pending[None]:
        """Delete ACLs, all or none of them. Resolves once that lasts."""

        def done(_: None) -> None:
            for acl in acls:
                self._discard(acl)
            self.changed()

        return self._documents.change([(_KIND, acl.key, None) for acl in acls]).then(done)

    def _add(self, acl: Acl) -> None:
        if acl in self._all:
            return
        self._all[acl] = None
        kind, pattern, name = acl.resource
        if pattern is PatternType.LITERAL:
            self._named[kind].setdefault(name, {})[acl] = None
        else:
            self._prefixed[kind].setdefault(name, {})[acl] = None
            self._prefix_lengths[kind][len(name)] += 1

    def _discard(self, acl: Acl) -> None:
        if acl not in self._all:
            return
        del self._all[acl]
        kind, pattern, name = acl.resource
        if pattern is PatternType.LITERAL:
            names = self._named[kind]
        else:
            names, lengths = self._prefixed[kind], self._prefix_lengths[kind]
            lengths[len(name)] -= 1
            if not lengths[len(name)]:
                del lengths[len(name)]
        del names[name][acl]
        if not names[name]:
            del names[name]
