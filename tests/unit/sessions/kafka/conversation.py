"""A Kafka client's side of a session without a socket: typed requests in, typed answers out, on virtual time."""

from collections.abc import Iterable
from typing import Any, ClassVar
from uuid import UUID

from millstream.broker.credentials import Credentials
from millstream.broker.partition import Partition
from millstream.model.pending import Pending, settled
from millstream.sessions.kafka.authentication import Authentication, Security
from millstream.sessions.kafka.call import Client, KafkaShared
from millstream.sessions.kafka.fetch_sessions import FetchSessions
from millstream.sessions.kafka.session import KafkaSession
from millstream.sessions.session import Endpoint
from millstream.wire.kafka.api import Api
from millstream.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.wire.kafka.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import SimulatedBroker

__all__ = ["Conversation", "fetch_request", "produce_request"]

CORRELATION_ID = 7
BY_NAME = 12
"""The last version of Produce and Fetch that names topics."""


class Conversation(SimulatedBroker):
    """One client of a simulated broker. Arguments as for `SimulatedBroker`."""

    room_bytes = 64 * 1024 * 1024
    passwords: ClassVar[dict[str, str]] = {}

    def start(self) -> None:
        super().start()
        slots = self.broker.settings.fetch_sessions_max
        sessions = FetchSessions(slots, self.runtime.random_bytes, self.runtime.monotonic_ms)
        credentials = Credentials(self.runtime, self.broker.documents, self.passwords)
        security = Security(credentials, self.broker.settings.sasl_mechanisms, self.runtime)
        self.service = KafkaShared(self.broker, sessions, security)
        self.connect()

    def connect(self) -> None:
        """Begin a new connection."""
        self.ended: list[str] = []
        self.held = 0
        self.client = Client(
            "127.0.0.1",
            Endpoint("broker.example", 9092),
            lambda: self.room_bytes,
            end=self.ended.append,
            end_answered=self.ended.append,
            hold=lambda: self._count_hold(1),
            release=lambda: self._count_hold(-1),
        )
        if self.service.security.required:
            self.client.authentication = Authentication(self.service.security)
        self.session = KafkaSession(self.service, self.client)

    def _count_hold(self, change: int) -> None:
        self.held += change

    def send(self, api: Api, request: object, version: int | None = None) -> Pending[Any] | None:
        """Send a request, in the latest version by default.

        Returns:
            The decoded answer, None if there will be none.
        """
        version = api.versions.stop - 1 if version is None else version
        frame = bytearray(b"".join(api.encode_request(version, CORRELATION_ID, "client", request)))
        answer = self.session.handle(memoryview(frame)[4:])
        if answer is None:
            return None
        pending = answer if isinstance(answer, Pending) else settled(answer)

        def decode(buffers: list[bytes | bytearray | memoryview]) -> Any:
            whole = memoryview(b"".join(buffers))
            assert int.from_bytes(whole[:4], "big") == len(whole) - 4
            correlation_id, response = api.decode_response(version, whole[4:])
            assert correlation_id == CORRELATION_ID
            return response

        return pending.then(decode)

    def ask(self, api: Api, request: object, version: int | None = None) -> Any:
        """Send a request, let everything run that needs no time, and give the answer."""
        pending = self.send(api, request, version)
        assert pending is not None
        return self.wait(pending)

    def produce(self, *values: bytes, acks: int = -1, name: str = "orders", index: int = 0) -> Any:
        """Produce a batch of one record for each value; gives what is answered for the partition."""
        frames = [batch(value, timestamp_ms=self.runtime.now_ms()) for value in values]
        for frame in frames:
            response = self.ask(PRODUCE, produce_request(frame, acks=acks, name=name, index=index), BY_NAME)
        return response.responses[0].partition_responses[0]

    def partition(self, name: str = "orders", index: int = 0) -> Partition:
        """A partition of a topic."""
        return self.topic(name).partitions[index]


def produce_request(
    records: bytes | bytearray | None, *, acks: int = -1, name: str = "orders", index: int = 0
) -> ProduceRequest:
    """A request to append one batch."""
    data = [PartitionProduceData(index=index, records=records)]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=name, partition_data=data)])


def fetch_request(
    offset: int = 0,
    *,
    names: Iterable[str] = ("orders",),
    topic_id: UUID | None = None,
    index: int = 0,
    min_bytes: int = 1,
    max_wait_ms: int = 500,
    max_bytes: int = 1_000_000,
    partition_max_bytes: int = 1_000_000,
    session_id: int = 0,
    session_epoch: int = -1,
    leader_epoch: int = -1,
) -> FetchRequest:
    """A request to read one partition of each topic; without a session by default."""
    topics = []
    for name in names:
        topic = FetchTopic(
            topic=name,
            partitions=[
                FetchPartition(
                    partition=index,
                    fetch_offset=offset,
                    partition_max_bytes=partition_max_bytes,
                    current_leader_epoch=leader_epoch,
                )
            ],
        )
        if topic_id is not None:
            topic.topic_id = topic_id
        topics.append(topic)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
    )
