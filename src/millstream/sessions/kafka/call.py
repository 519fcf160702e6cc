"""What a handler of a Kafka request is given besides the request."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from uuid import UUID

from millstream.broker.authorizer import ANONYMOUS
from millstream.broker.broker import Broker
from millstream.broker.errors import UnknownTopic
from millstream.broker.partition import Partition
from millstream.broker.topics import Topic
from millstream.model.pending import Pending
from millstream.sessions.kafka.authentication import Authentication, Security
from millstream.sessions.kafka.fetch_sessions import FetchSessions
from millstream.sessions.session import Endpoint
from millstream.wire.kafka.schema import NO_UUID

__all__ = ["NODE_ID", "Call", "Client", "KafkaShared", "Wait"]

NODE_ID: Final = 0
"""The id of this server among the brokers of its cluster: it is the only one."""


class Wait(Protocol):
    """Something that waits for more data."""

    def finish(self) -> None:
        """Answer with what there is."""

    def call_off(self) -> None:
        """Do not answer any more."""


@dataclass(slots=True)
class KafkaShared:
    """What all Kafka connections share.

    `kept_bytes` counts the batches that wait until they may be written.
    """

    broker: Broker
    fetch_sessions: FetchSessions
    security: Security
    kept_bytes: int = 0


@dataclass(slots=True)
class Client:
    """One connection, as handlers see it.

    Args:
        host: the peer's address.
        endpoint: where its listener tells clients to connect.
        room_bytes: how much more may be queued for it to read.
        end: ends the connection, for a reason.
        end_answered: the same, once it has all the answers that it is due.
        hold: serves no more of its requests until `release`.
        waits: what waits for more data on its behalf.
        authentication: how far it has come to show who it is; None once it is let in.
        principal: who it is to ACLs, as TYPE:NAME.
    """

    host: str
    endpoint: Endpoint
    room_bytes: Callable[[], int]
    end: Callable[[str], None]
    end_answered: Callable[[str], None]
    hold: Callable[[], None]
    release: Callable[[], None]
    waits: set[Wait] = field(default_factory=set)
    authentication: Authentication | None = None
    principal: str = ANONYMOUS

    def admitted(self, name: str) -> None:
        """It has shown to be a user; where nobody need show that, it has only said so, and stays who it was."""
        if self.authentication is not None and self.authentication.checked:
            self.principal = f"User:{name}"
        self.authentication = None


@dataclass(slots=True)
class Call:
    """One request on its way through a handler.

    Args:
        service, client: whose it is.
        version, client_id: from its header.
        effects: what requests of other APIs behind it wait for, where that is not its answer.
    """

    service: KafkaShared
    client: Client
    version: int
    client_id: str | None
    effects: tuple[Pending[Any], ...] = ()

    @property
    def broker(self) -> Broker:
        """The broker."""
        return self.service.broker

    def topic(self, name: str | None, topic_id: UUID = NO_UUID) -> Topic | None:
        """The topic of a name or, in versions that have only that, of an id."""
        if topic_id.int:
            return self.service.broker.topics.by_id(topic_id)
        return self.service.broker.topics.by_flat_name(name or "")

    def partition(self, topic: Topic | None, index: int) -> Partition:
        """A partition of a topic. Raises UnknownTopic if either does not exist."""
        if topic is None or not 0 <= index < len(topic.partitions):
            raise UnknownTopic("this server does not host this topic-partition")
        return topic.partitions[index]
