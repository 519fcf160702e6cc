"""The consumers of durable subscriptions, as others see them who would read under the same name."""

from collections.abc import Iterator

from millstream.broker.broker import Broker
from millstream.broker.holders import Holder
from millstream.sessions.pulsar.consumers import LinkedConsumer

__all__ = ["PROTOCOL", "consumers_of"]

PROTOCOL = "pulsar"


def consumers_of(broker: Broker, name: str) -> Iterator[Holder]:
    """The consumers of the subscriptions of a name."""
    for subscription in broker.subscriptions.named(name):
        topic_id, partition = subscription.place
        topic = broker.topics.by_id(topic_id)
        if topic is None or not subscription.durable:
            continue
        for consumer in subscription.consumers:
            receiver = consumer.receiver
            host = receiver.link.peer.address if isinstance(receiver, LinkedConsumer) else ""
            yield Holder(
                protocol=PROTOCOL,
                id=f"{consumer.name or host}-{consumer.number}",
                client=consumer.name,
                host=host,
                topic=topic.name.flat,
                partitions=(partition,),
            )
