"""Finding what a topic's name in a path stands for."""

from dataclasses import dataclass

from starlette.exceptions import HTTPException

from millstream.broker.errors import UnknownTopic
from millstream.broker.namespaces import Namespace
from millstream.broker.partition import Partition
from millstream.broker.topics import Topic
from millstream.model.frame import read_frame_header
from millstream.server.http.site import Site
from millstream.sessions.pulsar.message_ids import ledger_id_of
from millstream.sessions.pulsar.names import PulsarName, find_place, is_partitioned, topic_text

__all__ = ["Spot", "find_spot", "find_spots", "find_topic", "last_message_id", "names_in", "volatile_names_in"]


@dataclass(frozen=True, slots=True)
class Spot:
    """One partition.

    Args:
        topic: whose it is.
        index: its number.
        shown: the number that message ids carry: -1 if the topic is not partitioned.
    """

    topic: Topic
    index: int
    shown: int

    @property
    def partition(self) -> Partition:
        """The partition itself. Raises UnknownTopic: it was deleted meanwhile."""
        if self.index >= len(self.topic.partitions):
            raise UnknownTopic("the partition was deleted")
        return self.topic.partitions[self.index]

    @property
    def name(self) -> str:
        """Its full name."""
        return topic_text(self.topic.name, partition=self.shown)


def _check(site: Site, name: PulsarName) -> None:
    site.broker.namespaces.check(name.topic.tenant, name.topic.namespace)
    if not name.persistent:
        raise HTTPException(405, f"{name} is not persistent")


def find_topic(site: Site, name: PulsarName) -> Topic:
    """The topic of a name without a partition. Raises UnknownTopic, NamespaceError."""
    _check(site, name)
    topic = site.broker.topics.by_name(name.topic)
    if topic is None:
        raise UnknownTopic(f"Topic {name} not found")
    return topic


def find_spots(site: Site, name: PulsarName) -> list[Spot]:
    """What a name stands for: one partition, or all those of a partitioned topic."""
    _check(site, name)
    topic = site.broker.topics.by_name(name.topic)
    if topic is not None and is_partitioned(topic):
        return [Spot(topic, index, index) for index in range(len(topic.partitions))]
    return [find_spot(site, name)]


def find_spot(site: Site, name: PulsarName) -> Spot:
    """The one partition that a name stands for; that of a partitioned topic as a whole stands for none."""
    _check(site, name)
    place = find_place(site.broker.topics, name)
    if place is None:
        raise UnknownTopic(f"Topic {name} not found")
    return Spot(place.topic, place.partition, place.shown)


def names_in(site: Site, namespace: Namespace) -> list[str]:
    """The names of a namespace's topics, partitions one by one."""
    names: list[str] = []
    for topic in site.broker.namespaces.topics_in(namespace):
        shown = range(len(topic.partitions)) if is_partitioned(topic) else (-1,)
        names += (topic_text(topic.name, partition=number) for number in shown)
    return sorted(names)


def volatile_names_in(site: Site, namespace: Namespace) -> list[str]:
    """The names of a namespace's non-persistent topics that anybody is connected to."""
    place = (namespace.tenant, namespace.name)
    topics = (topic for topic in site.broker.volatile if topic.name[:2] == place)
    return sorted(topic_text(topic.name, persistent=False) for topic in topics)


def last_message_id(spot: Spot) -> dict[str, int]:
    """The id of the last entry of a partition; entry -1 if there is none."""
    log = spot.partition.log
    entry = -1
    if log.end_offset > log.start_offset:
        data, _ = log.read(log.end_offset - 1, 1)
        entry = read_frame_header(data).base_offset if data else log.end_offset - 1
    return {"ledgerId": ledger_id_of(spot.topic), "entryId": entry, "partitionIndex": spot.shown}
