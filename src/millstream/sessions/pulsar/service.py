"""The Pulsar protocol, as the server sees it: a broker in, a session for each connection out."""

from functools import partial

from millstream.broker.broker import Broker
from millstream.model.frame import Magic
from millstream.sessions.pulsar.authentication import Tokens
from millstream.sessions.pulsar.compaction import PulsarFrameRecords
from millstream.sessions.pulsar.holders import PROTOCOL, consumers_of
from millstream.sessions.pulsar.link import PulsarShared
from millstream.sessions.pulsar.session import PulsarSession
from millstream.sessions.session import Peer, Session

__all__ = ["PulsarService"]


class PulsarService:
    """What all Pulsar connections share.

    Args:
        broker: the broker that they speak to.
        token_secret: what clients' tokens are signed with; None lets everyone in.
    """

    def __init__(self, broker: Broker, token_secret: bytes | None = None) -> None:
        tokens = None if token_secret is None else Tokens(token_secret, broker.runtime)
        self._shared = PulsarShared(
            broker, broker_entry_metadata=broker.settings.broker_entry_metadata, tokens=tokens
        )
        broker.compaction.records = broker.cleaner.readers[Magic.PULSAR_ENTRY] = PulsarFrameRecords()
        subscriptions = broker.subscriptions
        broker.holders.register(
            PROTOCOL, partial(consumers_of, broker), subscriptions.under_way, subscriptions.names_in_use
        )

    def session(self, peer: Peer) -> Session:
        """Make the session of a new connection."""
        return PulsarSession(self._shared, peer)

    def close(self) -> None:
        """Nothing runs by itself here."""
