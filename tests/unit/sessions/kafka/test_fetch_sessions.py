"""Fetch sessions (KIP-227): epochs, what is left out of an answer, fairness, and who makes room."""

from typing import Any

import pytest

from millstream.sessions.kafka import fetch_sessions
from millstream.sessions.kafka.fetch_sessions import UNUSED_MS, FetchSessions
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.fetch import FETCH, FetchRequest, ForgottenTopic
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import append
from tests.unit.sessions.kafka.conversation import Conversation, fetch_request

BY_NAME = 12


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation(max__incremental__fetch__session__cache__slots="2")
    for name in ("a", "b", "c"):
        talk.create(name)
    return talk


def begin(talk: Conversation, *names: str) -> int:
    response = talk.ask(FETCH, fetch_request(names=names, session_epoch=0, max_wait_ms=0), BY_NAME)
    assert response.session_id > 0
    assert told(response) == list(names)
    return int(response.session_id)


def go_on(talk: Conversation, session_id: int, epoch: int, *names: str, **more: Any) -> Any:
    request = fetch_request(names=names, session_id=session_id, session_epoch=epoch, max_wait_ms=0)
    for name, value in more.items():
        setattr(request, name, value)
    return talk.ask(FETCH, request, BY_NAME)


def told(response: Any) -> list[str]:
    return [topic.topic for topic in response.responses]


def write(talk: Conversation, name: str) -> None:
    append(talk.partition(name), batch(b"value", timestamp_ms=talk.runtime.now_ms()))
    talk.runtime.run()


def test_only_what_is_new_is_told(talk: Conversation) -> None:
    session_id = begin(talk, "a", "b")
    assert told(go_on(talk, session_id, 1)) == []
    write(talk, "b")
    assert told(go_on(talk, session_id, 2)) == ["b"]
    assert told(go_on(talk, session_id, 3)) == ["b"]  # the client has not moved on
    assert told(go_on(talk, session_id, 4, "c")) == ["b", "c"]


def test_a_partition_that_is_forgotten_is_told_no_more(talk: Conversation) -> None:
    session_id = begin(talk, "a", "b")
    write(talk, "a")
    forgotten = [ForgottenTopic(topic="a", partitions=[0, 5]), ForgottenTopic(topic="x", partitions=[0])]
    assert told(go_on(talk, session_id, 1, forgotten_topics_data=forgotten)) == []


def test_partitions_that_had_data_go_to_the_end(talk: Conversation) -> None:
    session_id = begin(talk, "a", "b", "c")
    for name in ("a", "b", "c"):
        write(talk, name)
    served = [told(go_on(talk, session_id, epoch, max_bytes=1)) for epoch in range(1, 7)]
    assert [names[0] for names in served] == ["a", "b", "c", "a", "b", "c"]


def test_requests_must_follow_one_another(talk: Conversation) -> None:
    session_id = begin(talk, "a")
    for epoch in (2, 5):
        assert go_on(talk, session_id, epoch).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert go_on(talk, session_id, 1).error_code == ErrorCode.NONE
    assert go_on(talk, session_id, 1).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert go_on(talk, session_id + 1, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_ends_when_its_client_says_so(talk: Conversation) -> None:
    session_id = begin(talk, "a")
    response = go_on(talk, session_id, -1, "b")
    assert (response.session_id, told(response)) == (0, ["b"])
    assert go_on(talk, session_id, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_full_request_begins_a_session_anew(talk: Conversation) -> None:
    first = begin(talk, "a")
    response = go_on(talk, first, 0, "b")
    assert response.session_id not in {0, first}
    assert go_on(talk, first, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_only_a_session_that_is_unused_makes_room(talk: Conversation) -> None:
    first, second = begin(talk, "a"), begin(talk, "a")
    full = fetch_request(names=("a",), session_epoch=0, max_wait_ms=0)
    response = talk.ask(FETCH, full, BY_NAME)
    assert (response.session_id, told(response)) == (0, ["a"])
    talk.pass_ms(UNUSED_MS - 1)
    go_on(talk, first, 1)
    assert talk.ask(FETCH, full, BY_NAME).session_id == 0
    talk.pass_ms(1)
    third = begin(talk, "a")
    assert go_on(talk, second, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert go_on(talk, first, 2).error_code == go_on(talk, third, 1).error_code == ErrorCode.NONE


def test_sessions_are_not_made_or_grown_beyond_all_bounds(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_MAX", 3)
    first = begin(talk, "a", "b")
    full = fetch_request(names=("a", "b"), session_epoch=0, max_wait_ms=0)
    assert talk.ask(FETCH, full, BY_NAME).session_id == 0
    second = begin(talk, "a")
    assert go_on(talk, second, 1, "b").error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    forgotten = [ForgottenTopic(topic="a", partitions=[0])]
    assert go_on(talk, first, 1, "b", forgotten_topics_data=forgotten).error_code == ErrorCode.NONE
    begin(talk, "a", "c")


def test_without_slots_every_fetch_is_a_full_one() -> None:
    talk = Conversation(max__incremental__fetch__session__cache__slots="0")
    talk.create("a")
    response = talk.ask(FETCH, fetch_request(names=("a",), session_epoch=0, max_wait_ms=0), BY_NAME)
    assert (response.session_id, told(response)) == (0, ["a"])


def test_a_topic_that_comes_back_is_another_one_by_id(talk: Conversation) -> None:
    old = talk.topic("a").id
    request = fetch_request(topic_id=old, session_epoch=0, max_wait_ms=0)
    session_id = talk.ask(FETCH, request).session_id
    talk.wait(talk.broker.delete_topic(talk.topic("a")))
    talk.create("a")
    response = talk.ask(FETCH, FetchRequest(max_wait_ms=0, min_bytes=1, session_id=session_id, session_epoch=1))
    [topic] = response.responses
    assert (topic.topic_id, topic.partitions[0].error_code) == (old, ErrorCode.UNKNOWN_TOPIC_ID)


def test_epochs_begin_again_behind_the_largest() -> None:
    sessions = FetchSessions(1, lambda count: bytes([1] * count), lambda: 0)
    session = sessions.begin(FetchRequest(max_wait_ms=0, min_bytes=0))
    assert session is not None
    session.epoch = 2**31 - 1
    request = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session.id, session_epoch=2**31 - 1)
    assert sessions.resume(request) is session
    assert session.epoch == 1


def test_ids_are_positive_and_never_given_twice_at_a_time() -> None:
    drawn = iter([b"\0\0\0\0", b"\0\0\0\1", b"\xff\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\2"])
    sessions = FetchSessions(3, lambda _: next(drawn), lambda: 0)
    ids = []
    for _ in range(2):
        session = sessions.begin(FetchRequest(max_wait_ms=0, min_bytes=0))
        assert session is not None
        ids.append(session.id)
    assert ids == [2**31 - 1, 1]
