"""What a handler of an Iggy request is given besides the request."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol
from uuid import UUID

from millstream.broker.broker import Broker
from millstream.broker.offsets import Place as OffsetPlace
from millstream.broker.partition import Partition
from millstream.broker.permissions import Action, Permissions, may
from millstream.broker.positions import Positions
from millstream.broker.recent_ids import RecentIds
from millstream.broker.streams import Stream, Streams
from millstream.broker.topic_groups import TopicGroup, TopicGroups
from millstream.broker.topics import Topic
from millstream.broker.users import User, Users
from millstream.model.topic_name import TopicName
from millstream.sessions.session import Endpoint
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.kinds import Identifier

__all__ = ["Call", "Client", "HostFacts", "HostStats", "IggyShared", "Place"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What is measured of the process and its host. CPU in percent, sizes in bytes, times in microseconds."""

    process_id: int = 0
    cpu_usage: float = 0.0
    total_cpu_usage: float = 0.0
    memory_bytes: int = 0
    total_memory_bytes: int = 0
    available_memory_bytes: int = 0
    start_time_us: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    hostname: str = ""
    os_name: str = ""
    os_version: str = ""
    kernel_version: str = ""
    threads_count: int = 0
    free_disk_bytes: int = 0
    total_disk_bytes: int = 0


class HostStats(Protocol):
    """Measures the process and its host."""

    def measure(self) -> HostFacts:
        """Measure now."""


@dataclass(frozen=True, slots=True)
class Place:
    """A topic as a client named it."""

    stream: Stream
    topic: Topic
    number: int


@dataclass(slots=True)
class Client:
    """One connection, as handlers see it.

    Args:
        id: what its peer's address hashes to: how clients know each other.
        address: of the peer, "ip:port".
        endpoint: where a listener of this server is reached, by name.
        room_bytes: how much more may be queued for it to read.
        user: who is logged in.
        session: the number that the login gave.
        groups: the groups it is a member of.
        places: topics that it has named lately, with the names that they had then.
    """

    id: int
    address: str
    endpoint: Callable[[str], Endpoint | None]
    room_bytes: Callable[[], int]
    user: User | None = None
    session: int = 0
    dialect: Dialect | None = None
    groups: list[TopicGroup] = field(default_factory=list)
    places: dict[tuple[Identifier, Identifier], tuple[Place, TopicName]] = field(default_factory=dict)


@dataclass(slots=True)
class IggyShared:
    """What all Iggy connections share.

    Args:
        broker: the broker.
        streams, groups, users, positions: what other protocols do not have.
        host: measures the host; None where nobody can.
        deduplication: entries and ms of the ids that are remembered for each partition; None for none.
        anonymous: whether clients of the dialect without a login may do everything.
        clients: the connections, by their ids.
        next_partition: whose turn it is to get a batch that does not say, by topic.
        recent_ids: the message ids of each partition, where duplicates are dropped.
        last_session: the number that the last login of dialect D was given.
    """

    broker: Broker
    streams: Streams
    groups: TopicGroups
    users: Users
    positions: Positions
    host: HostStats | None = None
    deduplication: tuple[int, int] | None = None
    anonymous: bool = True
    clients: dict[int, Client] = field(default_factory=dict)
    next_partition: dict[UUID, int] = field(default_factory=dict)
    recent_ids: dict[OffsetPlace, RecentIds] = field(default_factory=dict)
    last_session: int = 0


_PLACES_MAX: Final = 64
"""Topics that are remembered for one connection: more than most clients use, and a few KB."""
_ANONYMOUS_RIGHTS: Final = Permissions.all()


@dataclass(slots=True)
class Call:
    """One request on its way through a handler.

    Args:
        shared: what all connections share.
        client: this one.
        dialect: what the request is written in.
        frame: all of its bytes, writable; where messages are stored without being copied.
    """

    shared: IggyShared
    client: Client
    dialect: Dialect
    frame: memoryview

    @property
    def broker(self) -> Broker:
        """The broker."""
        return self.shared.broker

    @property
    def user(self) -> User:
        """Who is logged in. Raises Refused."""
        user = self.client.user
        if user is None:
            raise Refused(ErrorCode.UNAUTHENTICATED)
        return user

    def permit(self, action: Action, stream: int | None = None, topic: int | None = None) -> None:
        """Let nobody do what is not theirs to do. Raises Refused."""
        user = self.client.user
        if user is not None:
            # What an administrator changes holds for those who are logged in already.
            user = self.shared.users.find(user.id)
            rights = None if user is None or not user.active else user.permissions
        else:
            rights = _ANONYMOUS_RIGHTS if self.shared.anonymous else None
        if rights is None or not may(rights, action, stream, topic):
            raise Refused(ErrorCode.UNAUTHORIZED, f"{action.name} is not allowed")

    # Finding

    def stream(self, key: Identifier) -> Stream:
        """The stream that a client names. Raises Refused."""
        if key == -1:
            raise Refused(ErrorCode.INVALID_STREAM_ID, "stream 0")
        stream = self.shared.streams.find(key, fold_case=self.dialect.folds_names)
        if stream is None:
            by_number = isinstance(key, int)
            code = ErrorCode.STREAM_ID_NOT_FOUND if by_number else ErrorCode.STREAM_NAME_NOT_FOUND
            raise Refused(code, f"there is no stream {key}")
        return stream

    def place(self, stream_key: Identifier, topic_key: Identifier) -> Place:
        """The topic that a client names. Raises Refused."""
        known = self.client.places.get((stream_key, topic_key))
        if known is not None:
            place, name = known
            # A topic that was deleted or renamed, or whose stream was, is looked for again.
            if place.topic.name is name and self.broker.topics.by_id(place.topic.id) is place.topic:
                return place
        place = self._find_place(stream_key, topic_key)
        if len(self.client.places) >= _PLACES_MAX:
            self.client.places.clear()
        self.client.places[stream_key, topic_key] = place, place.topic.name
        return place

    def _find_place(self, stream_key: Identifier, topic_key: Identifier) -> Place:
        stream = self.stream(stream_key)
        if topic_key == -1:
            raise Refused(ErrorCode.INVALID_TOPIC_ID, "topic 0")
        streams = self.shared.streams
        topic = streams.find_topic(stream, topic_key, fold_case=self.dialect.folds_names)
        if topic is None:
            by_number = isinstance(topic_key, int)
            code = ErrorCode.TOPIC_ID_NOT_FOUND if by_number else ErrorCode.TOPIC_NAME_NOT_FOUND
            raise Refused(code, f"there is no topic {topic_key} in {stream.name}")
        return Place(stream, topic, streams.number_of(topic))

    def partition(self, place: Place, index: int) -> Partition:
        """A partition of a topic. Raises Refused."""
        if not 0 <= index < len(place.topic.partitions):
            raise Refused(ErrorCode.PARTITION_NOT_FOUND, f"there is no partition {index} in {place.topic.name.flat}")
        return place.topic.partitions[index]

    def group(self, place: Place, key: Identifier) -> TopicGroup:
        """The group that a client names. Raises Refused."""
        if key == -1:
            raise Refused(ErrorCode.INVALID_CONSUMER_GROUP_ID, "group 0")
        group = self.shared.groups.find(place.topic, key)
        if group is None:
            by_number = isinstance(key, int)
            code = ErrorCode.CONSUMER_GROUP_ID_NOT_FOUND if by_number else ErrorCode.CONSUMER_GROUP_NAME_NOT_FOUND
            raise Refused(code, f"there is no group {key}")
        return group
