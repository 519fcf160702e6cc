"""Which topics of a namespace come and go: found out once for all who watch, not for each of them.

A change is looked for once over all topics, matched once for each pattern that is watched in the namespace, and then
told to every watcher of that pattern. A watcher whose connection has no room gets one update for all that it missed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from crc32c import crc32c

from millstream.broker.topics import Topic, Topics
from millstream.sessions.pulsar.names import is_partitioned, topic_text
from millstream.wire.pulsar.pulsar_pb2 import CommandWatchTopicUpdate

if TYPE_CHECKING:
    from millstream.sessions.pulsar.link import Link

__all__ = ["Matches", "TopicWatch", "Watcher", "names_of", "topics_hash"]

Matches = Callable[[str], bool]
"""Tells of a topic's name, without its domain and without the suffix of a partition, whether it is meant."""
NamespaceName = tuple[str, str]


def topics_hash(names: list[str]) -> str:
    """The hash by which a client knows a list of topics again: crc32c of the sorted names, in hexadecimal."""
    return f"{crc32c(','.join(sorted(names)).encode()):08x}"


def names_of(topic: Topic) -> list[str]:
    """The names of a topic's partitions, or its own where it is not partitioned."""
    numbers = range(len(topic.partitions)) if is_partitioned(topic) else (-1,)
    return [topic_text(topic.name, partition=number) for number in numbers]


class _Pattern:
    """What those who watch for one pattern see."""

    __slots__ = ("hash", "matches", "names", "watchers")

    def __init__(self, matches: Matches) -> None:
        self.matches = matches
        self.names: set[str] = set()
        self.hash = ""
        self.watchers: dict[Watcher, None] = {}

    def change(self, added: dict[str, str], removed: dict[str, str]) -> None:
        """Names have come and gone; each with what patterns are matched against."""
        come = {name for name, bare in added.items() if self.matches(bare)}
        gone = self.names & removed.keys()
        if come or gone:
            self.names = self.names - gone | come
            self.hash = topics_hash(list(self.names))
            for watcher in list(self.watchers):
                watcher.tell(come, gone)


class _Namespace:
    """What is known of a namespace that is watched."""

    __slots__ = ("names", "patterns")

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.patterns: dict[str, _Pattern] = {}

    def change(self, names: dict[str, str]) -> None:
        """These are its topics now."""
        known, self.names = self.names, names
        added = {name: names[name] for name in names.keys() - known.keys()}
        removed = {name: known[name] for name in known.keys() - names.keys()}
        if added or removed:
            for pattern in self.patterns.values():
                pattern.change(added, removed)


class Watcher:
    """One who watches.

    Args:
        link: the connection.
        number: by which the client knows it.
        pattern: what it watches for.
        forget: takes it off the list.
    """

    def __init__(self, link: "Link", number: int, pattern: _Pattern, forget: Callable[["Watcher"], None]) -> None:
        self._link = link
        self._number = number
        self._pattern = pattern
        self._forget = forget
        self._added: set[str] = set()
        self._removed: set[str] = set()

    @property
    def names(self) -> list[str]:
        """What there is now, sorted."""
        return sorted(self._pattern.names)

    @property
    def hash(self) -> str:
        """The hash of that."""
        return self._pattern.hash

    def tell(self, come: set[str], gone: set[str]) -> None:
        """Names have come and gone: tell the client, now or when it has room."""
        self._added, self._removed = (
            (self._added - gone) | (come - self._removed),
            ((self._removed - come) | (gone - self._added)),
        )
        self.resume()

    def resume(self) -> None:
        """Tell what is still to be told, if there is room for it."""
        if (self._added or self._removed) and self._link.peer.room_bytes():
            update = CommandWatchTopicUpdate(
                watcher_id=self._number,
                new_topics=sorted(self._added),
                deleted_topics=sorted(self._removed),
                topics_hash=self._pattern.hash,
            )
            self._added, self._removed = set(), set()
            self._link.send(update)

    def close(self) -> None:
        """Tell no more."""
        self._forget(self)


class TopicWatch:
    """All who watch.

    Args:
        topics: what they watch.
    """

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._namespaces: dict[NamespaceName, _Namespace] = {}

    def watch(self, link: "Link", number: int, tenant: str, name: str, text: str, matches: Matches | None) -> Watcher:
        """Begin to watch.

        Args:
            link, number: who.
            tenant, name: of the namespace.
            text, matches: the pattern, and what tells whether a name fits it; None for all names.
        """
        if not self._namespaces:
            self._topics.watch(self._look)
        key = tenant, name
        namespace = self._namespaces.get(key)
        if namespace is None:
            namespace = self._namespaces[key] = _Namespace()
        # Whoever was there before hears first of what this finds out.
        self._look()
        pattern = namespace.patterns.get(text)
        if pattern is None:
            pattern = namespace.patterns[text] = _Pattern(matches or (lambda _: True))
            pattern.change(namespace.names, {})
            pattern.hash = topics_hash(list(pattern.names))

        def forget(watcher: Watcher) -> None:
            pattern.watchers.pop(watcher, None)
            if not pattern.watchers and namespace.patterns.get(text) is pattern:
                del namespace.patterns[text]
                if not namespace.patterns:
                    del self._namespaces[key]
                    if not self._namespaces:
                        self._topics.unwatch(self._look)

        watcher = Watcher(link, number, pattern, forget)
        pattern.watchers[watcher] = None
        return watcher

    def _look(self) -> None:
        """Find out what has changed."""
        names: dict[NamespaceName, dict[str, str]] = {key: {} for key in self._namespaces}
        for topic in self._topics:
            there = names.get(topic.name[:2])
            if there is not None:
                bare = "/".join(topic.name)
                for name in names_of(topic):
                    there[name] = bare
        for key, there in names.items():
            namespace = self._namespaces.get(key)
            if namespace is not None:
                namespace.change(there)
