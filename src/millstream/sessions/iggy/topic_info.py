"""Topics and partitions, as answers describe them."""

from millstream.broker.partition import Partition
from millstream.broker.topics import Topic
from millstream.sessions.iggy.call import Call
from millstream.sessions.iggy.names import told_options
from millstream.sessions.iggy.topic_options import derived_options, expiry_us_of, max_size_bytes_of
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.messages.topics import PartitionInfo, TopicInfo

__all__ = ["COMPRESSION", "OPTIONS", "REPLICATION", "partition_info", "topic_info"]

COMPRESSION = "compression"
OPTIONS = "options"
REPLICATION = "replication"
_NEVER_S = 0
_U32_MAX = 2**32 - 1


def topic_info(call: Call, topic: Topic) -> TopicInfo:
    """A topic."""
    streams, settings = call.shared.streams, call.broker.settings
    attributes = streams.attributes_of(topic)
    logs = [partition.log for partition in topic.partitions]
    expiry_us = expiry_us_of(topic, settings)
    explicit = told_options(attributes.get(OPTIONS, ())) if call.dialect >= Dialect.D else []
    return TopicInfo(
        id=streams.number_of(topic),
        created_at_us=topic.created_ms * 1000,
        partitions_count=len(topic.partitions),
        expiry_s=expiry_us // 1_000_000 if expiry_us // 1_000_000 <= _U32_MAX else _NEVER_S,
        expiry_us=expiry_us,
        compression=attributes.get(COMPRESSION, 1),
        max_size_bytes=max_size_bytes_of(topic, settings),
        replication=attributes.get(REPLICATION, 1),
        size_bytes=sum(log.size_bytes for log in logs),
        messages_count=sum(log.end_offset - log.start_offset for log in logs),
        name=topic.name.name,
        options=explicit,
        derived_options=derived_options(topic, explicit, settings) if call.dialect >= Dialect.D else [],
    )


def partition_info(topic: Topic, partition: Partition) -> PartitionInfo:
    """A partition."""
    log = partition.log
    return PartitionInfo(
        id=partition.index,
        created_at_us=topic.created_ms * 1000,
        segments_count=log.segment_count,
        current_offset=max(log.end_offset - 1, 0),
        size_bytes=log.size_bytes,
        messages_count=log.end_offset - log.start_offset,
    )
