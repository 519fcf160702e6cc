"""The commands of consumers on topics that keep nothing: non-persistent://...

There is nothing to acknowledge, to seek or to deliver again: such commands are taken, and do nothing, or are refused
where their answer would have to name a message.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import Protocol, TypeVar

from millstream.broker.subscriptions import CloseReason, Delivery, StartAt, Subscribing, SubscriptionInUse
from millstream.broker.volatile import VolatileConsumer, VolatileTopic
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.sessions.pulsar.consumer_stats import KIND_NAMES
from millstream.sessions.pulsar.delivery import MessageEncoder
from millstream.sessions.pulsar.errors import NotAllowed
from millstream.sessions.pulsar.inspector import EntryInspector
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.names import PulsarName, parse_name
from millstream.sessions.pulsar.remembered import Remembered
from millstream.sessions.pulsar.schemas import check_consumer_schema, declared
from millstream.sessions.pulsar.subscribe import check_consumer_count
from millstream.sessions.pulsar.subscribe_request import KINDS, check_subscribe, key_shared_policy, message_encoder
from millstream.sessions.pulsar.volatile_producers import enter_topic
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandAck,
    CommandAckResponse,
    CommandActiveConsumerChange,
    CommandCloseConsumer,
    CommandConsumerStats,
    CommandConsumerStatsResponse,
    CommandFlow,
    CommandGetLastMessageId,
    CommandRedeliverUnacknowledgedMessages,
    CommandSeek,
    CommandSubscribe,
    CommandSuccess,
    CommandUnsubscribe,
)

__all__ = [
    "LinkedVolatileConsumer",
    "handle_ack",
    "handle_close_consumer",
    "handle_consumer_stats",
    "handle_flow",
    "handle_refused",
    "handle_subscribe",
    "handle_unheeded",
    "of_consumer",
    "of_topic",
]

_log = logging.getLogger(__name__)
_GIVEN_NAME_BYTES = 5
C = TypeVar("C", bound="_OfConsumer")
N = TypeVar("N", bound="_OfTopic")


class _OfConsumer(Protocol):
    @property
    def consumer_id(self) -> int: ...


class _OfTopic(Protocol):
    @property
    def topic(self) -> str: ...


def of_topic(kept: Callable[[Link, N], None], volatile: Callable[[Link, N], None]) -> Callable[[Link, N], None]:
    """A handler of commands that name a topic: one for topics with a log, and one for those that keep nothing."""

    @wraps(kept)
    def handle(link: Link, command: N) -> None:
        (kept if parse_name(command.topic).persistent else volatile)(link, command)

    return handle


def of_consumer(kept: Callable[[Link, C], None], volatile: Callable[[Link, C], None]) -> Callable[[Link, C], None]:
    """The same of commands that name a consumer of the connection."""

    @wraps(kept)
    def handle(link: Link, command: C) -> None:
        linked = link.consumers.get(command.consumer_id)
        (volatile if isinstance(linked, LinkedVolatileConsumer) else kept)(link, command)

    return handle


class LinkedVolatileConsumer:
    """A consumer of one connection, on a topic that keeps nothing: the receiver of its subscription.

    Args:
        link: the connection.
        number: by which the client knows it.
        topic: what it reads; it has entered it.
        encoder: makes frames of what it is delivered.
    """

    def __init__(self, link: Link, number: int, topic: VolatileTopic, encoder: MessageEncoder) -> None:
        self.link = link
        self.number = number
        self.topic = topic
        self.gone = False
        self.consumer: VolatileConsumer | None = None
        self._encoder = encoder
        self._remembered = Remembered()

    # What its connection asks for

    def resume(self) -> None:
        """What there was no room for is gone."""

    def close(self) -> None:
        """Leave the subscription and the topic; nothing happens a second time."""
        if not self.gone:
            self.gone = True
            if self.link.consumers.get(self.number) is self:
                del self.link.consumers[self.number]
            if self.consumer is not None:
                self.consumer.close()
            self.link.broker.volatile.leave(self.topic)

    # What its subscription asks for

    def deliver(self, deliveries: Sequence[Delivery], epoch: int) -> None:
        """Send frames; see `Receiver.deliver`."""
        self.link.write(self._encoder.encode(deliveries, epoch, self._remembered).buffers)

    def room_bytes(self) -> int:
        """Bytes that the connection has room for."""
        return 0 if self.gone else self.link.peer.room_bytes()

    def active_changed(self, active: bool) -> None:
        """Tell the client whether it is the one of a Failover subscription that is delivered to."""
        self.link.send(CommandActiveConsumerChange(consumer_id=self.number, is_active=active))

    def reached_end(self) -> None:
        """It never comes to that: such a topic is not terminated."""

    def closed(self, reason: CloseReason) -> None:
        """It never comes to that: only its client ends such a consumer."""


def handle_subscribe(link: Link, command: CommandSubscribe) -> None:
    """Connect a consumer to a topic that keeps nothing."""
    number = command.consumer_id
    there = link.consumers.get(number)
    if isinstance(there, LinkedVolatileConsumer) and there.consumer is not None:
        link.send(CommandSuccess(request_id=command.request_id))
        return
    check_consumer_count(link)
    check_subscribe(command)
    if command.read_compacted:
        raise NotAllowed("a topic that keeps nothing is not compacted")
    if there is not None:
        raise NotAllowed(f"the consumer {number} is being connected already")
    name = parse_name(command.topic)
    topic = enter_topic(link, name, create=command.force_topic_creation)
    shown = -1 if name.partition is None else name.partition
    encoder = message_encoder(link, command, topic.number, shown, (topic.id, 0), None)
    linked = LinkedVolatileConsumer(link, number, topic, encoder)
    link.consumers[number] = linked

    def forget(done: Pending[VolatileConsumer]) -> None:
        try:
            done.result()
        except MillstreamError:
            linked.close()

    def enter(consumer: VolatileConsumer) -> CommandSuccess | None:
        linked.consumer = consumer
        if linked.gone:
            consumer.close()
            return None
        return CommandSuccess(request_id=command.request_id)

    checked = Pending.attempt(lambda: _check_schema(link, name, command))
    connecting = checked.chain(lambda _: _connect(linked, command, _request(link, command, name, topic)))
    connecting.when_done(forget)
    link.answer(command.request_id, connecting, enter)


def _check_schema(link: Link, name: PulsarName, command: CommandSubscribe) -> Pending[None]:
    schema = command.schema if command.HasField("schema") else None
    found = declared(link, name, schema)
    return found.chain(lambda topic: settled(None) if topic is None else check_consumer_schema(link, topic, schema))


def _request(link: Link, command: CommandSubscribe, name: PulsarName, topic: VolatileTopic) -> Subscribing:
    return Subscribing(
        kind=KINDS[command.subType],
        consumer_name=command.consumer_name or link.broker.runtime.random_bytes(_GIVEN_NAME_BYTES).hex(),
        inspector=EntryInspector((topic.id, 0), link.shared.translations),
        start=StartAt.LATEST,
        priority=command.priority_level,
        epoch=command.consumer_epoch,
        key_shared=key_shared_policy(command.keySharedMeta),
    )


def _connect(
    linked: LinkedVolatileConsumer, command: CommandSubscribe, request: Subscribing
) -> Pending[VolatileConsumer]:
    """Subscribe; if another connection's consumer is in the way, see whether it is there, and try again if not."""
    topic, name = linked.topic, command.subscription
    try:
        return settled(topic.subscribe(name, request, linked))
    except SubscriptionInUse as busy:
        subscription = topic.find(name)
        holder = subscription.consumers[0].receiver if subscription is not None else None
        if not isinstance(holder, LinkedVolatileConsumer) or holder.link is linked.link:
            raise
        refusal = busy

    def decide(alive: bool) -> VolatileConsumer:
        if alive and not holder.gone:
            raise refusal
        holder.close()
        return topic.subscribe(name, request, linked)

    return holder.link.probe().then(decide)


