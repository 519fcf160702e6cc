"""The topics that jobs read and write: their partitions, where they begin and end, and making new ones."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from millstream.spark.access import check_access
from millstream.spark.client import EARLIEST, LATEST, Client, Topic
from millstream.spark.connections import Connections, error_name
from millstream.spark.errors import JobError
from millstream.spark.servers import Servers
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

__all__ = [
    "ARCHIVE_COLUMNS",
    "Ends",
    "Range",
    "ends_of",
    "ensure_topic",
    "partitions_of",
    "read_stream",
    "topic_rows",
]

ARCHIVE_COLUMNS: Final = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
    "protocol",
)
"""All of a record, and where it was."""

_CREATE_VERSION: Final = 7
_TIMEOUT_MS: Final = 30_000
_KEEP_FOR_EVER: Final = {"retention.ms": "-1"}
"""Of topics that a job makes: records come with the times that they had, and a limit would remove old ones."""

Range = tuple[int, int]
"""The first offset, and the one behind the last."""
Ends = dict[str, dict[int, Range]]
"""Ranges by topic and partition."""


def partitions_of(servers: str | Servers, topics: Sequence[str]) -> dict[str, int]:
    """How many partitions topics have. Raises TopicMissing, BrokerUnreachable."""
    with Client(servers) as client:
        return {name: len(topic.leaders) for name, topic in client.topics(topics).items()}


def ends_of(servers: str | Servers, topics: Sequence[str]) -> Ends:
    """What topics hold. Raises TopicMissing, BrokerUnreachable."""
    with Client(servers) as client:
        described = client.topics(topics)
        first, behind = client.offsets(described, EARLIEST), client.offsets(described, LATEST)
        return {
            name: {part: (first[name][part], behind[name][part]) for part in sorted(topic.leaders)}
            for name, topic in described.items()
        }


def ensure_topic(servers: str | Servers, name: str, partitions: int, *, exactly: bool = False) -> None:
    """See to it that a topic is there.

    Args:
        servers: brokers.
        name: of the topic; it is made, to keep its records for ever, if it is not there.
        partitions: how many it gets, or has at least.
        exactly: whether it must not have more.

    Raises:
        AccessDenied: the user may not make it.
        JobError: it has another number of partitions, or cannot be made.
        BrokerUnreachable: nobody answers.
    """
    with Client(servers) as client:
        found: Mapping[str, Topic] = client.topics([name], required=False)
    if name in found:
        count = len(found[name].leaders)
        if count < partitions or (exactly and count != partitions):
            raise JobError(
                f"the topic {name!r} at {servers} has {count} partitions, and {partitions} are needed; "
                "write to another topic"
            )
        return
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in _KEEP_FOR_EVER.items()]
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1, configs=configs)
    with Connections(servers) as connections:
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=_TIMEOUT_MS)
        [result] = connections.ask_any(CREATE_TOPICS, _CREATE_VERSION, request).topics
    check_access(result.error_code, "CREATE", topic=name)
    if result.error_code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
        reason = result.error_message or error_name(result.error_code)
        raise JobError(f"the topic {name!r} cannot be made at {servers}: {reason}; make it, or write to another one")


def read_stream(
    spark: Any, servers: str | Servers, topics: Sequence[str], batch_rows: int, start: str = "earliest"
) -> Any:
    """All of some topics as a stream, with ARCHIVE_COLUMNS.

    A partition is one task of a micro-batch, so that its records stay in order on their way into a topic.
    """
    options = {
        **Servers.at(servers).options,
        "subscribe": ",".join(topics),
        "startingOffsets": start,
        "maxOffsetsPerTrigger": str(batch_rows),
        "columns": ",".join(ARCHIVE_COLUMNS),
    }
    return spark.readStream.format("millstream").options(**options).load()


def topic_rows(frame: Any, *, topic: str | None, keeps_partition: bool) -> Any:
    """Rows of an archive with the columns that a topic takes.

    Args:
        frame: with ARCHIVE_COLUMNS.
        topic: where all of them go; None for the topic that each was in.
        keeps_partition: whether each goes to the partition it was in; else a partitioner chooses.
    """
    names = ["key", "value", "headers", "timestamp"]
    if topic is None:
        names.append("topic")
    if keeps_partition:
        names.append("partition")
    return frame.select(*names)
