"""What the Spark side asks a broker about its topics and groups, and how it reads topics over the network."""

import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final
from uuid import UUID

from millstream.spark.access import check_access
from millstream.spark.connections import Connections, address_of, error_name
from millstream.spark.errors import BrokerUnreachable, CommitRefused, DataLost, TopicMissing
from millstream.spark.servers import Servers
from millstream.wire.kafka.api import Api
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.describe_log_dirs import (
    DESCRIBE_LOG_DIRS,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from millstream.wire.kafka.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from millstream.wire.kafka.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from millstream.wire.kafka.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from millstream.wire.kafka.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from millstream.wire.kafka.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.wire.kafka.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

__all__ = ["EARLIEST", "LATEST", "Client", "Fetched", "Topic"]

EARLIEST: Final = -2
LATEST: Final = -1
"""What ListOffsets takes for the first offset of a partition, and for the one behind the last."""

_VERSIONS: Final = {
    METADATA.key: 12,
    LIST_OFFSETS.key: 7,
    DESCRIBE_LOG_DIRS.key: 4,
    FETCH.key: 13,
    FIND_COORDINATOR.key: 4,
    OFFSET_FETCH.key: 8,
    OFFSET_COMMIT.key: 8,
}
"""The versions spoken. Fetch names topics by id, so that a topic made anew under its old name is never mistaken."""
_READ_COMMITTED: Final = 1
_PAUSE_S: Final = 0.1
_PAUSE_MAX_S: Final = 2.0
_NOT_THERE: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
}

