"""Namespaces under one flat name each, numbered, and the topics in each of them, numbered too.

Some protocols know a namespace (a *stream* to them) and a topic by a small number besides the name, which some of
their clients choose. Numbers last as long as what they stand for; those that the server gives are not used again.
What was made by protocols that have no numbers is numbered from `UNASKED_FROM` on, so that it does not take the
numbers that clients like to choose. The namespace `default`, which is always there, is a stream once it has a topic.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from millstream.broker.documents import Documents
from millstream.broker.errors import BrokerError, InvalidTopicName, TopicExists
from millstream.broker.namespaces import Namespace, Namespaces, UnknownTenant
from millstream.broker.topics import Topic, Topics
from millstream.model.pending import Pending, gather
from millstream.model.runtime import Runtime
from millstream.model.topic_name import DEFAULT_NAMESPACE, DEFAULT_TENANT, TopicName

__all__ = [
    "UNASKED_FROM",
    "Stream",
    "StreamExists",
    "Streams",
    "TopicNumberTaken",
    "UnknownStream",
    "flat_namespace",
    "fold",
]

UNASKED_FROM: Final = 1000
_STREAM: Final = "stream"
_TOPIC: Final = "stream-topic"
_COUNTER: Final = "stream-counter"
_STREAMS_COUNTER: Final = "streams"


class StreamExists(BrokerError):
    """There is a stream of this name, or `by_number` of this number, already."""

    def __init__(self, text: str, *, by_number: bool) -> None:
        super().__init__(text)
        self.by_number = by_number


class UnknownStream(BrokerError):
    """There is no such stream."""


class TopicNumberTaken(TopicExists):
    """There is a topic of this number in the stream already."""


@dataclass(slots=True)
class Stream:
    """A namespace under its flat name.

    Args:
        name: its flat name.
        number: its number, from 0.
        created_ms: when it was made.
        attributes: what a protocol keeps with it.
        topics: the ids of its topics, by number.
    """

    name: str
    number: int
    created_ms: int
    attributes: dict[str, Any] = field(default_factory=dict)
    topics: dict[int, UUID] = field(default_factory=dict)


@dataclass(slots=True)
class _Numbered:
    """What is kept of a topic: the stream that it was numbered in, its number there, and a protocol's attributes."""

    stream: str
    number: int
    attributes: dict[str, Any]


def flat_namespace(name: TopicName) -> str:
    """The flat name of the namespace of a topic."""
    return name.namespace if name.tenant == DEFAULT_TENANT else f"{name.tenant}.{name.namespace}"


def _split(flat: str) -> tuple[str, str]:
    """The tenant and the name of a namespace that is to be made under a flat name."""
    tenant, dot, namespace = flat.partition(".")
    return (
        (tenant, namespace) if dot and tenant and namespace and tenant != DEFAULT_TENANT else (DEFAULT_TENANT, flat)
    )


