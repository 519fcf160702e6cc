"""What the specification of Pulsar's binary protocol says, with bytes that are written by hand from it alone.

Numbers of commands and fields are those of PulsarApi.proto. The specification of 1.x says the same of what it knows.
"""

import struct
from collections.abc import Callable, Iterator

import pytest
from crc32c import crc32c

from tests.support.plain_socket import PlainSocket
from tests.support.server_process import ServerProcess

CONNECT, CONNECTED, SUBSCRIBE, PRODUCER, SEND, SEND_RECEIPT, SEND_ERROR, MESSAGE, ACK, FLOW = range(2, 12)
UNSUBSCRIBE, SUCCESS, ERROR, CLOSE_PRODUCER, CLOSE_CONSUMER, PRODUCER_SUCCESS, PING, PONG = range(12, 20)
REDELIVER = 20
PARTITIONED_METADATA, PARTITIONED_METADATA_RESPONSE, LOOKUP, LOOKUP_RESPONSE = 21, 22, 23, 24
CONSUMER_STATS, CONSUMER_STATS_RESPONSE, ACTIVE_CONSUMER_CHANGE, ACK_RESPONSE = 25, 26, 31, 38
EXCLUSIVE, SHARED, FAILOVER = 0, 1, 2
INDIVIDUAL, CUMULATIVE = 0, 1
CHECKSUM_ERROR = 9

Fields = dict[int, list[int | bytes]]


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = b""
    while value > 127:
        out += bytes((value & 127 | 128,))
        value >>= 7
    return out + bytes((value,))


