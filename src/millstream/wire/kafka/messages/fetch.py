"""Fetch (API key 1), and what is asked and told beyond Kafka's.

A batch that another protocol's client wrote arrives as Kafka's. Who wants to know asks for it in a tagged field of
ours, and is told in another; whoever does not know them passes over them, as KIP-482 has it.
"""

from uuid import UUID

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import (
    OWN_TAGS,
    Buffer,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    message,
    records,
    string,
    struct_,
    uuid_,
)

__all__ = ["FETCH", "EncodingRun", "FetchRequest", "FetchResponse", "PartitionEncodings"]


@message
class ReplicaState:
    replica_id: int = int32(since=15, default=-1)
    replica_epoch: int = int64(since=15, default=-1)


@message
class FetchPartition:
    partition: int = int32()
    current_leader_epoch: int = int32(since=9, default=-1)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32(since=12, default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    partition_max_bytes: int = int32()
    replica_directory_id: UUID = uuid_(since=17, tag=0)
    high_watermark: int = int64(since=18, tag=1, default=9223372036854775807)


@message
class FetchTopic:
    topic: str = string(until=12)
    topic_id: UUID = uuid_(since=13)
    partitions: list[FetchPartition] = array(FetchPartition)


@message
class ForgottenTopic:
    topic: str = string(since=7, until=12)
    topic_id: UUID = uuid_(since=13)
    partitions: list[int] = array("int32", since=7)


@message
class FetchRequest:
    """Fetch request, all versions."""

    cluster_id: str | None = string(since=12, nullable=12, tag=0, default=None)
    replica_id: int = int32(until=14, default=-1)
    replica_state: ReplicaState = struct_(ReplicaState, since=15, tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(since=3, default=2147483647)
    isolation_level: int = int8(since=4)
    session_id: int = int32(since=7)
    session_epoch: int = int32(since=7, default=-1)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, since=7)
    rack_id: str = string(since=11)
    wants_encodings: bool = boolean(since=13, tag=OWN_TAGS, default=False)


@message
class EpochEndOffset:
    epoch: int = int32(since=12, default=-1)
    end_offset: int = int64(since=12, default=-1)


@message
class LeaderIdAndEpoch:
    leader_id: int = int32(since=12, default=-1)
    leader_epoch: int = int32(since=12, default=-1)


@message
class SnapshotId:
    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


@message
class AbortedTransaction:
    producer_id: int = int64()
    first_offset: int = int64()


@message
class PartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64(since=4, default=-1)
    log_start_offset: int = int64(since=5, default=-1)
    diverging_epoch: EpochEndOffset = struct_(EpochEndOffset, since=12, tag=0)
    current_leader: LeaderIdAndEpoch = struct_(LeaderIdAndEpoch, since=12, tag=1)
    snapshot_id: SnapshotId = struct_(SnapshotId, since=12, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = array(AbortedTransaction, since=4, nullable=4)
    preferred_read_replica: int = int32(since=11, default=-1)
    records: Buffer | None = records()


@message
class FetchableTopicResponse:
    topic: str = string(until=12)
    topic_id: UUID = uuid_(since=13)
    partitions: list[PartitionData] = array(PartitionData)


@message
class NodeEndpoint:
    node_id: int = int32(since=16)
    host: str = string(since=16)
    port: int = int32(since=16)
    rack: str | None = string(since=16, nullable=16, default=None)


@message
class EncodingRun:
    """From an offset on, batches were written in an encoding: a magic value of `millstream.model.frame`."""

    first_offset: int = int64(since=13)
    encoding: int = int8(since=13)


@message
class PartitionEncodings:
    """How the batches of a partition in the answer were written; without runs, all of them by Kafka's clients."""

    topic_id: UUID = uuid_(since=13)
    partition: int = int32(since=13)
    runs: list[EncodingRun] = array(EncodingRun, since=13)


@message
class FetchResponse:
    """Fetch response, all versions."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16(since=7)
    session_id: int = int32(since=7)
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=16, tag=0)
    encodings: list[PartitionEncodings] = array(PartitionEncodings, since=13, tag=OWN_TAGS)


FETCH = Api(
    key=1,
    name="Fetch",
    versions=range(19),
    flexible_since=12,
    request=FetchRequest,
    response=FetchResponse,
)
