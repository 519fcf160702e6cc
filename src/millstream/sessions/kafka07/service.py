"""The Kafka 0.7 protocol, as the server sees it: a broker in, a session for each connection out."""

from millstream.broker.addresses import Addresses
from millstream.broker.broker import Broker
from millstream.model.frame import Magic
from millstream.sessions.compaction import KeylessFrameRecords
from millstream.sessions.kafka07.call import Kafka07Shared
from millstream.sessions.kafka07.encoding import MessageSets
from millstream.sessions.kafka07.session import Kafka07Session
from millstream.sessions.session import Peer, Session

__all__ = ["Kafka07Service"]


class Kafka07Service:
    """What all Kafka 0.7 connections share.

    Args:
        broker: the broker that they speak to.
    """

    def __init__(self, broker: Broker) -> None:
        encoding = MessageSets(broker.settings.kafka07_magic, broker.translated_frames)
        self.shared = Kafka07Shared(broker, Addresses(broker, encoding))
        broker.cleaner.replacing = self.shared.addresses.replacing
        broker.cleaner.readers[Magic.KAFKA07_SET] = KeylessFrameRecords()

    def session(self, peer: Peer) -> Session:
        """Make the session of a new connection."""
        return Kafka07Session(self.shared, peer)

    def close(self) -> None:
        """Follow the partitions no more."""
        self.shared.addresses.close()
