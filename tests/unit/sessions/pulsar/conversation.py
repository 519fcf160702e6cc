"""Clients that consume from a simulated broker: what a conversation needs besides for that."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from millstream.broker.partition import Partition
from millstream.model.frame import read_frame_header
from millstream.model.record import Record
from millstream.sessions.pulsar.message_ids import ledger_id_of
from millstream.sessions.session import Buffer
from millstream.wire.kafka.records import build_batch
from millstream.wire.pulsar.entry import check_entry, encode_entry, read_entry, read_messages
from millstream.wire.pulsar.frames import PREFIX_BYTES, command_body, measure_frame, read_frame
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandAck,
    CommandConnect,
    CommandConnected,
    CommandFlow,
    CommandMessage,
    CommandSubscribe,
    FeatureFlags,
    MessageIdData,
    MessageMetadata,
    SingleMessageMetadata,
)
from millstream.wire.pulsar.stored_frame import build_frame
from tests.unit.sessions.pulsar.spoken import Client, Conversation

__all__ = [
    "Arrival",
    "ConsumingClient",
    "ConsumingConversation",
    "append_batch",
    "append_entry",
    "batch_entry",
    "kafka_batch",
    "single_entry",
]


@dataclass(frozen=True)
class Arrival:
    """A MESSAGE that has come.

    Args:
        command: it.
        entry: what stood behind it.
    """

    command: CommandMessage
    entry: bytes

    @property
    def id(self) -> MessageIdData:
        """Of the entry."""
        return self.command.message_id

    @property
    def entry_id(self) -> int:
        """Of the entry."""
        return self.command.message_id.entryId

    @property
    def values(self) -> list[bytes]:
        """The contents of the messages that the client is to see."""
        words = list(self.command.ack_set)
        wanted = sum((word & (2**64 - 1)) << 64 * place for place, word in enumerate(words))
        messages = read_messages(read_entry(memoryview(self.entry)))
        return [bytes(one.content) for one in messages if not words or wanted >> one.batch_index & 1]


class ConsumingClient(Client):
    """A client that consumes.

    Args:
        conversation: the broker that it speaks to.
        version: the protocol version that it speaks.
        client_version: what it says it is.
    """

    def __init__(self, conversation: "ConsumingConversation", version: int, client_version: str) -> None:
        self._came: list[tuple[Message, bytes]] = []
        self.writes: list[list[Buffer]] = []
        super().__init__(conversation)
        self._consuming = conversation
        self._requests = 100
        flags = FeatureFlags(supports_broker_entry_metadata=True)
        connect = CommandConnect(client_version=client_version, protocol_version=version, feature_flags=flags)
        assert isinstance(self.request(connect), CommandConnected)

    def send(self, buffers: list[Buffer]) -> None:
        super().send(buffers)
        self.writes.append(list(buffers))
        stream = memoryview(b"".join(buffers))
        while stream:
            size = measure_frame(stream)
            command, payload = read_frame(stream[PREFIX_BYTES:size])
            body = command_body(command)
            assert body is not None
            self._came.append((body, bytes(payload or b"")))
            stream = stream[size:]

    def received(self) -> list[tuple[Message, bytes]]:
        """The commands that came since the last look, with what stood behind each."""
        self._consuming.runtime.run()
        came, self._came = self._came, []
        return came

    def commands(self) -> list[Any]:
        """The commands that came since the last look."""
        return [command for command, _ in self.received()]

    def arrivals(self) -> list[Arrival]:
        """The messages that came since the last look; nothing else may have."""
        out = []
        for command, payload in self.received():
            assert isinstance(command, CommandMessage), command
            out.append(Arrival(command, payload))
        return out

    def values(self) -> list[list[bytes]]:
        """The contents of the entries that came since the last look."""
        return [one.values for one in self.arrivals()]

    def request(self, command: Message) -> Any:
        """Send a command and give its one answer."""
        self.tell(command)
        (answer,) = self.commands()
        return answer

    def subscribe(self, topic: str = "orders", subscription: str = "s", consumer_id: int = 1, **fields: Any) -> Any:
        """Subscribe from the earliest message on, Exclusive unless said otherwise; gives the answer."""
        fields.setdefault("initialPosition", CommandSubscribe.Earliest)
        fields.setdefault("subType", CommandSubscribe.Exclusive)
        self._requests += 1
        return self.request(
            CommandSubscribe(
                topic=topic, subscription=subscription, consumer_id=consumer_id, request_id=self._requests, **fields
            )
        )

    def flow(self, permits: int = 1000, consumer_id: int = 1) -> None:
        """Give permits."""
        self.tell(CommandFlow(consumer_id=consumer_id, messagePermits=permits))

    def ack(self, *ids: MessageIdData, consumer_id: int = 1, cumulative: bool = False, **fields: Any) -> None:
        """Acknowledge."""
        kind = CommandAck.Cumulative if cumulative else CommandAck.Individual
        self.tell(CommandAck(consumer_id=consumer_id, ack_type=kind, message_id=list(ids), **fields))


class ConsumingConversation(Conversation):
    """A simulated broker with a topic, and any number of clients that consume."""

    @classmethod
    def with_topic(cls, name: str = "orders", partitions: int = 1) -> "ConsumingConversation":
        """A broker with one topic."""
        broker = cls()
        broker.create(name, partitions)
        return broker

    def consumer(self, version: int = 21, client_version: str = "test") -> ConsumingClient:
        """A client that has connected."""
        return ConsumingClient(self, version, client_version)

    def partition(self, name: str = "orders", index: int = 0) -> Partition:
        """A partition of a topic."""
        return self.topic(name).partitions[index]

    def id(self, entry_id: int, batch_index: int = -1, *, ack_set: Sequence[int] = ()) -> MessageIdData:
        """A message's id in the topic."""
        ledger_id = ledger_id_of(self.topic())
        return MessageIdData(
            ledgerId=ledger_id, entryId=entry_id & (2**64 - 1), batch_index=batch_index, ack_set=ack_set
        )

    def position(self, subscription: str = "s") -> int:
        """How far a subscription has come."""
        found = self.broker.subscriptions.find(self.topic(), 0, subscription)
        assert found is not None
        return found.position

    def publish(self, *values: bytes, key: bytes | None = None, **metadata: Any) -> int:
        """Store an entry for each value; gives the first's entry id."""
        first = self.partition().log.end_offset
        for value in values:
            append_entry(self.partition(), single_entry(value, self.runtime.now_ms(), key=key, **metadata))
        return first

    def publish_batch(self, *values: bytes, **metadata: Any) -> int:
        """Store a batch; gives its entry id."""
        first = self.partition().log.end_offset
        append_entry(self.partition(), batch_entry(values, self.runtime.now_ms(), **metadata))
        return first


