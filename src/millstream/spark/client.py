"""What the Spark side asks a broker about its topics, and how it reads them over the network."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final
from uuid import UUID

from millstream.spark.connections import Connections, address_of, error_name
from millstream.spark.errors import BrokerUnreachable, DataLost, TopicMissing
from millstream.wire.kafka.api import Api
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.describe_log_dirs import DESCRIBE_LOG_DIRS, DescribeLogDirsRequest
from millstream.wire.kafka.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from millstream.wire.kafka.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from millstream.wire.kafka.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic

__all__ = ["EARLIEST", "LATEST", "Client", "Fetched", "Topic"]

EARLIEST: Final = -2
LATEST: Final = -1
"""What ListOffsets takes for the first offset of a partition, and for the one behind the last."""

_VERSIONS: Final = {METADATA.key: 12, LIST_OFFSETS.key: 7, DESCRIBE_LOG_DIRS.key: 4, FETCH.key: 13}
"""The versions spoken. Fetch names topics by id, so that a topic made anew under its old name is never mistaken."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the broker describes it.

    Args:
        name, topic_id: the id changes when a topic is deleted and made anew.
        leaders: address of the broker that has it, by partition.
    """

    name: str
    topic_id: UUID
    leaders: dict[int, str]


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a fetch brought.

    Args:
        records: whole frames; the first holds the offset asked for or is the next there is.
        start_offset: the first offset of the partition.
        is_out_of_range: the offset asked for is not in the partition.
    """

    records: bytes
    start_offset: int
    is_out_of_range: bool


class Client:
    """Asks one cluster about its topics, and reads them; to be used as a context, or closed.

    A request that fails because a connection broke is sent once more: all of them only read.

    Args:
        servers: HOST:PORT, or several separated by commas, to begin with.

    Raises (every method):
        BrokerUnreachable: nobody answers, or not as a Kafka broker does.
        TopicMissing: a topic or partition that was asked for does not exist.
    """

    def __init__(self, servers: str) -> None:
        self._connections = Connections(servers)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. The client may still be used: it connects again."""
        self._connections.close()

    def topics(self, names: list[str]) -> dict[str, Topic]:
        """Describe topics, by name."""
        asked = [MetadataRequestTopic(name=name) for name in names]
        answer = self._ask_any(METADATA, MetadataRequest(topics=asked, allow_auto_topic_creation=False))
        brokers = {broker.node_id: address_of(broker.host, broker.port) for broker in answer.brokers}
        topics = {}
        for topic in answer.topics:
            if topic.error_code:
                raise self._missing(topic.name, topic.error_code)
            leaders = {part.partition_index: brokers.get(part.leader_id, "") for part in topic.partitions}
            if not all(leaders.values()):
                raise BrokerUnreachable(f"a partition of topic {topic.name!r} has no broker that serves it")
            topics[topic.name] = Topic(topic.name, topic.topic_id, dict(sorted(leaders.items())))
        return topics

    def offsets(self, topics: dict[str, Topic], time: int) -> dict[str, dict[int, int]]:
        """Look an offset up in every partition of some topics.

        Args:
            topics: as `topics` has described them.
            time: EARLIEST or LATEST, or ms since 1970 for the first record as late as that.

        Returns:
            Offsets by topic and partition; -1 where no record is as late.
        """
        found: dict[str, dict[int, int]] = {name: dict.fromkeys(topic.leaders, -1) for name, topic in topics.items()}
        for leader in {leader for topic in topics.values() for leader in topic.leaders.values()}:
            asked = [
                ListOffsetsTopic(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartition(partition_index=index, timestamp=time)
                        for index, address in topic.leaders.items()
                        if address == leader
                    ],
                )
                for topic in topics.values()
            ]
            answer = self._ask(leader, LIST_OFFSETS, ListOffsetsRequest(replica_id=-1, topics=asked))
            for topic in answer.topics:
                for part in topic.partitions:
                    if part.error_code:
                        raise self._missing(f"{topic.name}-{part.partition_index}", part.error_code)
                    found[topic.name][part.partition_index] = part.offset
        return found

    def data_dir(self, leader: str) -> str:
        """The data directory of a broker; empty if it does not say."""
        answer = self._ask(leader, DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=[]))
        return next((result.log_dir for result in answer.results if not result.error_code), "")

    def fetch(self, topic: str, topic_id: UUID, partition: int, leader: str, offset: int, max_bytes: int) -> Fetched:
        """Read whole frames of one partition.

        Args:
            topic: only for messages.
            topic_id, partition, leader: as `topics` has described them.
            offset: where to begin.
            max_bytes: about how much; at least one frame comes if there is one.
        """
        part = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, topics=[FetchTopic(topic_id=topic_id, partitions=[part])]
        )
        answer = self._ask(leader, FETCH, request)
        if answer.error_code or not answer.responses or not answer.responses[0].partitions:
            raise BrokerUnreachable(f"{leader} did not answer a fetch: {error_name(answer.error_code)}")
        data = answer.responses[0].partitions[0]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            start = data.log_start_offset
            if start < 0:
                raise DataLost(f"topic {topic!r} partition {partition} has no offset {offset} (any more)")
            return Fetched(b"", start, is_out_of_range=True)
        if data.error_code:
            raise self._missing(f"{topic}-{partition}", data.error_code)
        return Fetched(bytes(data.records or b""), data.log_start_offset, is_out_of_range=False)

    def _missing(self, name: str, code: int) -> TopicMissing | BrokerUnreachable:
        where = ",".join(self._connections.servers)
        if code in _NOT_THERE:
            return TopicMissing(f"there is no topic {name!r} at {where}; change the option subscribe, or create it")
        return BrokerUnreachable(f"{where} refused to tell about {name!r}: {error_name(code)}")

    def _ask_any(self, api: Api, request: object) -> Any:
        return self._connections.ask_any(api, _VERSIONS[api.key], request)

    def _ask(self, server: str, api: Api, request: object) -> Any:
        return self._connections.ask(server, api, _VERSIONS[api.key], request)


_NOT_THERE: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
}
