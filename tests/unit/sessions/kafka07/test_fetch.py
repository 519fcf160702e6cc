"""FETCH and MULTIFETCH: the exact bytes from any address, and what is answered where there are none."""

import pytest

from millstream.wire.kafka07.requests import FetchRequest
from tests.unit.sessions.kafka07.conversation import Conversation
from tests.unit.wire.kafka07.sets import message_set, wrapper

BODY = message_set(b"first", b"the second") + wrapper([b"x"] * 20) + message_set(b"", b"last", magic=1)


@pytest.fixture
def client() -> Conversation:
    """A client of a broker with one topic, whose messages came in three sets."""
    client = Conversation()
    for start, stop in ((0, 14), (14, len(BODY) - 24), (len(BODY) - 24, len(BODY))):
        client.produce(BODY[start:stop])
    return client


def test_from_every_byte(client: Conversation) -> None:
    for address in range(len(BODY) + 1):
        assert client.fetch(address) == (0, BODY[address:])


@pytest.mark.parametrize("size", [1, 2, 9, 10, 13, 60, 100, 1000])
def test_exactly_as_many_bytes_as_fit(client: Conversation, size: int) -> None:
    for address in range(len(BODY)):
        assert client.fetch(address, size) == (0, BODY[address : address + size])


@pytest.mark.parametrize("size", [0, -1, -(2**31)])
def test_no_room_for_anything(client: Conversation, size: int) -> None:
    assert client.fetch(5, size) == (0, b"")
    assert client.fetch(10**9, size) == (1, b"")


def test_errors(client: Conversation) -> None:
    assert client.fetch(len(BODY)) == (0, b"")
    assert client.fetch(len(BODY) + 1) == (1, b"")
    assert client.fetch(10_000_000) == (1, b"")
    assert client.fetch(-1) == (1, b"")
    assert client.fetch(partition=1) == (3, b"")
    assert client.fetch(partition=-1) == (3, b"")
    assert client.fetch(name="nobody") == (0, b"")
    assert client.fetch(name="nobody", partition=77) == (3, b"")
    assert not client.topic_exists("nobody")


def test_several_at_once(client: Conversation) -> None:
    client.create("empty")
    asked = [
        FetchRequest("orders", 0, 14, 10),
        FetchRequest("orders", 9, 0, 10),
        FetchRequest("orders", 0, 10**6, 10),
        FetchRequest("empty", 0, 0, 10),
        FetchRequest("nobody", 0, 0, 10),
        FetchRequest("orders", 0, 0, 5),
    ]
    expected = [(0, BODY[14:24]), (3, b""), (1, b""), (0, b""), (0, b""), (0, BODY[:5])]
    assert client.multi_fetch(*asked) == expected
    assert client.multi_fetch() == []


def test_the_room_that_a_slow_reader_leaves_bounds_an_answer(client: Conversation) -> None:
    client.peer.room = 40
    assert client.fetch() == (0, BODY[:40])
    first, second = client.multi_fetch(FetchRequest("orders", 0, 0, 30), FetchRequest("orders", 0, 0, 30))
    assert len(first[1]) == 30
    assert len(second[1]) < 10


def test_appends_of_the_same_moment_are_seen(client: Conversation) -> None:
    client.fetch()
    frame = message_set(b"newest")
    for _ in range(3):
        client.session.handle(memoryview(bytearray(_produce(frame))))
        assert client.fetch(client.end() - len(frame)) == (0, frame)


def _produce(messages: bytes) -> bytes:
    return bytes.fromhex("0000 0006") + b"orders" + bytes(4) + len(messages).to_bytes(4, "big") + messages


def test_what_others_write_is_read_as_messages(client: Conversation) -> None:
    client.write_kafka(b"from kafka", b"", b"k" * 50_000)
    body = BODY + message_set(b"from kafka", b"", b"k" * 50_000)
    client.produce(message_set(b"mine"))
    body += message_set(b"mine")
    assert client.fetch() == (0, body)
    for address in [*range(len(BODY) - 5, len(BODY) + 60), len(body) - 40_000, len(body) - 1]:
        for size in (1, 60, 10**6):
            assert client.fetch(address, size) == (0, body[address : address + size])


def test_many_small_frames() -> None:
    client = Conversation()
    body = b""
    for number in range(1500):
        client.produce(message_set(b"%d" % number))
        body += message_set(b"%d" % number)
    assert client.fetch() == (0, body)
    for address in range(0, len(body), 777):
        assert client.fetch(address, 500) == (0, body[address : address + 500])


def test_a_long_log_is_walked_over_in_slices() -> None:
    client = Conversation()
    client.create("orders")
    client.write_kafka(*(b"%05d" % n * 2000 for n in range(300)))
    body = message_set(*(b"%05d" % n * 2000 for n in range(300)))
    answer = client.send(FetchRequest("orders", 0, len(body) - 100, 100))
    steps = 0
    while client.runtime.step():
        steps += 1
    assert steps > 20, "others have their turn in between"
    assert answer is not None
    assert client.fetch(len(body) - 100) == (0, body[-100:])
    assert client.end() == len(body)