Places = Mapping[str, Mapping[int, int]]
"""A number for some partitions of some topics, by name and partition: an offset, or a time."""


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
        aborted: producer id and first offset of transactions among the frames that were aborted.
        encodings: from which offset on frames were written in which encoding, a magic value of
            `millstream.model.frame`; empty if Kafka's clients wrote all of them.
    """

    records: bytes
    start_offset: int
    is_out_of_range: bool
    aborted: tuple[tuple[int, int], ...] = ()
    encodings: tuple[tuple[int, int], ...] = ()


class Client:
    """Asks one cluster about its topics and reads them; to be used as a context, or closed.

    A request that fails because a connection broke is sent once more: all of them only read, or set what may be set
    twice.

    Args:
        servers: where to begin; as text HOST:PORT, or several separated by commas, that let everybody in.
        patience_s: for how long a broker that does not answer is asked again and again; it may be changed later.

    Raises (every method):
        AuthenticationFailed, BadOption, BrokerUnreachable: as for `Connections`.
        AccessDenied: the user may not do that.
        TopicMissing: a topic or partition that was asked for does not exist.
    """

    def __init__(self, servers: str | Servers, patience_s: float = 0.0) -> None:
        self.patience_s = patience_s
        self._connections = Connections(servers)
        self._coordinators: dict[str, str] = {}

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. The client may still be used: it connects again."""
        self._connections.close()

    def topic_names(self) -> list[str]:
        """The names of all topics that applications have made, in order."""
        answer = self._ask_any(METADATA, MetadataRequest(topics=None, allow_auto_topic_creation=False))
        return sorted(topic.name for topic in answer.topics if not topic.error_code and not topic.is_internal)

    def topics(self, names: Sequence[str], *, required: bool = True) -> dict[str, Topic]:
        """Describe topics, by name.

        Args:
            names: the topics.
            required: whether one that does not exist is an error; it is left out otherwise.
        """
        if not names:
            return {}
        asked = [MetadataRequestTopic(name=name) for name in names]
        answer = self._ask_any(METADATA, MetadataRequest(topics=asked, allow_auto_topic_creation=False))
        brokers = {broker.node_id: address_of(broker.host, broker.port) for broker in answer.brokers}
        topics = {}
        for topic in answer.topics:
            if topic.error_code in _NOT_THERE and not required:
                continue
            if topic.error_code:
                raise self._missing(topic.name, topic.error_code)
            leaders = {part.partition_index: brokers.get(part.leader_id, "") for part in topic.partitions}
            if not all(leaders.values()):
                raise BrokerUnreachable(f"a partition of topic {topic.name!r} has no broker that serves it")
            topics[topic.name] = Topic(topic.name, topic.topic_id, dict(sorted(leaders.items())))
        return topics

    def offsets(self, topics: Mapping[str, Topic], time: int) -> dict[str, dict[int, int]]:
        """Look an offset up in every partition of some topics.

        Args:
            topics: as `topics` has described them.
            time: EARLIEST or LATEST, or ms since 1970 for the first record as late as that. What transactions have
                not decided counts as not there.

        Returns:
            Offsets by topic and partition; -1 where no record is as late.
        """
        return self.offsets_at(topics, {name: dict.fromkeys(topic.leaders, time) for name, topic in topics.items()})

    def offsets_at(self, topics: Mapping[str, Topic], times: Places) -> dict[str, dict[int, int]]:
        """Look an offset up in some partitions, as `offsets`, with a time for each."""
        found: dict[str, dict[int, int]] = {name: dict.fromkeys(parts, -1) for name, parts in times.items()}
        for leader, asked_of in _by_leader(topics, times).items():
            asked = [
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(partition_index=index, timestamp=times[name][index]) for index in parts
                    ],
                )
                for name, parts in asked_of.items()
            ]
            request = ListOffsetsRequest(replica_id=-1, isolation_level=_READ_COMMITTED, topics=asked)
            for topic in self._ask(leader, LIST_OFFSETS, request).topics:
                for part in topic.partitions:
                    if part.error_code:
                        raise self._missing(f"{topic.name}-{part.partition_index}", part.error_code)
                    found[topic.name][part.partition_index] = part.offset
        return found

    def data_dir(self, leader: str) -> str:
        """The data directory of a broker; empty if it does not say."""
        answer = self._ask(leader, DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=[]))
        return next((result.log_dir for result in answer.results if not result.error_code), "")

    def sizes(self, topics: Mapping[str, Topic]) -> dict[str, dict[int, int]]:
        """Bytes that partitions take in their brokers' logs, by topic and partition; 0 where nobody says."""
        found: dict[str, dict[int, int]] = {name: dict.fromkeys(topic.leaders, 0) for name, topic in topics.items()}
        everything = {name: dict.fromkeys(topic.leaders, 0) for name, topic in topics.items()}
        for leader, asked_of in _by_leader(topics, everything).items():
            asked = [DescribableLogDirTopic(topic=name, partitions=parts) for name, parts in asked_of.items()]
            answer = self._ask(leader, DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=asked))
            for result in answer.results:
                for topic in result.topics:
                    for part in topic.partitions:
                        if part.partition_index in found.get(topic.name, ()):
                            found[topic.name][part.partition_index] = part.partition_size
        return found

    def committed(self, group: str, topics: Mapping[str, Topic]) -> dict[str, dict[int, int]]:
        """Where a group or subscription of that name stands, by topic and partition; -1 where it has no position."""
        found: dict[str, dict[int, int]] = {name: dict.fromkeys(topic.leaders, -1) for name, topic in topics.items()}
        asked = [
            OffsetFetchRequestTopics(name=name, partition_indexes=list(topic.leaders))
            for name, topic in topics.items()
        ]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=asked)], require_stable=True
        )
        answer = self._ask(self._coordinator(group), OFFSET_FETCH, request).groups[0]
        codes = {answer.error_code}
        for topic in answer.topics:
            for part in topic.partitions:
                codes.add(part.error_code)
                found[topic.name][part.partition_index] = part.committed_offset
        codes -= {0, *_NOT_THERE}
        for code in codes:
            check_access(code, "READ", topic=", ".join(sorted(topics)), group=group)
        if codes:
            raise BrokerUnreachable(f"the position of group {group!r} cannot be read: {error_name(codes.pop())}")
        return found

    def commit(self, group: str, offsets: Places) -> None:
        """Set where a group stands, without being a member of it.

        Raises:
            CommitRefused: the group has members of its own, or may not be written.
        """
        topics = [
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=at, committed_metadata="")
                    for index, at in parts.items()
                ],
            )
            for name, parts in offsets.items()
        ]
        request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=topics)
        answer = self._ask(self._coordinator(group), OFFSET_COMMIT, request)
        codes = {part.error_code for topic in answer.topics for part in topic.partitions} - {0}
        if codes:
            self._coordinators.pop(group, None)
            for code in codes:
                check_access(code, "READ", topic=", ".join(sorted(offsets)), group=group)
            names = ", ".join(sorted(map(error_name, codes)))
            raise CommitRefused(f"group {group!r} does not take positions: {names}; take another kafka.group.id")

    def fetch(self, topic: str, topic_id: UUID, partition: int, leader: str, offset: int, max_bytes: int) -> Fetched:
        """Read whole frames of one partition, of which transactions have decided.

        Args:
            topic: only for messages.
            topic_id, partition, leader: as `topics` has described them.
            offset: where to begin.
            max_bytes: about how much; at least one frame comes if there is one.
        """
        part = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=max_bytes,
            isolation_level=_READ_COMMITTED,
            wants_encodings=True,
            topics=[FetchTopic(topic_id=topic_id, partitions=[part])],
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
        aborted = tuple((one.producer_id, one.first_offset) for one in data.aborted_transactions or ())
        return Fetched(
            records=bytes(data.records or b""),
            start_offset=data.log_start_offset,
            is_out_of_range=False,
            aborted=aborted,
            encodings=tuple((run.first_offset, run.encoding) for one in answer.encodings for run in one.runs),
        )

    def _coordinator(self, group: str) -> str:
        """The broker that keeps a group's position."""
        if group not in self._coordinators:
            answer = self._ask_any(FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=[group]))
            found = answer.coordinators[0] if answer.coordinators else None
            if found is None or found.error_code:
                check_access(found.error_code if found is not None else 0, "READ", group=group)
                reason = error_name(found.error_code) if found is not None else "no answer"
                raise BrokerUnreachable(f"no broker keeps the position of group {group!r}: {reason}")
            self._coordinators[group] = address_of(found.host, found.port)
        return self._coordinators[group]

    def _missing(self, name: str, code: int) -> TopicMissing | BrokerUnreachable:
        check_access(code, "READ", topic=name)
        where = ",".join(self._connections.servers)
        if code in _NOT_THERE:
            return TopicMissing(f"there is no topic {name!r} at {where}; change the option subscribe, or create it")
        return BrokerUnreachable(f"{where} refused to tell about {name!r}: {error_name(code)}")

    def _ask_any(self, api: Api, request: object) -> Any:
        return self._ask("", api, request)

    def _ask(self, server: str, api: Api, request: object) -> Any:
        """Ask one broker, or any if none is named, for as long as patience lasts."""
        version = _VERSIONS[api.key]
        began, pause = clock.monotonic(), _PAUSE_S
        while True:
            try:
                if server:
                    return self._connections.ask(server, api, version, request)
                return self._connections.ask_any(api, version, request)
            except BrokerUnreachable:
                if clock.monotonic() - began + pause > self.patience_s:
                    raise
            clock.sleep(pause)
            pause = min(pause * 2, _PAUSE_MAX_S)


def _by_leader(topics: Mapping[str, Topic], places: Places) -> dict[str, dict[str, list[int]]]:
    """Which partitions to ask each broker about, by its address and by topic."""
    asked: dict[str, dict[str, list[int]]] = {}
    for name, parts in places.items():
        for index in parts:
            asked.setdefault(topics[name].leaders[index], {}).setdefault(name, []).append(index)
    return asked
