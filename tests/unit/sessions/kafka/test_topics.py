"""Topics and their settings through Kafka's admin requests, with what each is refused for."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest

from millstream.broker.configs import BROKER_CONFIGS, TOPIC_CONFIGS
from millstream.storage.metadata import METADATA_LANE
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages import alter_configs, incremental_alter_configs
from millstream.wire.kafka.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from millstream.wire.kafka.messages.create_topics import (
    CREATE_TOPICS,
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from millstream.wire.kafka.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from millstream.wire.kafka.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest, DeleteTopicState
from millstream.wire.kafka.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.unit.sessions.kafka.conversation import Conversation

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


def creatable(
    name: str = "orders",
    partitions: int = 1,
    replicas: int = 1,
    configs: Iterable[tuple[str, str | None]] = (),
    assignments: Iterable[tuple[int, list[int]]] = (),
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[CreatableReplicaAssignment(partition_index=p, broker_ids=ids) for p, ids in assignments],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
    )


def create(talk: Conversation, *topics: CreatableTopic, validate_only: bool = False) -> list[Any]:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=1000, validate_only=validate_only)
    return list(talk.ask(CREATE_TOPICS, request).topics)


def test_a_topic_is_made_and_told_with_its_settings(talk: Conversation) -> None:
    [made] = create(talk, creatable("orders", 3, 1, [("retention.ms", "5")]))
    assert (made.error_code, made.num_partitions, made.replication_factor) == (ErrorCode.NONE, 3, 1)
    assert made.topic_id == talk.topic().id
    assert {one.name: one.value for one in made.configs}["retention.ms"] == "5"
    assert {one.name for one in made.configs} == set(TOPIC_CONFIGS)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (creatable("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (creatable(partitions=0), ErrorCode.INVALID_PARTITIONS),
        (creatable(partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (creatable(partitions=10_001), ErrorCode.INVALID_PARTITIONS),
        (creatable(replicas=2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (creatable(replicas=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (creatable(configs=[("x", "1")]), ErrorCode.INVALID_CONFIG),
        (creatable(configs=[("retention.ms", None)]), ErrorCode.INVALID_CONFIG),
        (creatable(configs=[("retention.ms", "1"), ("retention.ms", "2")]), ErrorCode.INVALID_CONFIG),
        (creatable(assignments=[(0, [0])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (creatable(partitions=-1, replicas=-1, assignments=[(1, [0])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (creatable(partitions=-1, replicas=-1, assignments=[(0, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (creatable(partitions=-1, replicas=-1, assignments=[(0, [0, 1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_cannot_be_made(talk: Conversation, topic: CreatableTopic, code: ErrorCode) -> None:
    good = creatable("good")
    bad, fine = create(talk, topic, good)
    assert (bad.error_code, bad.num_partitions) == (code, -1)
    assert bad.error_message
    assert fine.error_code == ErrorCode.NONE
    assert [one.name.flat for one in talk.broker.topics] == ["good"]


def test_defaults_and_assignments_by_hand() -> None:
    talk = Conversation(num__partitions="4")
    by_default, by_hand = create(
        talk,
        creatable("a", -1, -1),
        creatable("b", -1, -1, assignments=[(1, [0]), (0, [0])]),
    )
    assert (by_default.num_partitions, by_hand.num_partitions) == (4, 2)
    assert len(talk.topic("b").partitions) == 2


def test_validating_makes_nothing(talk: Conversation) -> None:
    [result] = create(talk, creatable(), validate_only=True)
    assert (result.error_code, result.topic_id) == (ErrorCode.NONE, UUID(int=0))
    assert list(talk.broker.topics) == []


def test_a_topic_is_made_once(talk: Conversation) -> None:
    first, second = create(talk, creatable("twice"), creatable("twice"))
    assert {first.error_code, second.error_code} == {ErrorCode.INVALID_REQUEST}
    assert create(talk, creatable())[0].error_code == ErrorCode.NONE
    assert create(talk, creatable())[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_of_two_clients_that_make_a_topic_at_once_one_is_refused(talk: Conversation) -> None:
    request = CreateTopicsRequest(topics=[creatable()], timeout_ms=1000)
    pending = [talk.send(CREATE_TOPICS, request) for _ in range(2)]
    talk.runtime.run()
    codes = [one.result().topics[0].error_code for one in pending if one is not None]
    assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]


def test_a_store_that_fails_is_told(talk: Conversation) -> None:
    talk.store.failing = True
    assert create(talk, creatable())[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_topics_are_deleted_by_name_and_by_id(talk: Conversation) -> None:
    first, second = talk.create("a"), talk.create("b")
    request = DeleteTopicsRequest(
        timeout_ms=1,
        topics=[
            DeleteTopicState(name="a"),
            DeleteTopicState(name=None, topic_id=second.id),
            DeleteTopicState(name="none"),
            DeleteTopicState(name=None, topic_id=UUID(int=9)),
        ],
    )
    answers = talk.ask(DELETE_TOPICS, request).responses
    assert [(one.name, one.topic_id, one.error_code) for one in answers] == [
        ("a", first.id, ErrorCode.NONE),
        ("b", second.id, ErrorCode.NONE),
        ("none", UUID(int=0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, UUID(int=9), ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert list(talk.broker.topics) == []


def grow(talk: Conversation, count: int, assignments: list[list[int]] | None = None) -> int:
    asked = CreatePartitionsTopic(
        name="orders",
        count=count,
        assignments=None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments],
    )
    request = CreatePartitionsRequest(topics=[asked], timeout_ms=1)
    return int(talk.ask(CREATE_PARTITIONS, request).results[0].error_code)


def test_partitions_are_added(talk: Conversation) -> None:
    assert grow(talk, 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    talk.create("orders", 1)
    assert grow(talk, 1) == grow(talk, 0) == grow(talk, 10_001) == ErrorCode.INVALID_PARTITIONS
    for wrong in ([[0]], [[0], [1]], [[0], [0], [0]], []):
        assert grow(talk, 3, wrong) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(talk, 3, [[0], [0]]) == ErrorCode.NONE
    assert [partition.index for partition in talk.topic().partitions] == [0, 1, 2]


def delete_records(talk: Conversation, offset: int, index: int = 0) -> tuple[int, int]:
    partition = DeleteRecordsPartition(partition_index=index, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="orders", partitions=[partition])], timeout_ms=1)
    answer = talk.ask(DELETE_RECORDS, request).topics[0].partitions[0]
    return answer.error_code, answer.low_watermark


def test_records_are_deleted(talk: Conversation) -> None:
    talk.create()
    talk.produce(b"a", b"b", b"c")
    assert delete_records(talk, 2) == (ErrorCode.NONE, 2)
    assert delete_records(talk, 4) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete_records(talk, 0, index=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete_records(talk, -1) == (ErrorCode.NONE, 3)


# Settings


def change(talk: Conversation, *changes: tuple[str, int, str | None]) -> Any:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="orders",
        configs=[
            incremental_alter_configs.AlterableConfig(name=name, config_operation=operation, value=value)
            for name, operation, value in changes
        ],
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
    return talk.send(incremental_alter_configs.INCREMENTAL_ALTER_CONFIGS, request)


def code_of_change(talk: Conversation, *changes: tuple[str, int, str | None]) -> int:
    return int(talk.wait(change(talk, *changes)).responses[0].error_code)


def test_single_settings_are_changed(talk: Conversation) -> None:
    talk.create("orders", 1, retention__ms="5")
    assert code_of_change(talk, ("segment.bytes", SET, "100"), ("cleanup.policy", APPEND, "compact")) == 0
    expected = {"retention.ms": "5", "segment.bytes": "100", "cleanup.policy": "delete,compact"}
    assert talk.topic().configs == expected
    assert code_of_change(talk, ("cleanup.policy", SUBTRACT, "delete"), ("retention.ms", DELETE, None)) == 0
    assert talk.topic().configs == {"segment.bytes": "100", "cleanup.policy": "compact"}


def test_a_list_is_changed_from_what_the_server_says() -> None:
    talk = Conversation(log__cleanup__policy="compact")
    talk.create("orders")
    assert code_of_change(talk, ("cleanup.policy", APPEND, "delete")) == 0
    assert talk.topic().configs == {"cleanup.policy": "compact,delete"}


@pytest.mark.parametrize(
    "changes",
    [
        [("x", SET, "1")],
        [("retention.ms", SET, None)],
        [("retention.ms", SET, "x")],
        [("retention.ms", APPEND, "1")],
        [("retention.ms", 9, "1")],
        [("cleanup.policy", SUBTRACT, "delete")],
        [("segment.bytes", SET, "100"), ("segment.bytes", DELETE, None)],
    ],
)
def test_changes_that_make_no_sense_change_nothing(
    talk: Conversation, changes: list[tuple[str, int, str | None]]
) -> None:
    talk.create()
    assert code_of_change(talk, ("segment.bytes", SET, "200"), *changes) == ErrorCode.INVALID_CONFIG
    assert talk.topic().configs == {}


def test_two_changes_at_once_both_count(talk: Conversation) -> None:
    talk.create()
    talk.runtime.hold(METADATA_LANE)
    pending = [change(talk, ("retention.ms", SET, "5")), change(talk, ("segment.bytes", SET, "100"))]
    talk.runtime.release(METADATA_LANE)
    for one in pending:
        talk.wait(one)
    assert talk.topic().configs == {"retention.ms": "5", "segment.bytes": "100"}


def test_all_settings_are_replaced(talk: Conversation) -> None:
    talk.create("orders", 1, retention__ms="5")

    def replace(resource_type: int, name: str, *configs: tuple[str, str | None]) -> int:
        resource = alter_configs.AlterConfigsResource(
            resource_type=resource_type,
            resource_name=name,
            configs=[alter_configs.AlterableConfig(name=key, value=value) for key, value in configs],
        )
        request = alter_configs.AlterConfigsRequest(resources=[resource])
        return int(talk.ask(alter_configs.ALTER_CONFIGS, request).responses[0].error_code)

    assert replace(TOPIC, "orders", ("segment.bytes", "100")) == ErrorCode.NONE
    assert talk.topic().configs == {"segment.bytes": "100"}
    assert replace(TOPIC, "none") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert replace(BROKER, "0") == replace(77, "0") == ErrorCode.INVALID_REQUEST
    assert replace(TOPIC, "orders", ("segment.bytes", None)) == ErrorCode.INVALID_CONFIG
    assert talk.topic().configs == {"segment.bytes": "100"}


def described(talk: Conversation, kind: int, name: str, keys: list[str] | None = None) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    return talk.ask(DESCRIBE_CONFIGS, request).results[0]


def test_settings_are_told_with_where_they_come_from() -> None:
    talk = Conversation(log__retention__ms="7")
    talk.create("orders", 1, segment__bytes="100")
    found = {one.name: one for one in described(talk, TOPIC, "orders").configs}
    assert found.keys() == TOPIC_CONFIGS.keys()
    assert (found["segment.bytes"].value, found["segment.bytes"].config_source) == ("100", 1)
    assert (found["retention.ms"].value, found["retention.ms"].config_source) == ("7", 4)
    assert (found["segment.ms"].value, found["segment.ms"].config_source) == ("604800000", 5)
    assert [(one.name, one.value, one.source) for one in found["segment.bytes"].synonyms] == [
        ("segment.bytes", "100", 1),
        ("log.segment.bytes", "1073741824", 5),
    ]
    assert all(one.documentation for one in found.values())
    server = {one.name: one for one in described(talk, BROKER, "0").configs}
    assert server.keys() == BROKER_CONFIGS.keys()
    assert all(one.read_only for one in server.values())
    assert [one.name for one in described(talk, TOPIC, "orders", ["retention.ms"]).configs] == ["retention.ms"]


def test_what_has_no_settings(talk: Conversation) -> None:
    assert described(talk, TOPIC, "none").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert described(talk, TOPIC, "a b").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert described(talk, BROKER, "1").error_code == ErrorCode.INVALID_REQUEST
    assert described(talk, 77, "x").error_code == ErrorCode.INVALID_REQUEST
    empty = described(talk, BROKER_LOGGER, "0")
    assert (empty.error_code, empty.configs) == (ErrorCode.NONE, [])
