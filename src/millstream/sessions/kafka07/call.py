"""What a handler of a Kafka 0.7 request is given besides the request."""

from dataclasses import dataclass

from millstream.broker.addresses import Addresses
from millstream.broker.broker import Broker
from millstream.sessions.session import Peer

__all__ = ["Call", "Kafka07Shared"]


@dataclass(slots=True)
class Kafka07Shared:
    """What all connections share.

    Args:
        broker: the broker.
        addresses: where records stand for these clients.
    """

    broker: Broker
    addresses: Addresses


@dataclass(slots=True)
class Call:
    """One connection, for its handlers."""

    shared: Kafka07Shared
    peer: Peer

    @property
    def broker(self) -> Broker:
        """The broker."""
        return self.shared.broker
