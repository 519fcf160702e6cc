"""What a request lists many times is told, or done, once: an answer must not grow beyond its question for that."""

import pytest

from millstream.broker.topics import UPKEEP_LANE
from millstream.wire.kafka.api import Api
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages import alter_configs, incremental_alter_configs
from millstream.wire.kafka.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from millstream.wire.kafka.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from millstream.wire.kafka.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from millstream.wire.kafka.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from millstream.wire.kafka.messages.describe_log_dirs import (
    DESCRIBE_LOG_DIRS,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from millstream.wire.kafka.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from millstream.wire.kafka.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from millstream.wire.kafka.messages.offset_fetch import OFFSET_FETCH, OffsetFetchRequest, OffsetFetchRequestGroup
from tests.unit.sessions.kafka.conversation import Conversation

TOPIC = 2


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation()
    talk.create("orders", 2)
    talk.produce(b"value")
    return talk


def test_topics_and_groups_are_told_once(talk: Conversation) -> None:
    topics = [MetadataRequestTopic(name="orders")] * 3
    assert len(talk.ask(METADATA, MetadataRequest(topics=topics)).topics) == 1
    assert len(talk.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["g"] * 3)).groups) == 1
    assert len(talk.ask(DELETE_GROUPS, DeleteGroupsRequest(groups_names=["g"] * 3)).results) == 1
    groups = [OffsetFetchRequestGroup(group_id="g", topics=None)] * 3
    assert len(talk.ask(OFFSET_FETCH, OffsetFetchRequest(groups=groups)).groups) == 1


def test_settings_are_told_once(talk: Conversation) -> None:
    resource = DescribeConfigsResource(resource_type=TOPIC, resource_name="orders", configuration_keys=None)
    assert len(talk.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource] * 3)).results) == 1


def test_sizes_are_told_once(talk: Conversation) -> None:
    topics = [DescribableLogDirTopic(topic="orders", partitions=[1, 0, 1])] * 2
    [directory] = talk.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=topics)).results
    assert [[p.partition_index for p in topic.partitions] for topic in directory.topics] == [[0, 1]]


def test_offsets_are_looked_up_for_none_that_is_listed_twice(talk: Conversation) -> None:
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 1, 0)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=partitions)])
    found = talk.ask(LIST_OFFSETS, request).topics[0].partitions
    assert [one.error_code for one in found] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]


def test_records_are_deleted_once(talk: Conversation) -> None:
    partitions = [DeleteRecordsPartition(partition_index=0, offset=1)] * 3
    topic = DeleteRecordsTopic(name="orders", partitions=partitions)
    talk.runtime.hold(UPKEEP_LANE)
    pending = talk.send(DELETE_RECORDS, DeleteRecordsRequest(topics=[topic, topic]))
    assert pending is not None
    assert talk.runtime.queued(UPKEEP_LANE) == 1
    talk.runtime.release(UPKEEP_LANE)
    first, second = talk.wait(pending).topics
    codes = [one.error_code for one in [*first.partitions, *second.partitions]]
    assert codes == [ErrorCode.NONE] + [ErrorCode.INVALID_REQUEST] * 5


@pytest.mark.parametrize(
    ("api", "request_class", "resource_class"),
    [
        (
            alter_configs.ALTER_CONFIGS,
            alter_configs.AlterConfigsRequest,
            alter_configs.AlterConfigsResource,
        ),
        (
            incremental_alter_configs.INCREMENTAL_ALTER_CONFIGS,
            incremental_alter_configs.IncrementalAlterConfigsRequest,
            incremental_alter_configs.AlterConfigsResource,
        ),
    ],
)
def test_settings_that_are_changed_twice_are_not_changed(
    talk: Conversation, api: Api, request_class: type, resource_class: type
) -> None:
    resources = [resource_class(resource_type=TOPIC, resource_name=name) for name in ("orders", "none", "orders")]
    response = talk.ask(api, request_class(resources=resources))
    assert [one.error_code for one in response.responses] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ]
