"""The Kafka protocol, as the server sees it: a broker in, a session for each connection out."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from millstream.broker.broker import Broker
from millstream.broker.credentials import Credentials
from millstream.model.frame import Magic
from millstream.sessions.kafka.authentication import Authentication, Security
from millstream.sessions.kafka.call import Client, KafkaShared
from millstream.sessions.kafka.compaction import KafkaFrameRecords
from millstream.sessions.kafka.embedded_protocol import ConsumerProtocol
from millstream.sessions.kafka.fetch_sessions import FetchSessions
from millstream.sessions.kafka.holders import PROTOCOL, members_of
from millstream.sessions.kafka.session import KafkaSession
from millstream.sessions.kafka.topic_pattern import TopicPatterns
from millstream.sessions.session import Peer, Session

__all__ = ["KafkaService"]


class KafkaService:
    """What all Kafka connections share.

    Args:
        broker: the broker that they speak to.
        passwords: of users, by name, for clients that must show who they are.
    """

    def __init__(self, broker: Broker, passwords: Mapping[str, str] = MappingProxyType({})) -> None:
        runtime = broker.runtime
        fetch_sessions = FetchSessions(broker.settings.fetch_sessions_max, runtime.random_bytes, runtime.monotonic_ms)
        credentials = Credentials(runtime, broker.documents, passwords)
        security = Security(credentials, broker.settings.sasl_mechanisms, runtime)
        self._shared = KafkaShared(broker, fetch_sessions, security)
        broker.cleaner.readers[Magic.KAFKA_V2] = KafkaFrameRecords()
        broker.holders.register(PROTOCOL, partial(members_of, broker.groups))
        broker.groups.environment.embedded = ConsumerProtocol()
        broker.groups.environment.patterns = TopicPatterns(broker.authorizer)
        broker.groups.environment.held = partial(broker.holders.barred, protocol=PROTOCOL)

    def session(self, peer: Peer) -> Session:
        """Make the session of a new connection."""
        endpoint = peer.endpoint("")
        if endpoint is None:
            raise RuntimeError("a connection came in on no listener")
        client = Client(peer.host, endpoint, peer.room_bytes, peer.end, peer.end_answered, peer.hold, peer.release)
        certified_name = peer.certified_name
        if certified_name is not None:
            client.principal = f"User:{certified_name}"
        security = self._shared.security
        if security.required:
            client.authentication = Authentication(security)
        return KafkaSession(self._shared, client)

    def close(self) -> None:
        """Nothing runs by itself here."""
