"""An Iggy client's side of a session without a socket: typed requests in any dialect, on virtual time."""

import itertools
import struct
from typing import Any

import xxhash

from millstream.model.pending import Pending, settled
from millstream.sessions.iggy.service import IggyService
from millstream.sessions.session import Buffer, Endpoint
from millstream.wire.iggy.commands import COMMANDS, NON_REPLICATED, Command
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.framing import HEADER_BYTES, LongHeader, long_request, short_request
from millstream.wire.iggy.headers import UserHeader, write_headers
from millstream.wire.iggy.incoming import Layout, batch_checksum, layout_of
from millstream.wire.iggy.kinds import Consumer, Identifier, Partitioning
from millstream.wire.iggy.layout import decode, encode, fields_of
from millstream.wire.iggy.messages.batches import PollMessages, SendMessages, Strategy
from millstream.wire.iggy.messages.groups import CreateGroup
from millstream.wire.iggy.messages.register import Register
from millstream.wire.iggy.messages.streams import CreateStream
from millstream.wire.iggy.messages.system import Empty
from millstream.wire.iggy.messages.topics import CreateTopic
from millstream.wire.iggy.messages.users import LoginUser
from tests.unit.broker.simulated_broker import SimulatedBroker

__all__ = ["BY_NAME", "SDK_VERSIONS", "Conversation", "IggyBroker", "Outgoing", "Refusal", "body_of", "parsed"]

BY_NAME = {command.name: command for command in COMMANDS}
SDK_VERSIONS = {
    Dialect.B1: "",
    Dialect.B2: "0.5.0",
    Dialect.B3: "0.6.12",
    Dialect.C1: "0.7.0",
    Dialect.C2: "0.8.0",
    Dialect.C3: "0.9.0",
}
PROTOCOL_VERSIONS = {Dialect.D0: 10 << 10, Dialect.D: 11 << 10, Dialect.D12: 12 << 10}
SHORT_ANSWER = struct.Struct("<II")
_numbers = itertools.count(1)


