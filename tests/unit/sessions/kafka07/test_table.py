"""The tables of Kafka 0.7: every request is served and documented, every refusal has its code."""

import struct
from pathlib import Path

import pytest

from millstream.broker.address_index import AddressDamaged
from millstream.broker.errors import InvalidTopicName, UnknownTopic
from millstream.model.errors import IoFailed
from millstream.sessions.kafka07.call import Call
from millstream.sessions.kafka07.error_table import code_of
from millstream.sessions.kafka07.errors import Unanswerable, WrongPartition
from millstream.sessions.kafka07.names import check_topic_name
from millstream.sessions.kafka07.session import Kafka07Session
from millstream.sessions.kafka07.table import HANDLERS
from millstream.storage.errors import LogFailed, OffsetOutOfRange
from millstream.wire.errors import WireError
from millstream.wire.kafka07.error_codes import ErrorCode
from millstream.wire.kafka07.requests import RequestType
from tests.unit.sessions.kafka07.conversation import Conversation, FakePeer

DOCS = Path(__file__).parents[4] / "docs/kafka07.md"


def test_every_request_is_served() -> None:
    assert {handler.type for handler in HANDLERS.values()} == set(RequestType)
    silent = {handler.type for handler in HANDLERS.values() if not handler.answered}
    assert silent == {RequestType.PRODUCE, RequestType.MULTIPRODUCE}


def test_every_request_is_documented() -> None:
    text = DOCS.read_text()
    for handler in HANDLERS.values():
        assert f"| {int(handler.type)} | {handler.type.name} | {'none |' if not handler.answered else ''}" in text


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OffsetOutOfRange("x"), ErrorCode.OFFSET_OUT_OF_RANGE),
        (AddressDamaged("x"), ErrorCode.INVALID_MESSAGE),
        (WrongPartition("x"), ErrorCode.WRONG_PARTITION),
        (LogFailed("x"), ErrorCode.UNKNOWN),
        (IoFailed("x"), ErrorCode.UNKNOWN),
        (UnknownTopic("x"), ErrorCode.UNKNOWN),
        (OSError("x"), ErrorCode.UNKNOWN),
    ],
)
def test_codes(error: OSError | WrongPartition, code: ErrorCode) -> None:
    assert code_of(error) is code


def test_what_has_no_answer_ends_the_connection() -> None:
    assert issubclass(Unanswerable, WireError)


@pytest.mark.parametrize("name", ["a", "a b", "ünï", "x" * 255, "...", "a.b-c_d", "\U0001f600"])
def test_names(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 256, "a/b", "\t", "\x7f", "\x85", "\ue000", "\uffff"])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(InvalidTopicName):
        check_topic_name(name)


def test_where_requests_end() -> None:
    session = Conversation(socket__request__max__bytes="100").session
    assert isinstance(session, Kafka07Session)
    for size in range(4):
        assert session.measure(memoryview(bytes(size))) == 0
    assert session.measure(memoryview(struct.pack(">i", 100))) == 104
    for length in (0, -1, 101, 2**31 - 1):
        with pytest.raises(WireError):
            session.measure(memoryview(struct.pack(">i", length) + b"more"))


def test_a_call_knows_the_broker() -> None:
    client = Conversation()
    assert Call(client.service.shared, FakePeer()).broker is client.broker
