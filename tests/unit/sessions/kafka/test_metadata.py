"""Metadata: topics that come to be when somebody asks for them, and those that do not."""

from uuid import UUID

import pytest

from millstream.storage.metadata import METADATA_LANE
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from tests.unit.sessions.kafka.conversation import Conversation


def asking(*names: str | None, create: bool = True) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)


def answered(talk: Conversation, request: MetadataRequest, version: int | None = None) -> dict[str, tuple[int, int]]:
    """Error code and number of partitions, by name."""
    response = talk.ask(METADATA, request, version)
    return {topic.name: (topic.error_code, len(topic.partitions)) for topic in response.topics}


def test_a_topic_is_made_for_one_who_asks() -> None:
    talk = Conversation(num__partitions="3")
    assert answered(talk, asking("orders")) == {"orders": (ErrorCode.NONE, 3)}
    assert len(talk.topic().partitions) == 3


def test_the_answer_waits_until_the_topic_lasts() -> None:
    talk = Conversation()
    talk.runtime.hold(METADATA_LANE)
    waiting = [talk.send(METADATA, asking("orders")) for _ in range(2)]
    talk.runtime.run()
    assert not any(one is None or one.done for one in waiting)
    talk.runtime.release(METADATA_LANE)
    talk.runtime.run()
    ids = {one.result().topics[0].topic_id for one in waiting if one is not None}
    assert ids == {talk.topic().id}


@pytest.mark.parametrize(("setting", "create"), [("false", True), ("true", False)])
def test_no_topic_is_made_where_that_is_not_wanted(setting: str, create: bool) -> None:
    talk = Conversation(auto__create__topics__enable=setting)
    expected = {"orders": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)}
    assert answered(talk, asking("orders", create=create)) == expected
    assert list(talk.broker.topics) == []


def test_versions_before_4_always_make_topics() -> None:
    talk = Conversation()
    assert answered(talk, asking("orders"), 3) == {"orders": (ErrorCode.NONE, 1)}


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250, "a/b"])
def test_a_name_that_no_topic_can_have(name: str) -> None:
    talk = Conversation()
    found = answered(talk, asking(name, "good"))
    assert found == {name: (ErrorCode.INVALID_TOPIC_EXCEPTION, 0), "good": (ErrorCode.NONE, 1)}


def test_a_topic_that_cannot_be_stored_is_not_known() -> None:
    talk = Conversation()
    talk.store.failing = True
    assert answered(talk, asking("orders")) == {"orders": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)}


@pytest.mark.parametrize("version", METADATA.versions)
def test_all_topics_and_the_only_broker(version: int) -> None:
    talk = Conversation()
    talk.create("a", 2)
    talk.create("b")
    request = MetadataRequest(topics=[] if version == 0 else None)
    response = talk.ask(METADATA, request, version)
    assert {topic.name: len(topic.partitions) for topic in response.topics} == {"a": 2, "b": 1}
    [broker] = response.brokers
    assert (broker.node_id, broker.host, broker.port) == (0, "broker.example", 9092)
    assert {partition.leader_id for topic in response.topics for partition in topic.partitions} == {0}


def test_no_topics_at_all_from_version_1_on() -> None:
    talk = Conversation()
    talk.create("a")
    assert talk.ask(METADATA, MetadataRequest(topics=[]), 1).topics == []


@pytest.mark.parametrize("version", [10, 11, 12, 13])
def test_a_topic_is_asked_for_by_its_id(version: int) -> None:
    talk = Conversation()
    made = talk.create("a")
    unknown = UUID(int=4)
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=one, name="") for one in (made.id, unknown)])
    found, missing = talk.ask(METADATA, request, version).topics
    assert (found.name, found.error_code) == ("a", ErrorCode.NONE)
    assert (missing.topic_id, missing.error_code) == (unknown, ErrorCode.UNKNOWN_TOPIC_ID)
    assert missing.name == (None if version >= 12 else "")
    assert len(list(talk.broker.topics)) == 1
