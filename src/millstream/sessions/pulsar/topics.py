"""Finding the topic of a command, and making it where Pulsar makes topics by itself."""

from millstream.broker.errors import UnknownTopic
from millstream.broker.namespaces import AutoTopicCreation
from millstream.broker.topics import Topic
from millstream.model.pending import Pending, settled
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.names import Place, PulsarName, find_place, is_partitioned, parse_name

__all__ = ["auto_create", "check_creation", "creation_rule", "link_place", "partition_count"]


def link_place(link: Link, text: str, *, create: bool = True) -> Pending[Place]:
    """The partition that a producer or a consumer names.

    Args:
        link: whose command it is.
        text: the topic's name, persistent.
        create: whether a topic that is not there may be made.

    Returns:
        Fails with UnknownTopic, InvalidTopicName, or what making a topic fails with.
    """
    return Pending.attempt(lambda: _place(link, parse_name(text), create=create))


def _place(link: Link, name: PulsarName, *, create: bool) -> Pending[Place]:
    broker = link.broker
    broker.namespaces.get(name.topic.tenant, name.topic.namespace)
    place = find_place(broker.topics, name)
    if place is not None:
        return settled(place)
    if not create:
        raise UnknownTopic(f"there is no topic {name}")

    def found(_: Topic) -> Place:
        made = find_place(broker.topics, name)
        if made is None:
            raise UnknownTopic(f"there is no topic {name}")
        return made

    return auto_create(link, name).then(found)


def auto_create(link: Link, name: PulsarName) -> Pending[Topic]:
    """Make a topic that was named, as its namespace has it.

    Raises:
        UnknownTopic: the namespace makes no topics by itself.
    """
    broker = link.broker
    rule = creation_rule(link, name)
    if not rule.allowed:
        raise UnknownTopic(f"there is no topic {name}, and none is made by itself in its namespace")
    if rule.partitions is not None and name.partition is None:
        return broker.topics.get_or_create(name.topic, partitions=rule.partitions, partitioned=True)
    return broker.topics.get_or_create(name.topic, partitions=1)


def check_creation(link: Link, name: PulsarName, *, create: bool) -> None:
    """Check that a topic that is not there may come to be. Raises UnknownTopic, NamespaceError."""
    allowed = creation_rule(link, name).allowed
    if not (create and allowed):
        raise UnknownTopic(f"there is no topic {name}")


def creation_rule(link: Link, name: PulsarName) -> AutoTopicCreation:
    """Whether and how a topic comes to be when it is asked for. Raises NamespaceError: there is no such namespace."""
    namespaces = link.broker.namespaces
    namespace = namespaces.get(name.topic.tenant, name.topic.namespace)
    return namespaces.auto_creation(namespace.tenant, namespace.name)


def partition_count(topic: Topic) -> int:
    """Partitions as Pulsar counts them: 0 for a topic that is not partitioned."""
    return len(topic.partitions) if is_partitioned(topic) else 0
