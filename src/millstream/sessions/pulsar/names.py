"""Topic names as Pulsar writes them.

    persistent://tenant/namespace/name            non-persistent://tenant/namespace/name
    tenant/namespace/name, name                   short for persistent, and for public/default
    persistent://tenant/cluster/namespace/name    the old form; the cluster is left out, there is one
    ...-partition-3                               one partition of a topic

Source: Pulsar binary protocol specification 3.0 and 1.x, "Topic names".
"""

from typing import Final, NamedTuple

from millstream.broker.errors import InvalidTopicName, UnknownTopic
from millstream.broker.partition import Partition
from millstream.broker.topics import Topic, Topics
from millstream.model.topic_name import DEFAULT_NAMESPACE, DEFAULT_TENANT, TopicName

__all__ = ["Place", "PulsarName", "find_place", "is_partitioned", "parse_name", "topic_text"]

_DOMAINS: Final = {"persistent": True, "non-persistent": False}
_NAME_BYTES_MAX: Final = 1024
"""Bytes of one part of a name: more than any user wants, and little enough to quote."""


class PulsarName(NamedTuple):
    """A topic's name, taken apart.

    Args:
        persistent: whether its domain is `persistent`.
        topic: the name as it stands there, a suffix for a partition included.
        base: without such a suffix; the same if there is none.
        partition: the number in the suffix, None if there is none.
    """

    persistent: bool
    topic: TopicName
    base: TopicName
    partition: int | None

    def __str__(self) -> str:
        return topic_text(self.topic, persistent=self.persistent)


class Place(NamedTuple):
    """A partition of a topic, found by its Pulsar name.

    Args:
        topic: the topic.
        partition: the partition's number.
        shown: the number that message ids carry: -1 if the topic is not partitioned.
    """

    topic: Topic
    partition: int
    shown: int

    def found(self) -> Partition:
        """The partition itself. Raises UnknownTopic: it was deleted since it was found."""
        partitions = self.topic.partitions
        if self.partition >= len(partitions):
            raise UnknownTopic("the partition was deleted")
        return partitions[self.partition]


def parse_name(text: str) -> PulsarName:
    """Take a name apart.

    Raises:
        InvalidTopicName: it is none.
    """
    domain, separator, rest = text.partition("://")
    if not separator:
        domain, rest = "persistent", text if "/" in text else f"{DEFAULT_TENANT}/{DEFAULT_NAMESPACE}/{text}"
    parts = rest.split("/")
    if len(parts) == 4:
        del parts[1]
    if domain not in _DOMAINS or len(parts) != 3:
        raise InvalidTopicName(f"{text!r} is no topic name: persistent://tenant/namespace/name is one")
    tenant, namespace, name = parts
    # Pulsar's own clients allow less in these two; but they are streams to Iggy's, which do not.
    for part in (tenant, namespace):
        if not part.strip() or not part.isprintable() or len(part) > _NAME_BYTES_MAX:
            raise InvalidTopicName(f"{part!r} is not the name of a tenant or a namespace")
    if not name or len(name.encode()) > _NAME_BYTES_MAX or not name.isprintable():
        raise InvalidTopicName(f"a topic's name has 1 to {_NAME_BYTES_MAX} bytes of printable text")
    topic = TopicName(tenant, namespace, name)
    base, partition = topic.split_partition() or (topic, None)
    return PulsarName(_DOMAINS[domain], topic, base, partition)


def topic_text(name: TopicName, *, persistent: bool = True, partition: int = -1) -> str:
    """The full text of a name, with the suffix of a partition if that is not negative."""
    suffix = f"-partition-{partition}" if partition >= 0 else ""
    return f"{'' if persistent else 'non-'}persistent://{name.tenant}/{name.namespace}/{name.name}{suffix}"


def is_partitioned(topic: Topic) -> bool:
    """Whether Pulsar clients see a topic's partitions as topics of their own."""
    return topic.partitioned or len(topic.partitions) > 1


def find_place(topics: Topics, name: PulsarName) -> Place | None:
    """The partition that a persistent name stands for; None if there is no such topic.

    Raises:
        UnknownTopic: the topic is there, but the name has no partition, or one that it does not have.
    """
    topic = topics.by_name(name.topic)
    if topic is not None:
        if not is_partitioned(topic):
            return Place(topic, 0, -1)
        raise UnknownTopic(f"{name} is partitioned: its partitions have names of their own")
    if name.partition is None:
        return None
    topic = topics.by_name(name.base)
    if topic is None or not is_partitioned(topic):
        return None
    if name.partition >= len(topic.partitions):
        raise UnknownTopic(f"{name} is behind the last partition")
    return Place(topic, name.partition, name.partition)
