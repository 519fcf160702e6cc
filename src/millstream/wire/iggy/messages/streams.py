"""Streams."""

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.headers import HEADERS, UserHeader
from millstream.wire.iggy.kinds import ID, IDENT, NAME, OPTIONAL_ID, U32, U64, Identifier, Sized, Struct, ToEnd
from millstream.wire.iggy.layout import field, message
from millstream.wire.iggy.messages.topics import TopicInfo

__all__ = [
    "CreateStream",
    "StreamDetails",
    "StreamInfo",
    "StreamList",
    "StreamReply",
    "StreamRequest",
    "UpdateStream",
]


@message
class StreamRequest:
    """GET_STREAM, DELETE_STREAM, PURGE_STREAM."""

    stream: Identifier = field(IDENT)


@message
class CreateStream:
    """CREATE_STREAM. `stream_id` None leaves the number to the server."""

    stream_id: int | None = field(OPTIONAL_ID, until=Dialect.C1, default=None)
    name: str = field(NAME)
    options: list[UserHeader] = field(HEADERS, since=Dialect.D, default=list)


@message
class UpdateStream:
    """UPDATE_STREAM."""

    stream: Identifier = field(IDENT)
    name: str = field(NAME)
    options: list[UserHeader] = field(HEADERS, since=Dialect.D, default=list)


@message
class StreamInfo:
    """A stream in an answer."""

    id: int = field(ID)
    created_at_us: int = field(U64)
    topics_count: int = field(U32)
    size_bytes: int = field(U64)
    messages_count: int = field(U64)
    name: str = field(NAME)
    options: list[UserHeader] = field(Sized(HEADERS), since=Dialect.D, default=list)
    derived_options: list[UserHeader] = field(Sized(HEADERS), since=Dialect.D12, default=list)


@message
class StreamDetails:
    """The answer to GET_STREAM."""

    stream: StreamInfo = field(Struct(StreamInfo))
    topics: list[TopicInfo] = field(ToEnd(Struct(TopicInfo)), default=list)


@message
class StreamReply:
    """The answer to CREATE_STREAM; before dialect B3 it was empty."""

    stream: StreamInfo | None = field(Struct(StreamInfo), since=Dialect.B3, default=None)


@message
class StreamList:
    """The answer to GET_STREAMS."""

    streams: list[StreamInfo] = field(ToEnd(Struct(StreamInfo)), default=list)