class Streams:
    """All streams, and the numbers of all topics.

    Args:
        runtime: the time.
        documents: where it lasts.
        namespaces: which there are.
        topics: all topics; their coming and going is followed.
    """

    def __init__(self, runtime: Runtime, documents: Documents, namespaces: Namespaces, topics: Topics) -> None:
        self._runtime = runtime
        self._namespaces = namespaces
        self._documents = documents
        self._topics = topics
        self._by_name: dict[str, Stream] = {}
        self._by_number: dict[int, Stream] = {}
        self._numbered: dict[UUID, _Numbered] = {}
        self._counters: dict[str, int] = {}
        self._unsaved: set[Pending[None]] = set()
        self._renaming: set[str] = set()
        for name, document in documents.of_kind(_STREAM).items():
            self._enter(Stream(name, document["number"], document["created_ms"], dict(document["attributes"])))
        for key, document in documents.of_kind(_TOPIC).items():
            one = _Numbered(document["stream"], document["number"], dict(document["attributes"]))
            self._numbered[UUID(key)] = one
            stream = self._by_name.get(one.stream)
            if stream is not None:
                stream.topics[one.number] = UUID(key)
        for scope, document in documents.of_kind(_COUNTER).items():
            self._counters[scope] = document["next"]
        self.refresh()
        topics.watch(self.refresh)

    def close(self) -> None:
        """Follow the topics no more."""
        self._topics.unwatch(self.refresh)

    @property
    def unsaved(self) -> Pending[None] | None:
        """Resolves once every number given so far lasts; None if all do."""
        if not self._unsaved:
            return None
        return gather(list(self._unsaved)).then(lambda _: None)

    # Finding

    def __iter__(self) -> Iterator[Stream]:
        self.refresh()
        return iter(sorted(self._by_name.values(), key=lambda stream: stream.number))

    def __len__(self) -> int:
        self.refresh()
        return len(self._by_name)

    def find(self, key: int | str, *, fold_case: bool = False) -> Stream | None:
        """A stream by its number or name; None if there is none.

        Args:
            fold_case: whether a name in other case, or with other white space, will do.
        """
        found = self._known(key)
        if found is None or self._namespaces.by_flat_name(found.name) is None:
            self.refresh()
            found = self._known(key)
        if found is None and fold_case and isinstance(key, str):
            folded = fold(key)
            found = next((one for one in self._by_name.values() if fold(one.name) == folded), None)
        return found

    def _known(self, key: int | str) -> Stream | None:
        return self._by_number.get(key) if isinstance(key, int) else self._by_name.get(key)

    def find_topic(self, stream: Stream, key: int | str, *, fold_case: bool = False) -> Topic | None:
        """A topic of a stream by its number or name; None if there is none."""
        if isinstance(key, int):
            topic_id = stream.topics.get(key)
            return None if topic_id is None else self._topics.by_id(topic_id)
        topic = self._named(stream, key)
        if topic is None and fold_case:
            folded = fold(key)
            topic = next((one for one in self.topics_of(stream) if fold(one.name.name) == folded), None)
        return topic

    def _named(self, stream: Stream, name: str) -> Topic | None:
        topic = self._topics.by_name(self._topic_name(stream, name))
        if topic is not None and topic.id not in self._numbered:
            self.refresh()
        return topic

    def _topic_name(self, stream: Stream, name: str) -> TopicName:
        namespace = self._namespaces.by_flat_name(stream.name)
        place = _split(stream.name) if namespace is None else (namespace.tenant, namespace.name)
        return TopicName(*place, name)

    def topics_of(self, stream: Stream) -> list[Topic]:
        """The topics of a stream, by number."""
        found = [self._topics.by_id(stream.topics[number]) for number in sorted(stream.topics)]
        return [topic for topic in found if topic is not None]

    def number_of(self, topic: Topic) -> int:
        """The number of a topic in its stream."""
        if topic.id not in self._numbered:
            self.refresh()
        return self._numbered[topic.id].number

    def stream_of(self, topic: Topic) -> Stream:
        """The stream of a topic."""
        return self._by_name[flat_namespace(topic.name)]

    def attributes_of(self, topic: Topic) -> Mapping[str, Any]:
        """What a protocol keeps with a topic."""
        numbered = self._numbered.get(topic.id)
        return {} if numbered is None else numbered.attributes

    # Making and changing

    def create(
        self, name: str, number: int | None = None, attributes: Mapping[str, Any] | None = None
    ) -> tuple[Stream, Pending[None]]:
        """Make a stream; there at once, lasting once the answer is there.

        Args:
            name: its flat name.
            number: the number it gets, None for the next one.

        Raises:
            StreamExists: the name or the number is taken.
            InvalidNamespaceName: the name is none.
        """
        self.refresh()
        if name in self._by_name or name in self._renaming:
            raise StreamExists(f"there is a stream {name} already", by_number=False)
        if number is not None and number in self._by_number:
            raise StreamExists(f"there is a stream {number} already", by_number=True)
        self._ensure_namespace(name)
        if number is None:
            number = self._next(_STREAMS_COUNTER, self._by_number)
        stream = Stream(name, number, self._runtime.now_ms(), dict(attributes or {}))
        self._enter(stream)
        return stream, self._save_stream(stream)

    def _ensure_namespace(self, flat: str) -> None:
        if self._namespaces.by_flat_name(flat) is not None:
            return
        tenant, name = _split(flat)
        try:
            self._namespaces.tenant(tenant)
        except UnknownTenant:
            self._keep(self._namespaces.create_tenant(tenant))
        self._keep(self._namespaces.create(tenant, name)[1])

    def check_new_topic(self, stream: Stream, name: str, number: int | None) -> TopicName:
        """Check that a topic of a name and a number could be made; gives its full name.

        Raises:
            TopicNumberTaken, InvalidTopicName.
        """
        if "/" in name or not name:
            raise InvalidTopicName(f"a topic cannot be named {name!r}")
        if number is not None and number in stream.topics:
            raise TopicNumberTaken(f"there is a topic {number} in {stream.name} already")
        return self._topic_name(stream, name)

    def number_topic(
        self, topic: Topic, number: int | None, attributes: Mapping[str, Any] | None = None
    ) -> Pending[None]:
        """Number a topic that was just made; None for the next number.

        The coming of topics is told after the work at hand, so that a topic made here has no number yet.
        """
        stream = self._by_name.get(flat_namespace(topic.name)) or self._unasked(flat_namespace(topic.name))
        if number is None or number in stream.topics:
            number = self._next(stream.name, stream.topics)
        self._number(stream, topic, number, dict(attributes or {}))
        return self._save_topic(topic.id)

    def set_topic_attributes(self, topic: Topic, attributes: Mapping[str, Any]) -> Pending[None]:
        """Replace what a protocol keeps with a topic."""
        self._numbered[topic.id].attributes = dict(attributes)
        return self._save_topic(topic.id)

    def rename_topic(self, stream: Stream, topic: Topic, name: str) -> Pending[None]:
        """Give a topic another name in its stream. Raises TopicExists, InvalidTopicName."""
        return self._topics.rename({topic.id: self.check_new_topic(stream, name, None)})

    def rename(self, stream: Stream, name: str) -> Pending[None]:
        """Give a stream another name, and thereby its topics in every protocol; lasting once the answer is there.

        Raises:
            StreamExists, TopicExists: the name, or that of one of its topics, is taken.
            InvalidNamespaceName: the name is none.
        """
        self.refresh()
        if name in self._by_name or {name, stream.name} & self._renaming:
            raise StreamExists(f"there is a stream {name} already, or is about to be", by_number=False)
        is_new = self._namespaces.by_flat_name(name) is None
        self._ensure_namespace(name)
        old, topics = stream.name, self.topics_of(stream)
        before, after = self._namespaces.by_flat_name(old), self._namespaces.by_flat_name(name)
        if is_new and before is not None and after is not None:
            self._keep(self._namespaces.update_policies(after, before.policies))
        stream.name = name
        names = {one.id: self._topic_name(stream, one.name.name) for one in topics}
        stream.name = old
        try:
            renamed = self._topics.rename(names)
        except BrokerError:
            if is_new and after is not None:
                self._keep(self._namespaces.delete(after))
            raise

        # Until it is known whether the names last, the namespaces of both stay, and become no streams of their own.
        self._renaming |= {old, name}

        def end(pending: Pending[None]) -> None:
            self._renaming -= {old, name}
            if pending.failed:
                if self._by_name.get(name) is stream:
                    self._move(stream, old)
                return
            there = self._namespaces.by_flat_name(old)
            # Whoever has made a topic there meanwhile keeps the namespace.
            if there is not None and not _is_default(there) and not self._namespaces.topics_in(there):
                self._keep(self._namespaces.delete(there))

        renamed.when_done(end)
        saved = self._move(stream, name)
        return renamed.chain(lambda _: saved)

    def _move(self, stream: Stream, name: str) -> Pending[None]:
        """Let a stream and all that is kept of its topics be under another name."""
        old = stream.name
        del self._by_name[old]
        stream.name = name
        self._enter(stream)
        for topic_id in stream.topics.values():
            self._numbered[topic_id].stream = name
            self._save_topic(topic_id)
        counter = self._counters.pop(old, None)
        if counter is not None:
            self._counters[name] = counter
            self._keep(self._documents.put(_COUNTER, name, {"next": counter}))
            self._keep(self._documents.delete(_COUNTER, old))
        self._keep(self._documents.delete(_STREAM, old))
        return self._save_stream(stream)

    def delete(self, stream: Stream) -> Pending[None]:
        """Delete a stream whose topics are deleted. Raises UnknownStream if it is not there."""
        if self._by_name.get(stream.name) is not stream:
            raise UnknownStream(f"there is no stream {stream.name}")
        namespace = self._namespaces.by_flat_name(stream.name)
        if namespace is not None and not _is_default(namespace):
            self._keep(self._namespaces.delete(namespace))
        return self._leave(stream)

    def _leave(self, stream: Stream) -> Pending[None]:
        del self._by_name[stream.name], self._by_number[stream.number]
        if self._counters.pop(stream.name, None) is not None:
            self._keep(self._documents.delete(_COUNTER, stream.name))
        return self._keep(self._documents.delete(_STREAM, stream.name))

    # Following the namespaces and the topics

    def refresh(self) -> None:
        """Number what has come, and forget what has gone."""
        for namespace in self._namespaces:
            if namespace.flat not in self._by_name and not self._is_spared(namespace):
                self._unasked(namespace.flat)
        for stream in list(self._by_name.values()):
            if self._namespaces.by_flat_name(stream.name) is None and stream.name not in self._renaming:
                self._leave(stream)
        for topic in self._topics:
            if topic.id not in self._numbered:
                name = flat_namespace(topic.name)
                stream = self._by_name.get(name) or self._unasked(name)
                self._number(stream, topic, _free(UNASKED_FROM, stream.topics), {})
                self._save_topic(topic.id)
        for topic_id in [one for one in self._numbered if self._topics.by_id(one) is None]:
            gone = self._numbered.pop(topic_id)
            stream_left = self._by_name.get(gone.stream)
            if stream_left is not None and stream_left.topics.get(gone.number) == topic_id:
                del stream_left.topics[gone.number]
            self._keep(self._documents.delete(_TOPIC, str(topic_id)))

    def _is_spared(self, namespace: Namespace) -> bool:
        """Whether a namespace without a stream stays without one."""
        return _is_default(namespace) or namespace.flat in self._renaming

    def _unasked(self, name: str) -> Stream:
        self._ensure_namespace(name)
        stream = Stream(name, _free(UNASKED_FROM, self._by_number), self._runtime.now_ms())
        self._enter(stream)
        self._save_stream(stream)
        return stream

    def _enter(self, stream: Stream) -> None:
        self._by_name[stream.name] = stream
        self._by_number[stream.number] = stream

    def _number(self, stream: Stream, topic: Topic, number: int, attributes: dict[str, Any]) -> None:
        stream.topics[number] = topic.id
        self._numbered[topic.id] = _Numbered(stream.name, number, attributes)

    def _next(self, scope: str, taken: Mapping[int, object]) -> int:
        number = _free(self._counters.get(scope, 0), taken)
        self._counters[scope] = number + 1
        self._keep(self._documents.put(_COUNTER, scope, {"next": number + 1}))
        return number

    def _save_stream(self, stream: Stream) -> Pending[None]:
        value = {"number": stream.number, "created_ms": stream.created_ms, "attributes": stream.attributes}
        return self._keep(self._documents.put(_STREAM, stream.name, value))

    def _save_topic(self, topic_id: UUID) -> Pending[None]:
        one = self._numbered[topic_id]
        value = {"stream": one.stream, "number": one.number, "attributes": one.attributes}
        return self._keep(self._documents.put(_TOPIC, str(topic_id), value))

    def _keep(self, pending: Pending[None]) -> Pending[None]:
        self._unsaved.add(pending)
        pending.when_done(self._unsaved.discard)
        return pending


def _is_default(namespace: Namespace) -> bool:
    return (namespace.tenant, namespace.name) == (DEFAULT_TENANT, DEFAULT_NAMESPACE)


def fold(name: str) -> str:
    """A name as protocols have it that tell names apart without regard to case: runs of white space are a dot."""
    return ".".join(name.lower().split())


def _free(start: int, taken: Mapping[int, object]) -> int:
    number = start
    while number in taken:
        number += 1
    return number