class Refusal(Exception):
    """A request was answered with an error; `status` is its number."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class Outgoing:
    """A message that a client sends. `id` is 16 bytes in wire order."""

    def __init__(self, payload: bytes, id_: bytes = bytes(16), headers: tuple[UserHeader, ...] = ()) -> None:
        self.payload = payload
        self.id = id_
        self.headers = headers


class IggyBroker(SimulatedBroker):
    """A simulated broker with the Iggy protocol in front. Arguments as for `SimulatedBroker`."""

    deduplication: tuple[int, int] | None = None

    def start(self) -> None:
        super().start()
        self.service = IggyService(self.broker, deduplication=self.deduplication)

    def connect(self, dialect: Dialect, *, login: bool = True) -> "Conversation":
        """A new connection of a client of some dialect, which logs in as its clients do."""
        conversation = Conversation(self, dialect)
        if login and dialect.has_login:
            conversation.log_in("iggy", "iggy")
        return conversation


class Conversation:
    """One connection, and a `millstream.sessions.session.Peer` to its session.

    Args:
        server: the broker.
        dialect: what the client speaks.
    """

    def __init__(self, server: IggyBroker, dialect: Dialect) -> None:
        self.server = server
        self.dialect = dialect
        self.host = "127.0.0.1"
        self.address = f"127.0.0.1:{40000 + next(_numbers)}"
        self.certified_name: str | None = None
        self.pushed: list[Buffer] = []
        self.ended = ""
        self.held = 0
        self.reading = True
        self.room = 64 * 1024 * 1024
        self.session_number = 0
        self.session = server.service.session(self)

    def endpoint(self, listener: str) -> Endpoint | None:
        return Endpoint("127.0.0.1", 8090) if listener in {"", "iggy"} else None

    def send(self, buffers: list[Buffer]) -> None:
        self.pushed += buffers

    def room_bytes(self) -> int:
        return self.room

    def hold(self) -> None:
        self.held += 1

    def release(self) -> None:
        self.held -= 1

    def end(self, reason: str) -> None:
        self.ended = reason

    def end_answered(self, reason: str) -> None:
        self.end(reason)

    # Requests

    def frame(self, command: Command, request: object) -> bytes:
        """The bytes of a request."""
        payload = encode(request, self.dialect)
        if not self.dialect.long_headers:
            return short_request(command.code, payload)
        code = command.code if command.operation == NON_REPLICATED else 0
        header = LongHeader(
            bytes(range(16)),
            bytes(16),
            7,
            command.operation,
            self.session_number,
            code,
            self.dialect is Dialect.D0,
        )
        return long_request(header, payload)

    def give(self, frame: bytes) -> Pending[bytes] | None:
        """Hand a whole frame in; gives the bytes of the answer."""
        buffer = memoryview(bytearray(frame))
        assert self.session.measure(buffer) == len(frame)
        answer = self.session.handle(buffer)
        if answer is None:
            return None
        pending = answer if isinstance(answer, Pending) else settled(answer)
        return pending.then(lambda buffers: b"".join(buffers))

    def raw(self, frame: bytes) -> bytes:
        """Hand a whole frame in, let everything run that needs no time, and give the bytes of the answer."""
        pending = self.give(frame)
        assert pending is not None
        return self.server.wait(pending)

    def ask(self, name: str, request: object | None = None) -> Any:
        """Send a request; gives the answer's message, None if it is without content where it could have some.

        Raises:
            Refusal: it is an error.
        """
        command = BY_NAME[name]
        body = body_of(self.dialect, command, self.raw(self.frame(command, request or Empty())))
        return parsed(self.dialect, command, body)

    def refusal(self, name: str, request: object | None = None) -> int:
        """Send a request that is refused; gives the status."""
        try:
            answer = self.ask(name, request)
        except Refusal as refusal:
            return refusal.status
        raise AssertionError(f"{name} was answered: {answer}")

    def log_in(self, name: str, password: str) -> None:
        """Log in as clients of the dialect do."""
        if self.dialect.long_headers:
            version = PROTOCOL_VERSIONS[self.dialect]
            login = Register(
                protocol_version=version, sdk_name="sdk", sdk_version="0.11.0", name=name, password=password
            )
            self.session_number = self.ask("LOGIN_REGISTER", login).session
        else:
            version_text = SDK_VERSIONS[self.dialect]
            self.ask("LOGIN_USER", LoginUser(name=name, password=password, version=version_text))

    # What most tests want

    def make(self, stream: str = "s1", topic: str = "t1", partitions: int = 1, number: int = 0) -> None:
        """Make a stream and a topic."""
        self.ask("CREATE_STREAM", CreateStream(name=stream, stream_id=number))
        self.ask("CREATE_TOPIC", CreateTopic(stream=stream, name=topic, partitions_count=partitions, topic_id=number))

    def group(self, name: str = "g1", number: int = 0) -> Identifier:
        """Make a group of the topic t1; gives what the dialect calls it by."""
        self.ask("CREATE_CONSUMER_GROUP", CreateGroup(stream="s1", topic="t1", name=name, group_id=number))
        return number if self.dialect is Dialect.A else name

    def put(
        self,
        *messages: bytes | Outgoing,
        partitioning: Partitioning | None = None,
        stream: Identifier = "s1",
        topic: Identifier = "t1",
    ) -> Any:
        """Send messages."""
        outgoing = [one if isinstance(one, Outgoing) else Outgoing(one) for one in messages]
        return self.ask("SEND_MESSAGES", self.sending(outgoing, partitioning or Partitioning(0), stream, topic))

    def sending(
        self,
        messages: list[Outgoing],
        partitioning: Partitioning = Partitioning(0),  # noqa: B008 - frozen
        stream: Identifier = "s1",
        topic: Identifier = "t1",
    ) -> SendMessages:
        """A request to send messages in the layout of the dialect."""
        request = SendMessages(
            stream=stream,
            topic=topic,
            partitioning=partitioning,
            count=len(messages),
            messages=memoryview(laid_out(self.dialect, messages)),
        )
        request.metadata_bytes = len(encode(request, self.dialect)) - len(request.messages) - 4
        return request

    def poll(
        self,
        strategy: Strategy = Strategy.FIRST,
        value: int = 0,
        count: int = 100,
        *,
        consumer: Consumer = Consumer(False, 1),  # noqa: B008 - frozen
        partition: int | None = 0,
        auto_commit: bool = False,
        stream: Identifier = "s1",
        topic: Identifier = "t1",
    ) -> tuple[int, list[dict[str, Any]]]:
        """Poll; gives the partition and the messages, each with its fields by name."""
        request = PollMessages(
            consumer=consumer,
            stream=stream,
            topic=topic,
            partition=partition,
            strategy=strategy,
            value=value,
            count=count,
            auto_commit=auto_commit,
        )
        answer = self.ask("POLL_MESSAGES", request)
        messages = polled(self.dialect, bytes(answer.messages))
        assert len(messages) == answer.count
        return answer.partition, messages

    def values(self, *args: Any, **kwargs: Any) -> list[bytes]:
        """Poll; gives the payloads."""
        return [message["payload"] for message in self.poll(*args, **kwargs)[1]]


def body_of(dialect: Dialect, command: Command, answer: bytes) -> bytes:
    """The content of an answer. Raises Refusal."""
    if not dialect.long_headers:
        status, length = SHORT_ANSWER.unpack_from(answer)
        assert length == len(answer) - SHORT_ANSWER.size
        assert length != 1, "clients take one byte for none"
        if status:
            raise Refusal(status)
        return answer[SHORT_ANSWER.size :]
    assert answer, "the client was sent away"
    assert int.from_bytes(answer[48:52], "little") == len(answer)
    assert answer[60] == 8
    assert answer[208] == command.operation
    status = int.from_bytes(answer[216:220], "little")
    if status:
        assert len(answer) == HEADER_BYTES
        raise Refusal(status)
    body = answer[HEADER_BYTES:]
    if command.has_results:
        assert body[:4] == bytes(4)
        body = body[4:]
    return body


def parsed(dialect: Dialect, command: Command, body: bytes) -> Any:
    """The message of an answer; None for one without content that says that there is no such thing."""
    if not body and fields_of(command.response, dialect):
        has_lists_alone = command.name.endswith("S") and command.name.startswith("GET")
        return decode(command.response, dialect, memoryview(body), whole=True) if has_lists_alone else None
    return decode(command.response, dialect, memoryview(body), whole=True)


def laid_out(dialect: Dialect, messages: list[Outgoing]) -> bytearray:
    """Messages as clients of a dialect send them."""
    layout = layout_of(dialect)
    blocks = [write_headers(one.headers, kinded_keys=dialect >= Dialect.C3) for one in messages]
    if layout is Layout.PLAIN:
        return bytearray(
            b"".join(
                one.id + struct.pack("<I", len(block)) + block + struct.pack("<I", len(one.payload)) + one.payload
                for one, block in zip(messages, blocks, strict=True)
            )
        )
    if layout is Layout.BATCH:
        return bytearray(_batch(messages, blocks))
    packer = struct.Struct("<Q16sQQQII" + ("Q" if layout is Layout.LONG else ""))
    index, content, end = b"", b"", 0
    for one, block in zip(messages, blocks, strict=True):
        fields: list[Any] = [0, one.id, 0, 0, 1_700_000_000_000_123, len(block), len(one.payload)]
        message = packer.pack(*fields, *([0] if layout is Layout.LONG else [])) + one.payload + block
        content += message
        end += len(message)
        index += struct.pack("<IIQ", 0, end, 0)
    return bytearray(index + content)


def _batch(messages: list[Outgoing], blocks: list[bytes]) -> bytes:
    origin_us = 1_700_000_000_000_123
    parts, checksums = [], bytearray()
    for number, (one, block) in enumerate(zip(messages, blocks, strict=True)):
        summed = struct.pack("<16sIIIIQ", one.id, number, 0, len(block), len(one.payload), 0) + one.payload + block
        checksum = struct.pack("<Q", xxhash.xxh3_64_intdigest(summed))
        checksums += checksum
        parts.append(checksum + summed)
    blob = b"".join(parts)
    size = 256 + len(blob)
    whole = batch_checksum(0, 0, 0, origin_us, size, checksums)
    return struct.pack("<QQQQQQI204x", 0, 0, 0, origin_us, size, whole, len(messages)) + blob


def polled(dialect: Dialect, content: bytes) -> list[dict[str, Any]]:
    """Take the messages of an answer to a poll apart, as the reference describes them."""
    layout = layout_of(dialect)
    messages: list[dict[str, Any]] = []
    position = 0
    while position < len(content):
        if layout is Layout.BATCH:
            position = _polled_batch(content, position, messages)
            continue
        if layout is Layout.PLAIN:
            offset, state, timestamp, id_, checksum, headers = struct.unpack_from("<QBQ16sII", content, position)
            block = content[position + 41 : position + 41 + headers]
            (length,) = struct.unpack_from("<I", content, position + 41 + headers)
            start = position + 45 + headers
            assert state == 1
            message = {"checksum": checksum, "payload": content[start : start + length]}
            position = start + length
        else:
            size = 64 if layout is Layout.LONG else 56
            fields = struct.unpack_from("<Q16sQQQII", content, position)
            checksum, id_, offset, timestamp, origin, headers, length = fields
            start = position + size
            block = content[start + length : start + length + headers]
            message = {"origin": origin, "payload": content[start : start + length]}
            position = start + length + headers
        message.update(offset=offset, timestamp=timestamp, id=id_, headers=block)
        messages.append(message)
    assert position == len(content)
    return messages


def _polled_batch(content: bytes, position: int, messages: list[dict[str, Any]]) -> int:
    head: tuple[int, ...] = struct.unpack_from("<QQQQQQI", content, position)
    partition, base_offset, base_us, origin_us, size, checksum, count = head
    assert not any(content[position + 52 : position + 256])
    at, end = position + 256, position + int(size)
    checksums = b""
    for _ in range(count):
        fields = struct.unpack_from("<Q16sIIIIQ", content, at)
        frame_checksum, id_, delta, time_delta, headers, length, reserved = fields
        start, stop = at + 48, at + 48 + length + headers
        assert xxhash.xxh3_64_intdigest(content[at + 8 : stop]) == frame_checksum
        assert not reserved
        checksums += content[at : at + 8]
        messages.append(
            {
                "offset": base_offset + delta,
                "timestamp": base_us,
                "origin": origin_us + time_delta,
                "id": id_,
                "payload": content[start : start + length],
                "headers": content[start + length : stop],
            }
        )
        at = stop
    assert at == end
    assert checksum == batch_checksum(partition, base_offset, base_us, origin_us, size, checksums)
    return end
