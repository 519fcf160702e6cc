"""SUBSCRIBE: connecting a consumer to a subscription of one partition.

Source: Pulsar binary protocol specification 3.0, "Consumer"; Key_Shared, PIP-34; readers, PIP-13.
"""

from collections.abc import Callable
from typing import Final

from millstream.broker.errors import GroupHeld
from millstream.broker.subscriptions import Consumer, ConsumerBusy
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.sessions.pulsar.consumers import LinkedConsumer
from millstream.sessions.pulsar.errors import NotAllowed, NotReady, TooManyConsumers
from millstream.sessions.pulsar.holders import PROTOCOL
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.names import Place
from millstream.sessions.pulsar.schemas import check_consumer_schema
from millstream.sessions.pulsar.subscribe_request import check_subscribe, encoder_for, subscribing
from millstream.sessions.pulsar.topics import link_place
from millstream.wire.pulsar.pulsar_pb2 import CommandSubscribe, CommandSuccess

__all__ = ["check_consumer_count", "handle_subscribe"]

_CONSUMERS_MAX: Final = 10_000
"""Consumers of one connection: clients have one for each topic and partition that they read."""


class _Arriving:
    """Holds the number of a consumer whose topic is still being looked for, or made."""

    def resume(self) -> None:
        """Nothing is held back yet."""

    def close(self) -> None:
        """Nothing is connected yet; that the number was let go of is what counts."""


def check_consumer_count(link: Link) -> None:
    """Refuse a consumer over the limit of a connection. Raises NotAllowed."""
    if len(link.consumers) >= _CONSUMERS_MAX:
        raise NotAllowed(f"a connection has at most {_CONSUMERS_MAX} consumers")


def handle_subscribe(link: Link, command: CommandSubscribe) -> None:
    """Connect a consumer."""
    number = command.consumer_id
    there = link.consumers.get(number)
    if isinstance(there, LinkedConsumer) and there.ready:
        # Asked a second time, because the answer took too long: it is the same answer.
        link.send(CommandSuccess(request_id=command.request_id))
        return
    if there is not None:
        raise NotReady(f"the consumer {number} is being connected already")
    check_consumer_count(link)
    check_subscribe(command)
    arriving = link.consumers[number] = _Arriving()

    def check(place: Place) -> Pending[Place]:
        schema = command.schema if command.HasField("schema") else None
        return check_consumer_schema(link, place.topic, schema).then(lambda _: place)

    def connect(place: Place) -> Pending[bool]:
        if link.consumers.get(number) is not arriving:
            return settled(False)
        return _connect(link, command, place)

    def wait(place: Place) -> Pending[Place]:
        at_rest = link.broker.holders.at_rest(command.subscription, PROTOCOL)
        return settled(place) if at_rest is None else at_rest.then(lambda _: place)

    def forget(_: Pending[bool]) -> None:
        if link.consumers.get(number) is arriving:
            del link.consumers[number]

    placed = link_place(link, command.topic, create=command.force_topic_creation)
    connected = placed.chain(check).chain(wait).chain(connect)
    connected.when_done(forget)
    link.answer(
        command.request_id,
        connected,
        lambda done: CommandSuccess(request_id=command.request_id) if done else None,
    )


def _connect(link: Link, command: CommandSubscribe, place: Place) -> Pending[bool]:
    """Connect to the subscription; resolves with False if the client has given up meanwhile."""
    number = command.consumer_id
    _check_holders(link, command, place)
    _check_counts(link, command.subscription, place)
    request = subscribing(link, command, place)
    linked = LinkedConsumer(link, number, place, encoder_for(link, command, place, request))
    link.consumers[number] = linked

    def subscribe() -> Pending[Consumer]:
        subscriptions = link.broker.subscriptions
        return subscriptions.subscribe(place.topic, place.partition, command.subscription, request, linked)

    def enter(consumer: Consumer) -> bool:
        if linked.gone:
            consumer.close()
            return False
        linked.connect(consumer)
        return True

    def check(consumer: Consumer) -> Consumer:
        try:
            _check_holders(link, command, place)  # another may have come while the subscription was being made
        except GroupHeld:
            consumer.close()
            raise
        return consumer

    def forget(done: Pending[Consumer]) -> None:
        try:
            done.result()
        except MillstreamError:
            linked.leave()

    connecting = _persist(subscribe, linked).then(check)
    connecting.when_done(forget)
    return connecting.then(enter)


def _check_holders(link: Link, command: CommandSubscribe, place: Place) -> None:
    """Refuse a consumer if clients of another protocol read its topic under that name. Raises GroupHeld."""
    if command.durable:
        link.broker.holders.check(command.subscription, [place.topic], PROTOCOL)


def _check_counts(link: Link, name: str, place: Place) -> None:
    """Refuse a consumer over one of the limits of its namespace. Raises NotAllowed, TooManyConsumers."""
    topic = place.topic
    namespace = link.broker.namespaces.find(topic.name.tenant, topic.name.namespace)
    if namespace is None:
        return
    policies, subscriptions = namespace.policies, link.broker.subscriptions
    names_max, topic_max = policies.subscriptions_per_topic_max, policies.consumers_per_topic_max
    subscription_max = policies.consumers_per_subscription_max
    if not (names_max or topic_max or subscription_max):
        return
    names = subscriptions.names(topic, place.partition)
    if names_max and name not in names and len(names) >= names_max:
        raise NotAllowed(f"the topic has {len(names)} subscriptions, as many as its namespace allows")
    found = {one: subscriptions.find(topic, place.partition, one) for one in names}
    counts = {one: len(subscription.consumers) for one, subscription in found.items() if subscription is not None}
    if topic_max and sum(counts.values()) >= topic_max:
        raise TooManyConsumers(f"the topic has {topic_max} consumers, as many as its namespace allows")
    if subscription_max and counts.get(name, 0) >= subscription_max:
        raise TooManyConsumers(f"the subscription has {subscription_max} consumers, as many as its namespace allows")


def _persist(subscribe: Callable[[], Pending[Consumer]], linked: LinkedConsumer) -> Pending[Consumer]:
    """Subscribe; if another connection's consumer is in the way, see whether it is there, and try again if not."""
    connected: Pending[Consumer] = Pending()

    def settle(done: Pending[Consumer]) -> None:
        try:
            consumer = done.result()
        except (MillstreamError, OSError) as error:
            connected.fail(error)
        else:
            connected.resolve(consumer)

    def look(done: Pending[Consumer]) -> None:
        try:
            done.result()
        except ConsumerBusy as busy:
            holder = busy.holder.receiver
            if isinstance(holder, LinkedConsumer) and holder.link is not linked.link:
                holder.link.probe().when_done(lambda alive: again(alive.result(), holder, done))
                return
        except (MillstreamError, OSError):
            pass  # `settle` hands it on
        settle(done)

    def again(alive: bool, holder: LinkedConsumer, done: Pending[Consumer]) -> None:
        if linked.gone or (alive and not holder.gone):
            settle(done)
            return
        holder.leave()
        subscribe().when_done(settle)

    subscribe().when_done(look)
    return connected
