"""Unloading and deleting: parting from whoever is connected to a topic, and removing topics and namespaces."""

from collections.abc import Iterable

from starlette.exceptions import HTTPException

from millstream.broker.errors import ProducerFenced, UnknownTopic
from millstream.broker.namespaces import Namespace, NamespaceNotEmpty
from millstream.broker.subscriptions import CloseReason
from millstream.broker.topics import Topic
from millstream.broker.volatile import VolatileTopic
from millstream.server.http.site import Site, outcome

__all__ = ["delete_namespace", "delete_topic", "in_use", "part_from_clients", "part_from_volatile"]


def part_from_clients(site: Site, topic: Topic, indexes: Iterable[int]) -> None:
    """Close the producers and consumers that are connected to some partitions. Their clients connect again."""
    broker = site.broker
    for index in indexes:
        for producer in broker.producers.of(topic.id, index):
            broker.producers.disconnect(topic.id, index, producer)
            producer.displaced(ProducerFenced("the topic is being unloaded"))
        for name in broker.subscriptions.names(topic, index):
            subscription = broker.subscriptions.find(topic, index, name)
            for consumer in list(subscription.consumers) if subscription is not None else ():
                consumer.close()
                consumer.receiver.closed(CloseReason.UNLOADED)


def part_from_volatile(site: Site, topic: VolatileTopic) -> None:
    """Close the producers and consumers of a topic that keeps nothing, which ends it unless they come again."""
    for producer in site.broker.producers.of(topic.id, 0):
        site.broker.producers.disconnect(topic.id, 0, producer)
        producer.displaced(ProducerFenced("the topic is being unloaded"))
    for subscription in topic.subscriptions:
        for consumer in list(subscription.consumers):
            consumer.close()
            consumer.receiver.closed(CloseReason.UNLOADED)


def in_use(site: Site, topic: Topic) -> bool:
    """Whether producers or consumers are connected to a topic."""
    broker = site.broker
    for index in range(len(topic.partitions)):
        if next(broker.producers.of(topic.id, index), None) is not None:
            return True
        for name in broker.subscriptions.names(topic, index):
            subscription = broker.subscriptions.find(topic, index, name)
            if subscription is not None and subscription.consumers:
                return True
    return False


async def delete_topic(site: Site, topic: Topic, *, force: bool) -> None:
    """Delete a topic; with force even if somebody is connected to it."""
    if in_use(site, topic):
        if not force:
            raise HTTPException(412, "Topic has active producers/subscriptions")
        part_from_clients(site, topic, range(len(topic.partitions)))
    await outcome(site.broker.delete_topic(topic))


async def delete_namespace(site: Site, namespace: Namespace, *, force: bool) -> None:
    """Delete a namespace; with force together with its topics."""
    namespaces = site.broker.namespaces
    declared = site.broker.volatile.declarations.in_namespace(namespace.tenant, namespace.name)
    if not force and any(one.partitions for one in declared):
        raise NamespaceNotEmpty(f"the namespace {namespace} has topics")
    if force:
        for topic in namespaces.topics_in(namespace):
            try:
                await delete_topic(site, topic, force=True)
            except UnknownTopic:
                continue  # somebody else has just deleted it
    await outcome(namespaces.delete(namespace))
    for one in declared:
        await outcome(site.broker.forget_volatile(one.name))