def _consumer(link: Link, number: int) -> VolatileConsumer | None:
    linked = link.consumers.get(number)
    return linked.consumer if isinstance(linked, LinkedVolatileConsumer) else None


def handle_flow(link: Link, command: CommandFlow) -> None:
    """Give a consumer permits."""
    consumer = _consumer(link, command.consumer_id)
    if consumer is not None:
        consumer.flow(command.messagePermits)


def handle_ack(link: Link, command: CommandAck) -> None:
    """Answer an acknowledgement, if an answer is wanted: what was delivered is done with."""
    if command.HasField("request_id"):
        link.send(CommandAckResponse(consumer_id=command.consumer_id, request_id=command.request_id))


def handle_unheeded(link: Link, command: CommandRedeliverUnacknowledgedMessages) -> None:
    """Nothing is left to be delivered again, and no answer is wanted."""


def handle_refused(link: Link, command: CommandSeek | CommandGetLastMessageId) -> None:
    """Refuse what would have to find a message. Raises NotAllowed."""
    raise NotAllowed("a topic that keeps nothing has no messages to find")


def handle_close_consumer(link: Link, command: CommandUnsubscribe | CommandCloseConsumer) -> None:
    """Let a consumer go; its subscription goes with its last one."""
    linked = link.consumers.get(command.consumer_id)
    if linked is not None:
        linked.close()
    link.send(CommandSuccess(request_id=command.request_id))


def handle_consumer_stats(link: Link, command: CommandConsumerStats) -> None:
    """Tell the figures of a consumer."""
    consumer = _consumer(link, command.consumer_id)
    if consumer is None:
        raise NotAllowed(f"the consumer {command.consumer_id} is being connected")
    figures, kind = consumer.stats(), consumer.subscription.kind
    link.send(
        CommandConsumerStatsResponse(
            request_id=command.request_id,
            msgRateOut=figures.record_rate,
            msgThroughputOut=figures.byte_rate,
            consumerName=figures.name,
            availablePermits=max(figures.permits, 0),
            address=link.peer.address,
            connectedSince=datetime.fromtimestamp(figures.connected_ms / 1000, UTC).isoformat(
                timespec="milliseconds"
            ),
            type=KIND_NAMES[kind] if kind is not None else "None",
        )
    )
