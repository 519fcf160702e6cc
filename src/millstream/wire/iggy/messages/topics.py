"""Topics and their partitions."""

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.headers import HEADERS, UserHeader
from millstream.wire.iggy.kinds import (
    ID,
    IDENT,
    NAME,
    OPTIONAL_ID,
    U8,
    U32,
    U64,
    Identifier,
    Sized,
    Struct,
    ToEnd,
)
from millstream.wire.iggy.layout import field, message

__all__ = [
    "CreateTopic",
    "DeleteSegments",
    "PartitionInfo",
    "PartitionsRequest",
    "StreamTopics",
    "TopicDetails",
    "TopicInfo",
    "TopicList",
    "TopicReply",
    "TopicRequest",
    "UpdateTopic",
]


@message
class TopicRequest:
    """GET_TOPIC, DELETE_TOPIC, PURGE_TOPIC, GET_CONSUMER_GROUPS."""

    stream: Identifier = field(IDENT)
    topic: Identifier = field(IDENT)


@message
class StreamTopics:
    """GET_TOPICS."""

    stream: Identifier = field(IDENT)


@message
class CreateTopic:
    """CREATE_TOPIC.

    Expiry is in seconds (0 never) up to dialect B1, then in microseconds (0 the server's default, 2^64-1 never). From
    dialect D on it, the compression and the size are options.
    """

    stream: Identifier = field(IDENT)
    topic_id: int | None = field(OPTIONAL_ID, until=Dialect.C1, default=None)
    partitions_count: int = field(U32)
    compression: int = field(U8, since=Dialect.B1, until=Dialect.D0, default=1)
    expiry_s: int = field(U32, until=Dialect.B1, default=0)
    expiry_us: int = field(U64, since=Dialect.B2, until=Dialect.D0, default=0)
    max_size_bytes: int = field(U64, since=Dialect.B1, until=Dialect.D0, default=0)
    replication: int = field(U8, since=Dialect.B1, until=Dialect.D0, default=1)
    name: str = field(NAME)
    options: list[UserHeader] = field(HEADERS, since=Dialect.D, default=list)


@message
class UpdateTopic:
    """UPDATE_TOPIC; units as in CREATE_TOPIC."""

    stream: Identifier = field(IDENT)
    topic: Identifier = field(IDENT)
    compression: int = field(U8, since=Dialect.B1, until=Dialect.D0, default=1)
    expiry_s: int = field(U32, until=Dialect.B1, default=0)
    expiry_us: int = field(U64, since=Dialect.B2, until=Dialect.D0, default=0)
    max_size_bytes: int = field(U64, since=Dialect.B1, until=Dialect.D0, default=0)
    replication: int = field(U8, since=Dialect.B1, until=Dialect.D0, default=1)
    name: str = field(NAME)
    options: list[UserHeader] = field(HEADERS, since=Dialect.D, default=list)


@message
class PartitionsRequest:
    """CREATE_PARTITIONS and DELETE_PARTITIONS."""

    stream: Identifier = field(IDENT)
    topic: Identifier = field(IDENT)
    count: int = field(U32)


@message
class DeleteSegments:
    """DELETE_SEGMENTS: the oldest ones of a partition."""

    stream: Identifier = field(IDENT)
    topic: Identifier = field(IDENT)
    partition: int = field(ID)
    count: int = field(U32)


@message
class TopicInfo:
    """A topic in an answer."""

    id: int = field(ID)
    created_at_us: int = field(U64)
    partitions_count: int = field(U32)
    expiry_s: int = field(U32, until=Dialect.B1, default=0)
    expiry_us: int = field(U64, since=Dialect.B2, default=0)
    compression: int = field(U8, since=Dialect.B1, default=1)
    max_size_bytes: int = field(U64, since=Dialect.B1, default=0)
    replication: int = field(U8, since=Dialect.B1, until=Dialect.D0, default=1)
    size_bytes: int = field(U64)
    messages_count: int = field(U64)
    name: str = field(NAME)
    options: list[UserHeader] = field(Sized(HEADERS), since=Dialect.D, default=list)
    derived_options: list[UserHeader] = field(Sized(HEADERS), since=Dialect.D, default=list)


@message
class PartitionInfo:
    """A partition in an answer."""

    id: int = field(ID)
    created_at_us: int = field(U64)
    segments_count: int = field(U32)
    current_offset: int = field(U64)
    size_bytes: int = field(U64)
    messages_count: int = field(U64)


@message
class TopicDetails:
    """The answer to GET_TOPIC."""

    topic: TopicInfo = field(Struct(TopicInfo))
    partitions: list[PartitionInfo] = field(ToEnd(Struct(PartitionInfo)), default=list)


@message
class TopicReply:
    """The answer to CREATE_TOPIC; before dialect B3 it was empty."""

    topic: TopicInfo | None = field(Struct(TopicInfo), since=Dialect.B3, default=None)
    partitions: list[PartitionInfo] = field(ToEnd(Struct(PartitionInfo)), since=Dialect.B3, default=list)


@message
class TopicList:
    """The answer to GET_TOPICS; only from dialect D on it says how many there are."""

    count: int = field(U32, since=Dialect.D, default=0)
    topics: list[TopicInfo] = field(ToEnd(Struct(TopicInfo)), default=list)
