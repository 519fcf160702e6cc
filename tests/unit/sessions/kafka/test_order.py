"""A request counts on what those before it have changed."""

import struct

import pytest

from millstream.model.pending import Pending
from millstream.sessions.kafka.table import HANDLERS, Turn
from millstream.wire.kafka.api import Api
from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.kafka.messages.create_topics import CREATE_TOPICS, CreatableTopic, CreateTopicsRequest
from millstream.wire.kafka.messages.fetch import FETCH
from millstream.wire.kafka.messages.metadata import METADATA, MetadataRequest
from millstream.wire.kafka.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.wire.kafka.messages.produce import PRODUCE
from tests.support.batches import batch
from tests.unit.sessions.kafka.conversation import BY_NAME, Conversation, fetch_request, produce_request

TOPIC = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
COMMIT = OffsetCommitRequestTopic(
    name="orders", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
)


@pytest.fixture
def client() -> Conversation:
    client = Conversation()
    client.create()
    return client


CREATE = CREATE_TOPICS, CreateTopicsRequest(topics=[TOPIC], timeout_ms=1000), 5
COMMITTED = OFFSET_COMMIT, OffsetCommitRequest(group_id="g", topics=[COMMIT]), 8
ASKED = METADATA, MetadataRequest(topics=[]), 1
Sent = tuple[Api, object, int]


def waits(client: Conversation, sent: Sent) -> bool:
    """Whether a request that has arrived is not served yet."""
    api, request, version = sent
    frame = memoryview(b"".join(api.encode_request(version, 7, "client", request)))
    return client.session.measure(frame) == 0


@pytest.mark.parametrize(
    ("first", "behind"),
    [(CREATE, ASKED), (CREATE, CREATE), (COMMITTED, ASKED), (COMMITTED, CREATE)],
    ids=["CreateTopics, Metadata", "CreateTopics twice", "OffsetCommit, Metadata", "OffsetCommit, CreateTopics"],
)
def test_a_request_waits_for_what_those_before_it_change(client: Conversation, first: Sent, behind: Sent) -> None:
    assert not waits(client, behind)
    pending = client.send(*first)
    assert isinstance(pending, Pending)
    assert not pending.done
    assert client.session.measure(memoryview(b"\0\0\0\x20\0")) == 0
    assert client.held == 0, "what is behind it has not come"
    assert waits(client, behind)
    assert client.held == 1
    client.wait(pending)
    assert client.held == 0
    assert not waits(client, behind)


def test_commits_go_to_the_disk_together(client: Conversation) -> None:
    first = client.send(*COMMITTED)
    assert not waits(client, COMMITTED)
    second = client.send(*COMMITTED)
    assert waits(client, ASKED)
    assert first is not None
    assert second is not None
    client.wait(first)
    client.wait(second)
    assert client.held == 0
    assert not waits(client, ASKED)


def test_requests_behind_a_produce_or_a_fetch_do_not_wait(client: Conversation) -> None:
    client.send(PRODUCE, produce_request(batch(b"value")), BY_NAME)
    client.send(FETCH, fetch_request(5), BY_NAME)
    assert not waits(client, ASKED)


def test_what_will_be_refused_waits_its_turn_too(client: Conversation) -> None:
    """Or those before it would lose their answers."""
    pending = client.send(*CREATE)
    assert pending is not None
    unknown, endless = (struct.pack(">ih", length, -1) + bytes(18) for length in (20, 2**31 - 1))
    assert client.session.measure(memoryview(unknown)) == 0
    assert client.session.measure(memoryview(endless)) == 0
    client.wait(pending)
    assert client.session.measure(memoryview(unknown)) == 24
    with pytest.raises(MalformedMessage):
        client.session.measure(memoryview(endless))


def test_those_that_nobody_waits_for_are_told_by_name() -> None:
    names = {handler.api.name for handler in HANDLERS.values() if handler.turn is Turn.NONE}
    assert names == {"Produce", "Fetch", "JoinGroup", "SyncGroup"}
