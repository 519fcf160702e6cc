"""DescribeTopicPartitions: topics in pages."""

from collections.abc import Callable
from uuid import UUID

from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    DescribeTopicPartitionsRequest,
    RequestCursor,
    TopicRequest,
)
from tests.conformance.raw.log_client import LogClient


def pages(client: LogClient, names: list[str], limit: int) -> list[list[tuple[str, int]]]:
    """The partitions on each page."""
    found, cursor = [], None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=cursor
        )
        answer = client.call(DESCRIBE_TOPIC_PARTITIONS, 0, request)
        assert all(topic.error_code == 0 for topic in answer.topics)
        found.append([(topic.name, one.partition_index) for topic in answer.topics for one in topic.partitions])
        if answer.next_cursor is None:
            return found
        following = answer.next_cursor
        cursor = RequestCursor(topic_name=following.topic_name, partition_index=following.partition_index)


def test_pages(client: LogClient, unique: Callable[[str], str]) -> None:
    names = sorted(unique("paged") for _ in range(3))
    for name, partitions in zip(names, (5, 1, 4), strict=True):
        client.create_topic(name, partitions)
    every = [(name, index) for name, count in zip(names, (5, 1, 4), strict=True) for index in range(count)]
    for limit in (1, 2, 3, 5, 6, 9, 10, 2000):
        found = pages(client, list(reversed(names)), limit)
        assert [one for page in found for one in page] == every
        assert all(len(page) == limit for page in found[:-1])
        assert 1 <= len(found[-1]) <= limit
    assert set(every) <= {one for page in pages(client, [], 7) for one in page}


def test_what_is_told(client: LogClient, unique: Callable[[str], str]) -> None:
    name = unique("raw")
    topic_id = client.create_topic(name, 2)
    asked = [TopicRequest(name=one) for one in (name, "no-such-topic", "no/such/name")]
    answer = client.call(DESCRIBE_TOPIC_PARTITIONS, 0, DescribeTopicPartitionsRequest(topics=asked))
    by_name = {topic.name: topic for topic in answer.topics}
    assert by_name["no-such-topic"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert by_name["no/such/name"].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    found = by_name[name]
    assert isinstance(found.topic_id, UUID)
    assert (found.error_code, found.topic_id, found.is_internal) == (0, topic_id, False)
    assert [one.partition_index for one in found.partitions] == [0, 1]
    for one in found.partitions:
        assert (one.leader_id, one.leader_epoch, one.replica_nodes, one.isr_nodes) == (0, 0, [0], [0])
