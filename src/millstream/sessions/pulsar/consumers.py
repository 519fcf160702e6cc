"""The consumers of a connection: what stands between a client's number and a subscription's consumer."""

import logging
import re
from collections.abc import Sequence
from typing import Final

from millstream.broker.subscriptions import CloseReason, Consumer, Delivery, Subscription
from millstream.sessions.pulsar.delivery import MessageEncoder
from millstream.sessions.pulsar.errors import ConsumerNotFound
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.message_ids import NO_REQUEST
from millstream.sessions.pulsar.names import Place
from millstream.sessions.pulsar.remembered import Remembered
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandActiveConsumerChange,
    CommandCloseConsumer,
    CommandReachedEndOfTopic,
)

__all__ = ["LinkedConsumer", "connected_consumer", "find_consumer"]

_log = logging.getLogger(__name__)
_TELLS_ACTIVE_FROM: Final = 12
_TELLS_END_FROM: Final = 9
"""The first protocol versions in which a client knows ACTIVE_CONSUMER_CHANGE and REACHED_END_OF_TOPIC."""
_FALL_AT_THE_END: Final = re.compile(r"Pulsar-CPP|Pulsar[- ]Go|\d")
"""How the versions of those clients begin that close the connection at REACHED_END_OF_TOPIC: C++, and with it Python
and Node.js, and Go. Older ones of C++ show a bare number; those of Java then did so too, and go without."""


class LinkedConsumer:
    """A consumer of one connection: the receiver of its subscription.

    Args:
        link: the connection.
        number: by which the client knows it.
        place: the partition that it reads.
        encoder: makes frames of what it is delivered.

    `ready` says whether the client was told that it is connected, `gone` whether it is no more.
    """

    def __init__(self, link: Link, number: int, place: Place, encoder: MessageEncoder) -> None:
        self.link = link
        self.number = number
        self.place = place
        self.partition = place.found()
        self.ready = False
        self.gone = False
        self._encoder = encoder
        self._consumer: Consumer | None = None

    # What its subscription is to it

    @property
    def consumer(self) -> Consumer:
        """Its side of the subscription, once it is connected."""
        assert self._consumer is not None, "only a connected consumer is served"
        return self._consumer

    @property
    def subscription(self) -> Subscription:
        """What it is subscribed to."""
        return self.consumer.subscription

    @property
    def ledger_id(self) -> int:
        """What stands in its message ids."""
        return self._encoder.ledger_id

    @property
    def remembered(self) -> Remembered:
        """What is remembered of its subscription."""
        return self.link.shared.memories.of(self.subscription)

    def connect(self, consumer: Consumer) -> None:
        """The subscription has taken it."""
        self._consumer = consumer
        self.ready = True

    def leave(self) -> None:
        """Part from the subscription, and from the connection; nothing happens a second time."""
        self.gone = True
        self.ready = False
        if self.link.consumers.get(self.number) is self:
            del self.link.consumers[self.number]
        if self._consumer is not None:
            self._consumer.close()

    # What its connection asks for

    def resume(self) -> None:
        """There is room for more."""
        if self.ready:
            self.consumer.resume()

    def close(self) -> None:
        """The connection is gone."""
        self.gone = True
        self.ready = False
        if self._consumer is not None:
            self._consumer.close()

    # What its subscription asks for

    def deliver(self, deliveries: Sequence[Delivery], epoch: int) -> None:
        """Send frames, in one write; see `Receiver.deliver`."""
        encoded = self._encoder.encode(deliveries, epoch, self.remembered)
        if encoded.buffers:
            self.link.write(encoded.buffers)
        for base_offset, wanted, records in encoded.empty:
            # There is nothing in it for anybody: it takes none of the permits, and is done with.
            self.consumer.acknowledge([(base_offset, wanted)])
            self.consumer.flow(records)

    def room_bytes(self) -> int:
        """Bytes that the connection has room for."""
        return self.link.peer.room_bytes()

    def active_changed(self, active: bool) -> None:
        """Tell the client whether it is the one of a Failover subscription that is delivered to."""
        if self.link.protocol_version >= _TELLS_ACTIVE_FROM:
            self.link.send(CommandActiveConsumerChange(consumer_id=self.number, is_active=active))

    def reached_end(self) -> None:
        """Tell the client that nothing will ever come again, unless it is one that takes this for nonsense."""
        link = self.link
        if link.protocol_version >= _TELLS_END_FROM and not _FALL_AT_THE_END.match(link.client_version):
            link.send(CommandReachedEndOfTopic(consumer_id=self.number))

    def closed(self, reason: CloseReason) -> None:
        """Tell the client that the broker has parted from it: it comes back by itself if it can."""
        link = self.link
        _log.info("consumer closed peer=%s consumer=%d reason=%s", link.peer.address, self.number, reason.value)
        self.gone = True
        self.ready = False
        if link.consumers.get(self.number) is self:
            del link.consumers[self.number]
            link.write([link.tell_closed(CommandCloseConsumer(consumer_id=self.number, request_id=NO_REQUEST))])


def find_consumer(link: Link, number: int) -> LinkedConsumer | None:
    """The connected consumer of a number; None if there is none, or it is still being connected."""
    linked = link.consumers.get(number)
    return linked if isinstance(linked, LinkedConsumer) and linked.ready else None


def connected_consumer(link: Link, number: int) -> LinkedConsumer:
    """The same. Raises ConsumerNotFound."""
    linked = find_consumer(link, number)
    if linked is None:
        raise ConsumerNotFound(f"there is no consumer {number} on this connection")
    return linked
