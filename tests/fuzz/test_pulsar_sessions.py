"""Sequences of Pulsar commands that make sense, or nearly: the only outcomes are answers and the end of a connection.

Two clients of one simulated broker take turns, so that what one does meets what the other has left. Whatever happens,
a third one, which behaves, can write and read what it wrote in the end.
"""

from typing import Any

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.sessions.pulsar.table import HANDLERS
from millstream.wire.errors import WireError
from millstream.wire.pulsar.frames import PREFIX_BYTES, encode_payload_command
from millstream.wire.pulsar.pulsar_pb2 import (
    BaseCommand,
    CommandAck,
    CommandFlow,
    CommandMessage,
    CommandProducer,
    CommandProducerSuccess,
    CommandSend,
    CommandSendReceipt,
    CommandSubscribe,
    MessageIdData,
    ProducerAccessMode,
)
from tests.unit.sessions.pulsar.conversation import ConsumingConversation
from tests.unit.sessions.pulsar.spoken import entry

TEXTS = {
    "topic": [
        "orders",
        "orders-partition-0",
        "parts-partition-1",
        "parts",
        "non-persistent://public/default/v",
        "a/b",
    ],
    "namespace": ["public/default", "public", "nobody/nothing"],
    "subscription": ["s", "t"],
    "topics_pattern": ["", ".*", "public/default/o.*", "(", "x" * 60],
    "producer_name": ["", "p", "q"],
    "initial_subscription_name": ["", "s"],
}
Step = tuple[int, Message | None, bytes, int]
NUMBERS = [0, 1, 2, 3, 7, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1]
SMALL = [0, 1, 2]
"""Numbers of producers and consumers: few, so that they meet."""
HANDLED = sorted(HANDLERS)
ENTRIES = [
    b"",
    entry(b"value"),
    entry(b"value", 3),
    entry(b"\0\0\0\x02\x18\x01a" * 3, 1, count=3),
    entry(b"noise", count=5),
    entry(b"value")[:-1],
    entry(b"value")[6:],
    b"\0\0\0\x05",
]


@st.composite
def messages(draw: st.DrawFn, descriptor: Any, depth: int = 0) -> Message:
    """A message of a type: what it must have, most of what it may have, and little of what may be repeated."""
    message = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if not field.is_required and draw(st.integers(0, 2)) == 0:
            continue
        if field.message_type is not None:
            if depth > 2:
                continue
            inner = [draw(messages(field.message_type, depth + 1)) for _ in range(draw(st.integers(1, 2)))]
            if field.is_repeated:
                getattr(message, field.name).extend(inner)
            else:
                getattr(message, field.name).CopyFrom(inner[0])
        elif field.is_repeated:
            getattr(message, field.name).extend([draw(value_of(field))])
        else:
            setattr(message, field.name, draw(value_of(field)))
    return message


def value_of(field: Any) -> st.SearchStrategy[Any]:
    """Values of a field: likely ones, and those at the ends of its type."""
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.type == field.TYPE_STRING:
        return st.sampled_from(TEXTS.get(field.name, ["", "x", "ü"]))
    if field.type == field.TYPE_BYTES:
        return st.sampled_from([b"", b"x", bytes(8)])
    if field.type == field.TYPE_BOOL:
        return st.booleans()
    if field.type in (field.TYPE_DOUBLE, field.TYPE_FLOAT):
        return st.just(0.5)
    if field.name in {"producer_id", "consumer_id", "watcher_id", "request_id", "epoch"}:
        return st.sampled_from(SMALL)
    signed = field.type in (field.TYPE_INT32, field.TYPE_INT64, field.TYPE_SINT32, field.TYPE_SINT64)
    bits = 32 if field.type in (field.TYPE_INT32, field.TYPE_UINT32, field.TYPE_SINT32) else 64
    top = 2 ** (bits - signed) - 1
    return st.sampled_from([number for number in NUMBERS if number <= top] + ([-1] if signed else []))


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """What happens next: who does it, the command (None to go away), what stands behind it, and the ms until then."""
    who, pause_ms = draw(st.integers(0, 1)), draw(st.sampled_from([0, 0, 0, 0, 100, 6000]))
    if draw(st.integers(0, 30)) == 0:
        return who, None, b"", pause_ms
    # Those that everything else needs come as often as all others together.
    usual = (BaseCommand.PRODUCER, BaseCommand.SEND, BaseCommand.SUBSCRIBE, BaseCommand.FLOW, BaseCommand.ACK)
    number = draw(st.one_of(st.sampled_from(usual), st.sampled_from(HANDLED)))
    if number == BaseCommand.CONNECT:
        number = BaseCommand.PING
    descriptor = BaseCommand.DESCRIPTOR.fields_by_number[number].message_type
    command = draw(st.one_of(likely(number), messages(descriptor)))
    return who, command, draw(st.sampled_from(ENTRIES)), pause_ms


