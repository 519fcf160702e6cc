"""Pulsar clients of a simulated broker without sockets: commands in, the commands that come back, on virtual time."""

from typing import TypeVar

from google.protobuf.message import Message

from millstream.model.record import Record
from millstream.sessions.pulsar.link import PulsarShared
from millstream.sessions.pulsar.session import PulsarSession
from millstream.sessions.session import Buffer, Endpoint
from millstream.wire.pulsar.entry import encode_entry
from millstream.wire.pulsar.frames import (
    PREFIX_BYTES,
    command_body,
    encode_payload_command,
    measure_frame,
    read_frame,
)
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandConnect,
    CommandConnected,
    CommandError,
    CommandProducer,
    CommandProducerSuccess,
    CommandSend,
    MessageMetadata,
)
from millstream.wire.translation import read_records
from tests.unit.broker.simulated_broker import SimulatedBroker

__all__ = ["Client", "Conversation", "entry"]

M = TypeVar("M", bound=Message)


def entry(content: bytes = b"value", sequence_id: int = 0, *, producer: str = "p", count: int = 0) -> bytes:
    """An entry as a producer sends it.

    Args:
        content: of the message, or the payload of a batch.
        sequence_id: of the (first) message.
        producer: its name.
        count: messages in the batch; 0 for a message that is not in one.
    """
    metadata = MessageMetadata(producer_name=producer, sequence_id=sequence_id, publish_time=1000)
    if count:
        metadata.num_messages_in_batch = count
    return bytes(encode_entry(metadata, content))


class Client:
    """A client, which is its own connection too.

    Args:
        conversation: the broker that it speaks to.
    """

    host, address = "127.0.0.1", "127.0.0.1:5555"
    certified_name: str | None = None

    def __init__(self, conversation: "Conversation") -> None:
        self._conversation = conversation
        self.inbox: list[Message] = []
        self.entries: list[bytes] = []
        self.ended = ""
        self.holds = 0
        self.reading = True
        self.room = 64 * 1024 * 1024
        self.session = PulsarSession(conversation.shared, self)

    # What the session sees of the connection

    def endpoint(self, listener: str) -> Endpoint | None:
        return {"": Endpoint("here", 6650), "secure": Endpoint("here", 6651, tls=True, plain=False)}.get(listener)

    def send(self, buffers: list[Buffer]) -> None:
        data = memoryview(b"".join(buffers))
        while data:
            size = measure_frame(data)
            command, payload = read_frame(data[PREFIX_BYTES:size])
            body = command_body(command)
            assert body is not None
            self.inbox.append(body)
            if payload is not None:
                self.entries.append(bytes(payload))
            data = data[size:]

    def room_bytes(self) -> int:
        return self.room

    def hold(self) -> None:
        self.holds += 1

    def release(self) -> None:
        self.holds -= 1

    def end(self, reason: str) -> None:
        self.ended = reason
        self.session.close()

    def end_answered(self, reason: str) -> None:
        self.end(reason)

    # What a test does with it

    def tell(self, body: Message, payload: bytes = b"") -> None:
        """Send a command, and let everything run that needs no time."""
        frame = bytearray(b"".join(encode_payload_command(body, [payload] if payload else [])))
        assert self.session.measure(memoryview(frame)) == len(frame)
        self.session.handle(memoryview(frame)[PREFIX_BYTES:])
        self.session.served()
        self._conversation.runtime.run()

    def taken(self) -> list[Message]:
        """What has come since the last look."""
        inbox, self.inbox = self.inbox, []
        return inbox

    def ask(self, body: Message, kind: type[M], payload: bytes = b"") -> M:
        """Send a command and give the one answer, which has to be of a kind."""
        self.taken()
        self.tell(body, payload)
        answers = self.taken()
        assert [type(answer) for answer in answers] == [kind], answers
        answer = answers[0]
        assert isinstance(answer, kind)
        return answer

    def refused(self, body: Message) -> CommandError:
        """Send a command that is refused with an ERROR."""
        return self.ask(body, CommandError)

    def produce(self, topic: str = "orders", number: int = 1, **fields: object) -> CommandProducerSuccess:
        """Connect a producer."""
        command = CommandProducer(topic=topic, producer_id=number, request_id=number)
        for name, value in fields.items():
            setattr(command, name, value)
        return self.ask(command, CommandProducerSuccess)

    def publish(
        self, sequence_id: int = 0, content: bytes = b"value", number: int = 1, **fields: object
    ) -> list[Message]:
        """Send a message; gives what came back."""
        command = CommandSend(producer_id=number, sequence_id=sequence_id)
        for name, value in fields.items():
            setattr(command, name, value)
        self.taken()
        self.tell(command, entry(content, sequence_id))
        return self.taken()


class Conversation(SimulatedBroker):
    """A simulated broker and its clients. Arguments as for `SimulatedBroker`."""

    def start(self) -> None:
        super().start()
        self.shared = PulsarShared(self.broker)

    def client(self, version: int = 21, **fields: object) -> Client:
        """A client that has connected."""
        client = Client(self)
        command = CommandConnect(client_version="test", protocol_version=version)
        for name, value in fields.items():
            setattr(command, name, value)
        client.ask(command, CommandConnected)
        return client

    def records(self, name: str = "orders", partition: int = 0) -> list[Record]:
        """What the log holds."""
        log = self.topic(name).partitions[partition].log
        found: list[Record] = []
        offset = log.start_offset
        while offset < log.end_offset:
            data, offset = log.read(offset, 1)
            found += read_records(data)
        return found