def f(number: int, value: int | str | bytes) -> bytes:
    """A field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def fields(message: bytes) -> Fields:
    """The fields of a protobuf message, by their numbers."""
    found: Fields = {}
    position = 0

    def number() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(message):
        key = number()
        if key & 7 == 0:
            found.setdefault(key >> 3, []).append(number())
            continue
        size = number() if key & 7 == 2 else 8
        found.setdefault(key >> 3, []).append(message[position : position + size])
        position += size
    return found


def simple(type_: int, *parts: bytes) -> bytes:
    """totalSize, commandSize, command."""
    command = f(1, type_) + f(type_, b"".join(parts))
    return struct.pack(">II", 4 + len(command), len(command)) + command


def entry(content: bytes, sequence_id: int = 0, *more: bytes) -> bytes:
    """magicNumber, checksum, metadataSize, metadata, payload."""
    metadata = f(1, "by hand") + f(2, sequence_id) + f(3, 1_700_000_000_000) + b"".join(more)
    rest = struct.pack(">I", len(metadata)) + metadata + content
    return b"\x0e\x01" + struct.pack(">I", crc32c(rest)) + rest


def send(payload: bytes, sequence_id: int = 0, *more: bytes) -> bytes:
    command = f(1, SEND) + f(SEND, f(1, 1) + f(2, sequence_id) + b"".join(more))
    return struct.pack(">II", 4 + len(command) + len(payload), len(command)) + command + payload


class Connection(PlainSocket):
    """A client that knows nothing but bytes, and says CONNECT."""

    def __init__(self, address: str, version: int = 6) -> None:
        super().__init__(address)
        self.write(simple(CONNECT, f(1, "Pulsar-Client-by-hand"), f(4, version)))
        self.connected = self.take(CONNECTED)

    def receive(self) -> tuple[int, Fields, bytes]:
        """The type of the next command, its fields, and what stands behind it."""
        (total,) = struct.unpack(">I", self.receive_exactly(4))
        content = self.receive_exactly(total)
        size = int.from_bytes(content[:4])
        command = fields(content[4 : 4 + size])
        (type_,) = command.pop(1)
        assert isinstance(type_, int)
        ((number, (body,)),) = command.items()
        assert number == type_, "a BaseCommand has one subcommand"
        assert isinstance(body, bytes)
        return type_, fields(body), content[4 + size :]

    def take(self, type_: int) -> Fields:
        found, body, _ = self.receive()
        assert found == type_, (found, body)
        return body

    def ask(self, frame: bytes, type_: int) -> Fields:
        self.write(frame)
        return self.take(type_)

    def message(self) -> tuple[bytes, bytes]:
        """The id of the next message, and what was sent."""
        type_, body, payload = self.receive()
        assert type_ == MESSAGE, (type_, body)
        (id_,) = body[2]
        assert isinstance(id_, bytes)
        return id_, payload

    def is_silent(self) -> bool:
        self.write(simple(PING))
        return self.receive()[0] == PONG


Open = Callable[..., Connection]


@pytest.fixture
def opened(raw_server: ServerProcess) -> Iterator[Open]:
    connections: list[Connection] = []

    def open_connection(version: int = 6) -> Connection:
        connections.append(Connection(raw_server.addresses["pulsar"], version))
        return connections[-1]

    yield open_connection
    for connection in connections:
        connection.close()


@pytest.fixture
def name(topic: str) -> str:
    """A name of four parts, as in the examples of the specification."""
    return f"persistent://public/my-cluster/default/{topic}"


def subscribe(
    name: str, request_id: int = 1, kind: int = EXCLUSIVE, consumer: str = "c", consumer_id: int = 1
) -> bytes:
    fixed = f(1, name) + f(2, "my-subscription") + f(3, kind) + f(4, consumer_id) + f(5, request_id)
    return simple(SUBSCRIBE, fixed, f(6, consumer), f(13, 1))


def produce(name: str, request_id: int = 1, *more: bytes) -> bytes:
    return simple(PRODUCER, f(1, name), f(2, 1), f(3, request_id), *more)


def test_connecting(opened: Open) -> None:
    client = opened()
    assert client.connected[2] == [6]
    assert client.connected[1][0]
    assert client.is_silent()
    client.write(simple(CONNECT, f(1, "again")))
    assert client.closed_by_server()


def test_discovery(opened: Open, name: str) -> None:
    client = opened()
    found = client.ask(simple(PARTITIONED_METADATA, f(1, name), f(2, 7)), PARTITIONED_METADATA_RESPONSE)
    assert (found[1], found[2], found[3]) == ([0], [7], [0]), "no partitions, the request, Success"
    found = client.ask(simple(LOOKUP, f(1, name), f(2, 8), f(3, 0)), LOOKUP_RESPONSE)
    assert isinstance(found[1][0], bytes)
    assert found[1][0].startswith(b"pulsar://127.0.0.1:")
    assert (found[3], found[4], found[5]) == ([1], [8], [1]), "Connect, the request, authoritative"


def test_producing(opened: Open, name: str) -> None:
    client = opened()
    success = client.ask(produce(name, 3), PRODUCER_SUCCESS)
    assert success[1] == [3]
    assert success[2][0]
    ids = []
    for sequence_id in range(2):
        receipt = client.ask(send(entry(b"x", sequence_id), sequence_id), SEND_RECEIPT)
        assert (receipt[1], receipt[2]) == ([1], [sequence_id])
        (id_,) = receipt[3]
        assert isinstance(id_, bytes)
        ids.append(fields(id_))
    assert ids[0][1] == ids[1][1], "a ledger"
    assert (ids[0][2], ids[1][2]) == ([0], [1]), "entries"
    damaged = bytearray(entry(b"damaged", 2))
    damaged[-1] ^= 1
    refused = client.ask(send(bytes(damaged), 2), SEND_ERROR)
    assert (refused[1], refused[2], refused[3]) == ([1], [2], [CHECKSUM_ERROR])
    client.write(send(entry(b"last", 3), 3), simple(CLOSE_PRODUCER, f(1, 1), f(2, 9)))
    assert client.take(SEND_RECEIPT)[2] == [3], "pending messages are persisted before Success"
    assert client.take(SUCCESS)[1] == [9]
    client.write(send(entry(b"late", 4), 4))
    assert client.closed_by_server(), "a producer that is not there"


def test_names_of_producers(opened: Open, name: str) -> None:
    one, two = opened(), opened()
    names = {bytes(client.ask(produce(name), PRODUCER_SUCCESS)[2][0]) for client in (one, two)}
    assert len(names) == 2
    named = opened()
    assert named.ask(produce(name, 1, f(4, "mine")), PRODUCER_SUCCESS)[2] == [b"mine"]
    # CloseProducer need not be awaited before the next Producer.
    named.write(simple(CLOSE_PRODUCER, f(1, 1), f(2, 5)), produce(name, 6, f(4, "mine")))
    answers = {type_: body[1] for type_, body, _ in (named.receive(), named.receive())}
    assert answers == {SUCCESS: [5], PRODUCER_SUCCESS: [6]}


def test_broker_entry_metadata_before_an_entry_that_is_sent(opened: Open, name: str) -> None:
    """It is made by the broker, and so what a client has put there is left out."""
    client = opened(21)
    client.ask(produce(name), PRODUCER_SUCCESS)
    foreign = f(1, 123) + f(2, 7)
    prefix = b"\x0e\x02" + struct.pack(">I", len(foreign)) + foreign
    client.ask(send(prefix + entry(b"x", 0), 0), SEND_RECEIPT)
    for sequence_id, damaged in enumerate((prefix[:4], prefix[:-1], prefix, b"\x0e\x02\xff\xff\xff\xff"), 1):
        assert client.ask(send(damaged, sequence_id), SEND_ERROR)[2] == [sequence_id]
    client.ask(subscribe(name), SUCCESS)
    client.write(simple(FLOW, f(1, 1), f(2, 10)))
    assert client.message()[1] == entry(b"x", 0)


def test_permits_and_acknowledgements(opened: Open, name: str) -> None:
    client = opened(17)
    client.ask(produce(name), PRODUCER_SUCCESS)
    for n in range(4):
        client.ask(send(entry(b"%d" % n, n), n), SEND_RECEIPT)
    client.ask(subscribe(name), SUCCESS)
    assert client.is_silent(), "no permits"
    client.write(simple(FLOW, f(1, 1), f(2, 2)))
    (first, payload), (second, _) = client.message(), client.message()
    assert payload == entry(b"0", 0)
    assert client.is_silent()
    validation_error = f(4, 2)
    client.write(simple(ACK, f(1, 1), f(2, INDIVIDUAL), f(3, first), validation_error))
    client.write(simple(REDELIVER, f(1, 1)), simple(FLOW, f(1, 1), f(2, 1)))
    assert client.message()[0] == second, "what is not acknowledged comes again"
    client.write(simple(FLOW, f(1, 1), f(2, 2)))
    client.message()
    fourth, _ = client.message()
    answer = client.ask(simple(ACK, f(1, 1), f(2, CUMULATIVE), f(3, fourth), f(8, 77)), ACK_RESPONSE)
    assert (answer[1], answer[6]) == ([1], [77])
    stats = client.ask(simple(CONSUMER_STATS, f(1, 78), f(4, 1)), CONSUMER_STATS_RESPONSE)
    assert (stats[1], stats[7], stats[13], stats[15]) == ([78], [b"c"], [b"Exclusive"], [0])
    assert client.ask(simple(CONSUMER_STATS, f(1, 79), f(4, 9)), CONSUMER_STATS_RESPONSE)[2] == [13]
    client.ask(simple(CLOSE_CONSUMER, f(1, 1), f(2, 80)), SUCCESS)
    client.ask(subscribe(name, 81), SUCCESS)
    client.write(simple(FLOW, f(1, 1), f(2, 10)))
    assert client.is_silent(), "the position is kept"
    assert client.ask(simple(UNSUBSCRIBE, f(1, 1), f(2, 82)), SUCCESS)[1] == [82]
    client.ask(subscribe(name, 83), SUCCESS)
    client.write(simple(FLOW, f(1, 1), f(2, 1)))
    assert client.message()[0] == first, "a new subscription"


def test_batches(opened: Open, name: str) -> None:
    client = opened()
    client.ask(produce(name), PRODUCER_SUCCESS)
    singles = [(f(3, 1), b"a"), (f(1, f(1, "k") + f(2, "v")) + f(2, "key") + f(3, 2), b"bb"), (f(3, 0), b"")]
    payload = b"".join(struct.pack(">I", len(metadata)) + metadata + content for metadata, content in singles)
    batch = entry(payload, 0, f(11, 3))
    assert client.ask(send(batch, 0, f(3, 3)), SEND_RECEIPT)[2] == [0]
    client.ask(subscribe(name), SUCCESS)
    client.write(simple(FLOW, f(1, 1), f(2, 3)))
    assert client.message()[1] == batch[6:], "a client of version 6 is sent no checksum"


def test_the_first_consumer_by_name_is_the_master(opened: Open, name: str) -> None:
    clients = {who: opened(12) for who in ("b", "c", "a")}
    for who, client in clients.items():
        client.ask(subscribe(name, kind=FAILOVER, consumer=who), SUCCESS)
    for client in clients.values():
        client.write(simple(FLOW, f(1, 1), f(2, 10)))
    for who, client in clients.items():
        assert client.take(ACTIVE_CONSUMER_CHANGE)[2] == [who == "a"]
    sender = opened()
    sender.ask(produce(name), PRODUCER_SUCCESS)
    sender.ask(send(entry(b"x")), SEND_RECEIPT)
    assert clients["a"].message()[1] == entry(b"x")
    clients["a"].close()
    assert clients["b"].take(ACTIVE_CONSUMER_CHANGE)[2] == [1]
    assert clients["b"].message()[1] == entry(b"x")


def test_shared_consumers_take_turns(opened: Open, name: str) -> None:
    client = opened()
    for number in (1, 2):
        client.ask(subscribe(name, number, SHARED, f"c{number}", number), SUCCESS)
        client.write(simple(FLOW, f(1, number), f(2, 100)))
    sender = opened()
    sender.ask(produce(name), PRODUCER_SUCCESS)
    for n in range(10):
        sender.ask(send(entry(b"x", n), n), SEND_RECEIPT)
    counts = {1: 0, 2: 0}
    for _ in range(10):
        type_, body, _ = client.receive()
        assert type_ == MESSAGE
        counts[int(body[1][0])] += 1
    assert counts == {1: 5, 2: 5}


def test_errors(opened: Open, name: str) -> None:
    client, other = opened(), opened()
    client.ask(subscribe(name), SUCCESS)
    other.write(subscribe(name, 5))
    client.take(PING)  # the broker wants to know whether it is there
    client.write(simple(PONG))
    refused = other.take(ERROR)
    assert (refused[1], refused[2]) == ([5], [5]), "ConsumerBusy"
    unknown = "persistent://my-property/my-cluster/my-namespace/my-topic"
    assert other.ask(produce(unknown, 6), ERROR)[2] == [11], "TopicNotFound"
    for type_ in (CLOSE_PRODUCER, CLOSE_CONSUMER):
        assert other.ask(simple(type_, f(1, 55), f(2, 9)), SUCCESS)[1] == [9]
    other.write(simple(99))
    assert other.closed_by_server()
