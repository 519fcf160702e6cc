"""Fetch sessions (KIP-227): answers hold only what changed, and requests only what changes."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from millstream.wire.kafka.messages.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from tests.conformance.raw.conftest import Connect
from tests.conformance.raw.log_client import LogClient, records_of

BY_NAME, BY_ID = 12, 17
FINAL_EPOCH = -1


class Session:
    """One fetch session on a topic, as a consumer keeps it."""

    def __init__(self, client: LogClient, version: int, topic: str, topic_id: UUID) -> None:
        self.client, self.version = client, version
        self.topic, self.topic_id = topic, topic_id
        self.id = self.epoch = 0

    def fetch(self, offsets: dict[int, int], forgotten: tuple[int, ...] = (), **request: Any) -> dict[int, Any]:
        """Fetch; returns the answers by partition, and goes to the next epoch."""
        answer = self.call(offsets, forgotten, **request)
        assert answer.error_code == 0, ErrorCode(answer.error_code).name
        assert answer.session_id != 0
        assert self.id in {0, answer.session_id}
        self.id = answer.session_id
        self.epoch += 1
        return {one.partition_index: one for topic in answer.responses for one in topic.partitions}

    def call(self, offsets: dict[int, int], forgotten: tuple[int, ...] = (), **request: Any) -> Any:
        name = {"topic": self.topic} if self.version == BY_NAME else {"topic_id": self.topic_id}
        wanted = [
            FetchPartition(partition=p, fetch_offset=o, partition_max_bytes=1 << 20) for p, o in offsets.items()
        ]
        return self.client.call(
            FETCH,
            self.version,
            FetchRequest(
                **{"session_id": self.id, "session_epoch": self.epoch, **request},
                topics=[FetchTopic(**name, partitions=wanted)] if wanted else [],
                forgotten_topics_data=[ForgottenTopic(**name, partitions=list(forgotten))] if forgotten else [],
            ),
        )


@pytest.fixture(params=[BY_NAME, BY_ID], ids=["by-name", "by-id"])
def session(client: LogClient, request: pytest.FixtureRequest, unique: Callable[[str], str]) -> Session:
    topic = unique("raw")
    return Session(client, request.param, topic, client.create_topic(topic, 4))


def test_answers_hold_only_what_changed(session: Session, connect: Connect) -> None:
    writer = connect()
    writer.append_to(session.topic, 0, b"a")
    first = session.fetch(dict.fromkeys(range(4), 0))
    assert set(first) == {0, 1, 2, 3}
    assert [record.value for record in records_of(first[0].records)] == [b"a"]
    assert session.fetch({0: 1}) == {}
    assert session.fetch({}) == {}
    writer.append_to(session.topic, 2, b"b")
    assert set(session.fetch({})) == {2}
    # Not read on yet, so it comes again.
    assert set(session.fetch({})) == {2}
    assert session.fetch({2: 1}) == {}


def test_a_new_start_is_a_change(session: Session, connect: Connect) -> None:
    writer = connect()
    writer.append_to(session.topic, 1, b"a", b"b")
    session.fetch({1: 2})
    assert session.fetch({}) == {}
    asked = DeleteRecordsTopic(name=session.topic, partitions=[DeleteRecordsPartition(partition_index=1, offset=1)])
    writer.call(DELETE_RECORDS, 2, DeleteRecordsRequest(topics=[asked]))
    assert session.fetch({})[1].log_start_offset == 1
    assert session.fetch({}) == {}


def test_it_waits_in_a_session(session: Session, connect: Connect) -> None:
    session.fetch(dict.fromkeys(range(4), 0))
    name = {"topic": session.topic} if session.version == BY_NAME else {"topic_id": session.topic_id}
    request = FetchRequest(session_id=session.id, session_epoch=1, max_wait_ms=50_000, min_bytes=1, topics=[])
    sent = session.client.send(FETCH, session.version, request)
    connect().append_to(session.topic, 3, b"news")
    [answered] = session.client.receive(FETCH, session.version, sent).responses
    assert {key: getattr(answered, key) for key in name} == name
    assert [one.partition_index for one in answered.partitions] == [3]


def test_forgotten_and_added_partitions(session: Session, connect: Connect) -> None:
    writer = connect()
    session.fetch({0: 0, 1: 0})
    for partition in range(4):
        writer.append_to(session.topic, partition, b"x")
    assert set(session.fetch({3: 0}, forgotten=(0,))) == {1, 3}
    assert set(session.fetch({0: 0}, forgotten=(1, 3))) == {0}
    # One that was never there may be forgotten too.
    assert set(session.fetch({}, forgotten=(2,))) == {0}


def test_wrong_epochs_and_unknown_ids(session: Session) -> None:
    session.fetch({0: 0})
    for epoch in (2, 7, 2**31 - 1):
        answer = session.call({}, session_epoch=epoch)
        assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert answer.responses == []
    assert session.fetch({}) == {}, "a wrong epoch does not disturb the session"
    answer = session.call({}, session_epoch=1)
    assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH, "nor can an epoch be used twice"
    for unknown in (session.id ^ 1, 1, 2**31 - 1):
        assert session.call({}, session_id=unknown).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_end_of_a_session(session: Session) -> None:
    session.fetch({0: 0})
    closing = session.call({0: 0, 1: 0}, session_epoch=FINAL_EPOCH)
    assert (closing.error_code, closing.session_id) == (0, 0)
    assert {one.partition_index for topic in closing.responses for one in topic.partitions} == {0, 1}
    assert session.call({}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_new_session_takes_the_place_of_the_old(session: Session) -> None:
    session.fetch({0: 0})
    old_id = session.id
    answer = session.call({1: 0}, session_epoch=0)
    assert answer.session_id not in {0, old_id}
    assert session.call({}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_errors_are_told_every_time(session: Session) -> None:
    first = session.fetch({0: 0, 9: 0})
    assert first[9].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert set(session.fetch({}, max_wait_ms=30_000, min_bytes=1)) == {9}


def test_no_partition_starves(session: Session, connect: Connect) -> None:
    writer = connect()
    for partition in range(4):
        for _ in range(4):
            writer.append_to(session.topic, partition, bytes(1000))
    offsets = dict.fromkeys(range(4), 0)
    served = []
    for _ in range(8):
        answers = session.fetch(offsets, max_bytes=1)
        with_data = [index for index, answer in answers.items() if answer.records]
        served += with_data
        offsets = {index: records_of(answers[index].records)[-1].offset + 1 for index in with_data}
    assert sorted(served) == sorted([0, 1, 2, 3] * 2)