def kafka_batch(values: Sequence[bytes], time_ms: int = 1000) -> bytearray:
    """What a Kafka producer writes: a batch without keys."""
    records = [Record(offset=n, timestamp_ms=time_ms, key=None, value=value) for n, value in enumerate(values)]
    return build_batch(records)


def append_batch(partition: Partition, frame: bytearray) -> int:
    """Store a Kafka batch, which may be larger than a new topic allows; gives the offset of its first record."""
    view = memoryview(frame)
    return partition.append(view, read_frame_header(view), all_replicas=False, bytes_max=2**31).base_offset


def single_entry(value: bytes, time_ms: int, *, key: bytes | None = None, **metadata: Any) -> bytes:
    """An entry of one message, which is no batch."""
    described = MessageMetadata(producer_name="p", sequence_id=0, publish_time=time_ms, **metadata)
    if key is not None:
        described.partition_key = key
    return bytes(encode_entry(described, value))


def batch_entry(values: Sequence[bytes], time_ms: int, **metadata: Any) -> bytes:
    """An entry that is a batch."""
    payload = b""
    for number, value in enumerate(values):
        head = SingleMessageMetadata(payload_size=len(value), sequence_id=number).SerializeToString()
        payload += len(head).to_bytes(4, "big") + head + value
    described = MessageMetadata(
        producer_name="p", sequence_id=0, publish_time=time_ms, num_messages_in_batch=len(values), **metadata
    )
    return bytes(encode_entry(described, payload))


def append_entry(partition: Partition, data: bytes) -> None:
    """Store an entry as a producer's session does."""
    frame = memoryview(build_frame(memoryview(data), check_entry(memoryview(data))))
    partition.append(frame, read_frame_header(frame), all_replicas=False)
