"""A plain socket that speaks Pulsar through the project's own codecs, and can as well speak nonsense."""

import socket
from collections.abc import Iterator
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from millstream.wire.pulsar.entry import encode_entry, read_entry, read_messages, split_broker_entry_metadata
from millstream.wire.pulsar.frames import PREFIX_BYTES, command_body, encode_payload_command, read_frame
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandConnect,
    CommandConnected,
    CommandFlow,
    CommandMessage,
    CommandPing,
    CommandPong,
    CommandProducer,
    CommandProducerSuccess,
    CommandSend,
    CommandSendError,
    CommandSendReceipt,
    CommandSubscribe,
    CommandSuccess,
    FeatureFlags,
    MessageMetadata,
)

__all__ = ["TIMEOUT_S", "Connection", "content_of", "entry", "frame"]

TIMEOUT_S: Final = 30.0
M = TypeVar("M", bound=Message)


def entry(content: bytes = b"value", sequence_id: int = 0, *, checksum: bool = True, **fields: Any) -> bytes:
    """An entry as a producer sends it; without its checksum as those send it that know none."""
    fields.setdefault("producer_name", "raw")
    fields.setdefault("publish_time", 1000)
    data = bytes(encode_entry(MessageMetadata(sequence_id=sequence_id, **fields), content))
    return data if checksum else data[6:]


def content_of(data: bytes) -> list[bytes]:
    """The messages of an entry, whatever stands before it."""
    _, rest = split_broker_entry_metadata(memoryview(data))
    return [bytes(message.content) for message in read_messages(read_entry(rest))]


def frame(command: Message, payload: bytes = b"") -> bytes:
    """The frame of a command, with an entry behind it if there is one."""
    return b"".join(encode_payload_command(command, [payload] if payload else []))


class Connection:
    """A connection to a server. Any wait of more than `TIMEOUT_S` is an error. PING is answered unseen.

    Args:
        address: HOST:PORT.
        version: the protocol version to say in CONNECT; None to say nothing.
        receive_buffer_bytes: how much the system takes for a peer that does not read; None for what it likes.
    """

    def __init__(self, address: str, version: int | None = 21, *, receive_buffer_bytes: int | None = None) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.socket()
        if receive_buffer_bytes is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self._socket.settimeout(TIMEOUT_S)
        self._socket.connect((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._taken = bytearray()
        self._requests = 0
        if version is not None:
            flags = FeatureFlags(supports_broker_entry_metadata=True)
            self.connected = self.ask(
                CommandConnect(client_version="raw", protocol_version=version, feature_flags=flags), CommandConnected
            )

    def next_request(self) -> int:
        """A request id."""
        self._requests += 1
        return self._requests

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._socket.sendall(data)

    def tell(self, command: Message, payload: bytes = b"") -> None:
        """Send a command."""
        self.write(frame(command, payload))

    def take(self) -> tuple[Message, bytes]:
        """The next command that comes, and the entry behind it."""
        while True:
            size = int.from_bytes(self._exactly(PREFIX_BYTES))
            command, payload = read_frame(memoryview(self._exactly(size)))
            body = command_body(command)
            assert body is not None
            if not isinstance(body, CommandPing):
                return body, bytes(payload or b"")
            self.tell(CommandPong())

    def receive(self, kind: type[M]) -> M:
        """The next command, which has to be of a kind."""
        body, _ = self.take()
        assert isinstance(body, kind), body
        return body

    def ask(self, command: Message, kind: type[M], payload: bytes = b"") -> M:
        """Send a command and give its answer, which has to be the next thing that comes."""
        self.tell(command, payload)
        return self.receive(kind)

    def _exactly(self, size: int) -> bytes:
        while len(self._taken) < size:
            piece = self._socket.recv(1 << 18)
            assert piece, "the server closed the connection"
            self._taken += piece
        data = bytes(self._taken[:size])
        del self._taken[:size]
        return data

    def closed_by_server(self) -> bool:
        """Wait until the server closes the connection; False if it sends something instead."""
        try:
            return not self._taken and self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def set_timeout(self, timeout_s: float) -> None:
        """Wait for so long instead."""
        self._socket.settimeout(timeout_s)

    def alive(self) -> bool:
        """Whether the server answers."""
        return isinstance(self.ask(CommandPing(), CommandPong), CommandPong)

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    # What clients do

    def produce(self, topic: str, number: int = 1, **fields: Any) -> CommandProducerSuccess:
        """Connect a producer."""
        command = CommandProducer(topic=topic, producer_id=number, request_id=self.next_request(), **fields)
        return self.ask(command, CommandProducerSuccess)

    def send(self, payload: bytes, sequence_id: int = 0, number: int = 1, **fields: Any) -> CommandSendReceipt:
        """Send an entry, and give its receipt."""
        return self.ask(
            CommandSend(producer_id=number, sequence_id=sequence_id, **fields), CommandSendReceipt, payload
        )

    def send_refused(self, payload: bytes, sequence_id: int = 0, number: int = 1, **fields: Any) -> CommandSendError:
        """Send an entry that is refused."""
        return self.ask(CommandSend(producer_id=number, sequence_id=sequence_id, **fields), CommandSendError, payload)

    def subscribe(self, topic: str, subscription: str = "s", number: int = 1, **fields: Any) -> None:
        """Subscribe, from the earliest message on."""
        fields.setdefault("subType", CommandSubscribe.Exclusive)
        fields.setdefault("initialPosition", CommandSubscribe.Earliest)
        command = CommandSubscribe(
            topic=topic, subscription=subscription, consumer_id=number, request_id=self.next_request(), **fields
        )
        self.ask(command, CommandSuccess)

    def entries(self, topic: str, count: int, number: int = 1) -> Iterator[tuple[CommandMessage, bytes]]:
        """Subscribe, give permits, and give what comes."""
        self.subscribe(topic, f"reader-{number}", number)
        self.tell(CommandFlow(consumer_id=number, messagePermits=10_000))
        for _ in range(count):
            body, payload = self.take()
            assert isinstance(body, CommandMessage), body
            yield body, payload

    def values(self, topic: str, count: int, number: int = 1) -> list[bytes]:
        """The messages of as many entries, from the first on."""
        return [value for _, payload in self.entries(topic, count, number) for value in content_of(payload)]
