"""GET_STREAM, GET_STREAMS, CREATE_STREAM, UPDATE_STREAM, DELETE_STREAM, PURGE_STREAM."""

from collections.abc import Sequence
from typing import Final

from millstream.broker.partition import Partition
from millstream.broker.permissions import Action
from millstream.broker.streams import Stream, fold
from millstream.broker.topics import Topic
from millstream.model.pending import Pending, gather
from millstream.sessions.iggy.call import Call
from millstream.sessions.iggy.names import check_name, stored_options, told_options
from millstream.sessions.iggy.topic_info import topic_info
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.headers import UserHeader
from millstream.wire.iggy.messages.streams import (
    CreateStream,
    StreamDetails,
    StreamInfo,
    StreamList,
    StreamReply,
    StreamRequest,
    UpdateStream,
)
from millstream.wire.iggy.messages.system import Empty

__all__ = ["create", "delete", "get", "get_all", "purge", "update"]

_OPTIONS: Final = "options"


def get(call: Call, request: StreamRequest) -> StreamDetails:
    """A stream and its topics."""
    stream = call.stream(request.stream)
    call.permit(Action.READ_STREAM, stream.number)
    topics = call.shared.streams.topics_of(stream)
    return StreamDetails(stream=_info(call, stream, topics), topics=[topic_info(call, topic) for topic in topics])


def get_all(call: Call, request: Empty) -> StreamList:
    """All streams."""
    call.permit(Action.LIST_STREAMS)
    streams = call.shared.streams
    return StreamList(streams=[_info(call, stream, streams.topics_of(stream)) for stream in streams])


def create(call: Call, request: CreateStream) -> Pending[StreamReply]:
    """Make a stream."""
    call.permit(Action.CREATE_STREAM)
    if request.stream_id == -1:
        raise Refused(ErrorCode.INVALID_STREAM_ID, "stream 0")
    name = _new_name(call, request.name)
    _check_options(request.options)
    attributes = {_OPTIONS: stored_options(request.options)} if request.options else {}
    stream, stored = call.shared.streams.create(name, request.stream_id, attributes)
    return stored.then(lambda _: StreamReply(stream=_info(call, stream, ())))


def _new_name(call: Call, name: str) -> str:
    check_name(name, ErrorCode.INVALID_STREAM_NAME)
    if call.dialect.folds_names:
        name = fold(name)
    if "/" in name:
        raise Refused(ErrorCode.INVALID_STREAM_NAME, f"a stream cannot be named {name!r}")
    return name


def _check_options(options: list[UserHeader]) -> None:
    """There are no options of streams: the first is refused."""
    if options:
        raise Refused(ErrorCode.UNSUPPORTED_OPTION_KEY, f"there is no option {options[0].key!r} of a stream")


def update(call: Call, request: UpdateStream) -> Empty | Pending[Empty]:
    """Give a stream another name; its topics change theirs in every protocol."""
    stream = call.stream(request.stream)
    call.permit(Action.MANAGE_STREAM, stream.number)
    name = _new_name(call, request.name)
    if name == stream.name:
        return Empty()
    return call.shared.streams.rename(stream, name).then(lambda _: Empty())


def delete(call: Call, request: StreamRequest) -> Pending[Empty]:
    """Delete a stream with all its topics."""
    stream = call.stream(request.stream)
    call.permit(Action.MANAGE_STREAM, stream.number)
    streams = call.shared.streams
    deleted = [call.broker.delete_topic(topic) for topic in streams.topics_of(stream)]

    def finish(outcomes: Sequence[Pending[None]]) -> Pending[Empty]:
        for one in outcomes:
            one.result()  # a topic that could not be deleted keeps its stream
        return streams.delete(stream).then(lambda _: Empty())

    return gather(deleted).chain(finish)


def purge(call: Call, request: StreamRequest) -> Pending[Empty]:
    """Delete all messages of a stream's topics."""
    stream = call.stream(request.stream)
    call.permit(Action.MANAGE_STREAM, stream.number)
    topics = call.shared.streams.topics_of(stream)
    return _purge(call, [partition for topic in topics for partition in topic.partitions])


def purge_topic(call: Call, topic: Topic) -> Pending[Empty]:
    """Delete all messages of a topic. Offsets go on where they were, so that what is stored of consumers holds."""
    return _purge(call, topic.partitions)


def _purge(call: Call, partitions: Sequence[Partition]) -> Pending[Empty]:
    broker = call.broker

    def finish(outcomes: Sequence[Pending[int]]) -> Empty:
        for one in outcomes:
            one.result()
        return Empty()

    return gather([broker.delete_records(one, one.log.end_offset) for one in partitions]).then(finish)


def _info(call: Call, stream: Stream, topics: Sequence[Topic]) -> StreamInfo:
    logs = [partition.log for topic in topics for partition in topic.partitions]
    return StreamInfo(
        id=stream.number,
        created_at_us=stream.created_ms * 1000,
        topics_count=len(topics),
        size_bytes=sum(log.size_bytes for log in logs),
        messages_count=sum(log.end_offset - log.start_offset for log in logs),
        name=stream.name,
        options=told_options(stream.attributes.get(_OPTIONS, ())) if call.dialect >= Dialect.D else [],
    )
