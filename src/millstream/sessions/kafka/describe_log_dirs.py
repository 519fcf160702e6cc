"""DescribeLogDirs: versions 1 to 5. There is one directory: the data directory."""

from collections.abc import Iterable

from millstream.broker.acl import Operation
from millstream.broker.topics import Topic
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka.authorization import require_cluster
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

__all__ = ["handle"]


def handle(call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Tell the sizes of logs, all if no topic is named."""
    try:
        require_cluster(call, Operation.DESCRIBE)
    except MillstreamError as error:
        return DescribeLogDirsResponse(error_code=code_of(error))
    directory = call.broker.directory
    result = DescribeLogDirsResult(log_dir=directory.path)
    try:
        result.total_bytes, result.usable_bytes = directory.files.space(directory.path)
    except OSError as error:
        result.error_code = code_of(error)
    if request.topics is None:
        result.topics = [_sizes(topic, range(len(topic.partitions))) for topic in call.broker.topics]
    else:
        wanted: dict[str, set[int]] = {}
        for asked in request.topics:
            wanted.setdefault(asked.topic, set()).update(asked.partitions)
        for name, indexes in wanted.items():
            topic = call.topic(name)
            if topic is not None:
                result.topics.append(_sizes(topic, sorted(indexes)))
    return DescribeLogDirsResponse(results=[result])


def _sizes(topic: Topic, indexes: Iterable[int]) -> DescribeLogDirsTopic:
    return DescribeLogDirsTopic(
        name=topic.name.flat,
        partitions=[
            DescribeLogDirsPartition(partition_index=index, partition_size=topic.partitions[index].log.size_bytes)
            for index in indexes
            if 0 <= index < len(topic.partitions)
        ],
    )
