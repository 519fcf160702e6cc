"""Who reads under a name: for each topic, the clients of one protocol at a time.

A group and a subscription of one name on one topic are one position. Clients of two protocols would each be given all
records and move it under each other's feet, so that the second to come is refused, unless the server is set to let
it in. Every protocol's service tells who its readers are; nothing is counted here, so that nothing is left over when
they go away.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from millstream.broker.errors import GroupHeld
from millstream.broker.topics import Topic
from millstream.model.pending import Pending, gather

__all__ = ["Holder", "Holders"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A reader under some name.

    Args:
        protocol: that it speaks, by the name of the listener.
        id: tells it from the others under that name.
        client: what it calls itself.
        host: where it is.
        topic: what it reads, by its flat name.
        partitions: which of it, as far as that is known here.
    """

    protocol: str
    id: str
    client: str
    host: str
    topic: str
    partitions: tuple[int, ...] = ()


Source = Callable[[str], Iterable[Holder]]
"""Gives the readers under a name."""
Names = Callable[[], Iterable[tuple[str, bool]]]
"""Gives names under which clients of a protocol may read, each with whether any do; one may come several times."""
UnderWay = Callable[[str], Iterable[Pending[None]]]
"""Gives what moves the positions under a name and does not last yet, so that others do not see it."""


class Holders:
    """The readers of all protocols.

    Args:
        several: whether clients of several protocols may read under one name.
    """

    def __init__(self, *, several: bool = False) -> None:
        self._several = several
        self._sources: dict[str, Source] = {}
        self._under_way: dict[str, UnderWay] = {}
        self._names: dict[str, Names] = {}

    def register(
        self, protocol: str, source: Source, under_way: UnderWay = lambda _: (), names: Names = lambda: ()
    ) -> None:
        """Ask for the readers of a protocol from now on; a second source takes the place of the first."""
        self._sources[protocol] = source
        self._under_way[protocol] = under_way
        self._names[protocol] = names

    def names(self) -> dict[str, bool]:
        """Names under which clients may read, and for each whether any do, as the protocols list them."""
        found: dict[str, bool] = {}
        for source in self._names.values():
            for name, held in source():
                found[name] = held or found.get(name, False)
        return found

    def of(self, name: str, *, besides: str = "") -> list[Holder]:
        """The readers under a name, but for those of one protocol."""
        return [
            holder for protocol, source in self._sources.items() if protocol != besides for holder in source(name)
        ]

    def at_rest(self, name: str, protocol: str) -> Pending[object] | None:
        """Resolves once all that clients of other protocols have done under a name is seen; None if it is."""
        moving = [
            pending for other, source in self._under_way.items() if other != protocol for pending in source(name)
        ]
        return gather(moving).then(lambda done: done) if moving else None

    def barred(self, name: str, protocol: str) -> frozenset[str]:
        """The topics, by flat name, that clients of a protocol may not read under a name, because others do."""
        return frozenset() if self._several else frozenset(one.topic for one in self.of(name, besides=protocol))

    def check(self, name: str, topics: Iterable[Topic], protocol: str) -> None:
        """Check that clients of a protocol may read some topics under a name.

        Raises:
            GroupHeld: clients of another protocol do.
        """
        if self._several:
            return
        wanted = {topic.name.flat for topic in topics}
        for holder in self.of(name, besides=protocol):
            if holder.topic in wanted:
                raise GroupHeld(
                    f"clients of {holder.protocol} are reading {holder.topic} as {name} "
                    f"({holder.client or holder.id} at {holder.host}): they are to stop first, "
                    "unless group.several.protocols.enable is set"
                )
