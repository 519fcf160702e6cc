"""PRODUCE and MULTIPRODUCE: what is stored, what is dropped, what costs the connection."""

import pytest

from millstream.model.frame import HEADER_BYTES, Magic, read_frame_header
from millstream.wire.compression import Codec
from millstream.wire.kafka07.messages import encode_wrapper
from millstream.wire.kafka07.requests import ANY_PARTITION, MultiProduceRequest, ProduceRequest
from tests.support.batches import read_all
from tests.unit.sessions.kafka07.conversation import Conversation
from tests.unit.wire.kafka07.sets import message_set, wrapper


def test_what_is_stored_is_what_was_sent() -> None:
    client = Conversation()
    body = message_set(b"a", b"b") + wrapper([b"c", b"d"], Codec.SNAPPY) + message_set(b"e", magic=1)
    client.produce(body)
    (frame,) = read_all(client.partition().log)
    header = read_frame_header(frame)
    assert frame[HEADER_BYTES:] == body
    assert (header.magic, header.record_count) == (Magic.KAFKA07_SET, 5)
    assert header.max_timestamp == client.runtime.now_ms()
    assert client.partition().log.end_offset == 5


def test_the_first_produce_makes_the_topic_and_holds_the_connection_meanwhile() -> None:
    client = Conversation()
    assert client.send(ProduceRequest("orders", 0, message_set(b"a"))) is None
    assert client.peer.held == 1
    client.runtime.run()
    assert client.peer.held == 0
    assert client.fetch() == (0, message_set(b"a"))


def test_a_message_set_of_nothing_makes_the_topic_too() -> None:
    client = Conversation()
    client.produce(b"")
    assert client.topic_exists("orders")
    assert client.fetch() == (0, b"")


def test_any_partition() -> None:
    client = Conversation()
    client.create("orders", partitions=4)
    for _ in range(60):
        client.produce(message_set(b"x"), ANY_PARTITION)
    ends = [client.partition(index).log.end_offset for index in range(4)]
    assert sum(ends) == 60
    assert min(ends) > 0


def test_messages_that_are_too_large_are_dropped_and_counted() -> None:
    client = Conversation(max__message__size="10")
    client.produce(message_set(b"a", b"x" * 11, b"b" * 10))
    assert client.fetch() == (0, message_set(b"a", b"b" * 10))
    assert client.broker.dropped_messages == {"kafka07": 1}
    assert not client.peer.ended


def test_the_limit_is_that_of_the_original() -> None:
    client = Conversation()
    largest = message_set(b"x" * 1_000_000)
    client.produce(largest + message_set(b"x" * 1_000_001))
    assert client.fetch() == (0, largest)


def test_a_set_larger_than_a_batch_may_be_becomes_several() -> None:
    client = Conversation()
    body = message_set(*(b"%06d" % n * 100 for n in range(5000)))
    client.produce(body)
    frames = read_all(client.partition().log)
    assert len(frames) == 3
    assert client.fetch() == (0, body)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(ProduceRequest("orders", 1, message_set(b"a")), id="no such partition"),
        pytest.param(ProduceRequest("orders", -2, message_set(b"a")), id="a negative partition"),
        pytest.param(ProduceRequest("orders", 0, message_set(b"a")[:-1]), id="a first message that is not whole"),
        pytest.param(ProduceRequest("orders", 0, message_set(b"a")[:-1] + b"b"), id="a wrong checksum"),
        pytest.param(
            ProduceRequest("orders", 0, encode_wrapper([b"no message"], Codec.GZIP)), id="no messages in a wrapper"
        ),
    ],
)
@pytest.mark.parametrize("exists", [False, True])
def test_what_cannot_be_done_costs_the_connection(request_: ProduceRequest, exists: bool) -> None:
    client = Conversation()
    if exists:
        client.create("orders")
    assert client.refused(request_)
    assert client.peer.held == 0
    client.produce(message_set(b"later"))
    assert client.fetch() == (0, message_set(b"later"))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "x" * 256, "\ue000"])
def test_names_that_a_topic_cannot_have(name: str) -> None:
    client = Conversation()
    assert client.refused(ProduceRequest(name, 0, message_set(b"a")))
    assert not list(client.broker.topics)


def test_topics_are_not_made_where_that_is_off() -> None:
    client = Conversation(auto__create__topics__enable="false")
    assert client.refused(ProduceRequest("orders", 0, message_set(b"a")))


def test_a_compacted_topic_takes_no_messages_without_a_key() -> None:
    client = Conversation()
    client.create("orders", cleanup__policy="compact")
    assert client.refused(ProduceRequest("orders", 0, message_set(b"a")))


def test_several_sets_in_one_request() -> None:
    client = Conversation()
    client.create("old", partitions=2)
    parts = [("old", 0, b"a"), ("new", 0, b"b"), ("old", 1, b"c"), ("newer", 0, b"d"), ("new", 0, b"e")]
    client.multi_produce(*(ProduceRequest(name, index, message_set(value)) for name, index, value in parts))
    assert client.fetch(name="old") == (0, message_set(b"a"))
    assert client.fetch(name="old", partition=1) == (0, message_set(b"c"))
    assert client.fetch(name="new") == (0, message_set(b"b", b"e"))
    assert client.fetch(name="newer") == (0, message_set(b"d"))
    assert client.peer.held == 0


@pytest.mark.parametrize("exists", [False, True])
def test_what_stood_before_the_part_that_fails_is_stored(exists: bool) -> None:
    client = Conversation()
    if exists:
        client.create("orders")
    sets = [message_set(b"a"), message_set(b"b")[:-1] + b"?", message_set(b"c")]
    assert client.refused(MultiProduceRequest([ProduceRequest("orders", 0, one) for one in sets]))
    assert client.fetch() == (0, message_set(b"a"))


def test_a_bomb_is_refused() -> None:
    client = Conversation()
    client.create("orders")
    bomb = encode_wrapper([message_set(bytes(140 * 1024 * 1024))], Codec.GZIP)
    assert len(bomb) < 1_000_000
    assert client.refused(ProduceRequest("orders", 0, bomb))
    assert client.partition().log.end_offset == 0


def test_a_log_that_failed_costs_the_connection() -> None:
    client = Conversation()
    client.create("orders")
    client.partition().log.fail("for the test")
    assert client.refused(ProduceRequest("orders", 0, message_set(b"a")))
