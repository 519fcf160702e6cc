"""The Kafka protocol, as the server sees it: a broker in, a session for each connection out."""

from functools import partial

from millstream.broker.broker import Broker
from millstream.sessions.kafka.call import Client, KafkaShared
from millstream.sessions.kafka.fetch_sessions import FetchSessions
from millstream.sessions.kafka.holders import PROTOCOL, members_of
from millstream.sessions.kafka.session import KafkaSession
from millstream.sessions.session import Peer, Session

__all__ = ["KafkaService"]


class KafkaService:
    """What all Kafka connections share.

    Args:
        broker: the broker that they speak to.
    """

    def __init__(self, broker: Broker) -> None:
        runtime = broker.runtime
        fetch_sessions = FetchSessions(broker.settings.fetch_sessions_max, runtime.random_bytes, runtime.monotonic_ms)
        self._shared = KafkaShared(broker, fetch_sessions)
        broker.holders.register(PROTOCOL, partial(members_of, broker.groups))

    def session(self, peer: Peer) -> Session:
        """Make the session of a new connection."""
        endpoint = peer.endpoint("")
        if endpoint is None:
            raise RuntimeError("a connection came in on no listener")
        return KafkaSession(self._shared, Client(peer.host, endpoint, peer.room_bytes))

    def close(self) -> None:
        """Nothing runs by itself here."""
