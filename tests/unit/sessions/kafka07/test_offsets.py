"""OFFSETS: the end, the start, and what was before a time."""

import pytest

from millstream.wire.kafka07.requests import OffsetsRequest
from tests.unit.sessions.kafka07.conversation import Conversation
from tests.unit.wire.kafka07.sets import message_set

SET = message_set(b"x" * 91)


@pytest.fixture
def client() -> Conversation:
    """A client of a broker with a topic of three segments, a minute between the messages, two in each segment."""
    client = Conversation(log__segment__bytes="330")
    for _ in range(6):
        client.produce(SET)
        client.pass_ms(60_000)
    return client


def test_latest(client: Conversation) -> None:
    assert client.partition().log.segment_count == 3
    assert client.offsets(-1) == [600, 400, 200, 0]
    assert client.offsets(-1, 2) == [600, 400]
    assert client.offsets(-1, 0) == []


def test_earliest(client: Conversation) -> None:
    assert client.offsets(-2, 5) == [0]


def test_before_a_time(client: Conversation) -> None:
    start_ms = client.runtime.now_ms() - 6 * 60_000
    assert client.offsets(start_ms - 1) == []
    assert client.offsets(start_ms + 60_000 - 1) == []
    assert client.offsets(start_ms + 60_000) == [0]
    assert client.offsets(start_ms + 180_000) == [200, 0]
    assert client.offsets(start_ms + 300_000) == [400, 200, 0]
    assert client.offsets(client.runtime.now_ms()) == [600, 400, 200, 0]


@pytest.mark.parametrize("time_ms", [0x6B0000000000F18A, 2**63 - 1])
def test_the_far_future_is_the_end(client: Conversation, time_ms: int) -> None:
    assert client.offsets(time_ms, 1) == [600]


@pytest.mark.parametrize("time_ms", [0, -3, -(2**63)])
def test_the_far_past(client: Conversation, time_ms: int) -> None:
    assert client.offsets(time_ms) == []


def test_an_empty_topic() -> None:
    client = Conversation()
    client.create("orders")
    assert client.offsets(-1) == [0]
    assert client.offsets(-2) == [0]


def test_an_unknown_topic() -> None:
    client = Conversation()
    assert client.offsets(-1) == [0]
    assert client.offsets(-2) == [0]
    assert client.offsets(5) == []
    assert not client.topic_exists("orders")


@pytest.mark.parametrize(
    "request_",
    [OffsetsRequest("orders", 9, -1, 1), OffsetsRequest("orders", -1, -1, 1), OffsetsRequest("orders", 0, -1, -1)],
)
def test_what_has_no_code_costs_the_connection(client: Conversation, request_: OffsetsRequest) -> None:
    assert client.refused(request_)