def likely(number: int) -> st.SearchStrategy[Message]:
    """Commands as clients send them, so that sequences get somewhere."""
    small = st.sampled_from(SMALL)
    match number:
        case BaseCommand.PRODUCER:
            modes = st.sampled_from([ProducerAccessMode.Shared] * 4 + list(ProducerAccessMode.values()))
            return st.builds(
                lambda n, mode: CommandProducer(
                    topic="orders", producer_id=n, request_id=n, producer_access_mode=mode
                ),
                small,
                modes,
            )
        case BaseCommand.SEND:
            return st.builds(lambda n, sequence: CommandSend(producer_id=n, sequence_id=sequence), small, small)
        case BaseCommand.SUBSCRIBE:
            kinds = st.sampled_from(list(CommandSubscribe.SubType.values()))
            return st.builds(
                lambda n, kind: CommandSubscribe(
                    topic="orders", subscription="s", subType=kind, consumer_id=n, request_id=n
                ),
                small,
                kinds,
            )
        case BaseCommand.FLOW:
            return st.builds(lambda n: CommandFlow(consumer_id=n, messagePermits=10), small)
    descriptor = BaseCommand.DESCRIPTOR.fields_by_number[number].message_type
    return messages(descriptor)


class Party:
    """A client that says whatever it is told to, and begins anew when its connection has ended."""

    def __init__(self, broker: ConsumingConversation, version: int) -> None:
        self.broker = broker
        self.version = version
        self.begin()

    def begin(self) -> None:
        self.client = self.broker.consumer(self.version)
        self.ids: list[MessageIdData] = []

    def act(self, command: Message | None, payload: bytes) -> None:
        """Say something, or go away without a word."""
        session = self.client.session
        if self.client.ended or command is None:
            session.close()
            self.begin()
            return
        if isinstance(command, CommandAck) and self.ids:
            command.message_id.append(self.ids[-1])
        parts = [payload] if isinstance(command, CommandSend) and payload else []
        frame = bytearray(b"".join(encode_payload_command(command, parts)))
        try:
            session.measure(memoryview(frame))
            session.handle(memoryview(frame)[PREFIX_BYTES:])
        except WireError:
            session.served()
            session.close()
            self.begin()
            return
        session.served()

    def listen(self) -> None:
        """Take what has come. Whatever it is, it was a command that could be decoded."""
        assert "internal error" not in self.client.ended
        self.ids += [one.message_id for one in self.client.commands() if isinstance(one, CommandMessage)]


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(st.lists(steps(), min_size=5, max_size=40), st.sampled_from([0, 5, 12, 21]), st.booleans())
def test_any_sequence(sequence: list[Step], version: int, deduplicated: bool) -> None:
    broker = ConsumingConversation(pulsar__deduplication__enable=str(deduplicated).lower())
    broker.create("orders")
    broker.create("parts", 2)
    parties = [Party(broker, version), Party(broker, 21)]
    for who, command, payload, pause_ms in sequence:
        parties[who].act(command, payload)
        if pause_ms:
            broker.pass_ms(pause_ms)
        for party in parties:
            party.listen()
    for party in parties:
        party.client.session.close()
    broker.pass_ms(70_000)
    check_that_it_works(broker)


def check_that_it_works(broker: ConsumingConversation) -> None:
    """Nobody is there any more, so an exclusive producer may come; what it writes is read by whoever comes."""
    client = broker.consumer()
    produced = client.request(
        CommandProducer(topic="fresh", producer_id=1, request_id=1, producer_access_mode=ProducerAccessMode.Exclusive)
    )
    assert isinstance(produced, CommandProducerSuccess)
    for name in ("orders", "parts"):
        topic = broker.broker.topics.by_flat_name(name)
        if topic is not None:
            assert all(not list(broker.broker.producers.of(topic.id, one.index)) for one in topic.partitions)
    client.tell(CommandSend(producer_id=1, sequence_id=0), entry(b"works"))
    (receipt,) = client.commands()
    assert isinstance(receipt, CommandSendReceipt)
    client.subscribe("fresh")
    client.flow()
    assert client.values() == [[b"works"]]
    broker.wait(broker.broker.close())
