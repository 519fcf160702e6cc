"""Topics of the Iggy protocol, with their partitions and segments."""

from typing import Annotated, Any, Final, Literal

from fastapi import Query
from pydantic import BaseModel, Field

from millstream.server.http.iggy_call import CallArgument, identifier, iggy_router, served, served_or_missing
from millstream.server.http.iggy_forms import topic_form
from millstream.sessions.iggy import partitions, topics
from millstream.wire.iggy.headers import HeaderKind, UserHeader
from millstream.wire.iggy.messages.topics import (
    CreateTopic,
    DeleteSegments,
    PartitionsRequest,
    StreamTopics,
    TopicRequest,
    UpdateTopic,
)

__all__ = ["router"]

router = iggy_router()
_TOPICS: Final = "/streams/{stream_id}/topics"
_TOPIC: Final = "/streams/{stream_id}/topics/{topic_id}"
Compression = Literal["none", "gzip"]
U32 = Annotated[int, Field(ge=0, lt=2**32)]
U64 = Annotated[int, Field(ge=0, lt=2**64)]


class NewTopic(BaseModel):
    """A topic to be made. `message_expiry` in microseconds, `max_topic_size` in bytes; 0 for the server's default,
    2^64-1 for no bound."""

    name: str
    partitions_count: U32
    compression_algorithm: Compression = "none"
    message_expiry: U64 = 0
    max_topic_size: U64 = 0
    options: dict[str, str] = {}


class ChangedTopic(BaseModel):
    """What is to be changed of a topic; what is left out stays."""

    name: str
    compression_algorithm: Compression | None = None
    message_expiry: U64 | None = None
    max_topic_size: U64 | None = None
    options: dict[str, str] = {}


class MorePartitions(BaseModel):
    """How many partitions are to come."""

    partitions_count: U32


def _options(body: NewTopic | ChangedTopic, *, without: tuple[object, ...]) -> list[UserHeader]:
    """The options that a body sets, those with fields of their own among them, but for values that set nothing."""
    own = {
        "compression_algorithm": body.compression_algorithm,
        "message_expiry": body.message_expiry,
        "max_topic_size": body.max_topic_size,
    }
    chosen = {key: str(value) for key, value in own.items() if value not in without} | body.options
    return [UserHeader(key.encode(), value.encode(), HeaderKind.STRING) for key, value in sorted(chosen.items())]


@router.get(_TOPICS)
async def get_topics(call: CallArgument, stream_id: str) -> list[dict[str, Any]]:
    """The topics of a stream."""
    told = await served_or_missing(call, topics.get_all, StreamTopics(stream=identifier(stream_id)))
    return [topic_form(topic) for topic in told.topics]


@router.get(_TOPIC)
async def get_topic(call: CallArgument, stream_id: str, topic_id: str) -> dict[str, Any]:
    """A topic and its partitions."""
    request = TopicRequest(stream=identifier(stream_id), topic=identifier(topic_id))
    told = await served_or_missing(call, topics.get, request)
    return topic_form(told.topic, told.partitions)


@router.post(_TOPICS)
async def create_topic(call: CallArgument, stream_id: str, body: NewTopic) -> dict[str, Any]:
    """Make a topic."""
    request = CreateTopic(
        stream=identifier(stream_id),
        partitions_count=body.partitions_count,
        name=body.name,
        options=_options(body, without=("none", 0)),
    )
    made = await served(call, topics.create, request)
    assert made.topic is not None, "the dialect has it"
    return topic_form(made.topic, made.partitions)


@router.put(_TOPIC, status_code=204)
async def update_topic(call: CallArgument, stream_id: str, topic_id: str, body: ChangedTopic) -> None:
    """Change the settings of a topic."""
    request = UpdateTopic(
        stream=identifier(stream_id),
        topic=identifier(topic_id),
        name=body.name,
        options=_options(body, without=(None,)),
    )
    await served(call, topics.update, request)


@router.delete(_TOPIC, status_code=204)
async def delete_topic(call: CallArgument, stream_id: str, topic_id: str) -> None:
    """Delete a topic."""
    await served(call, topics.delete, TopicRequest(stream=identifier(stream_id), topic=identifier(topic_id)))


@router.delete(_TOPIC + "/purge", status_code=204)
async def purge_topic(call: CallArgument, stream_id: str, topic_id: str) -> None:
    """Delete all messages of a topic."""
    await served(call, topics.purge, TopicRequest(stream=identifier(stream_id), topic=identifier(topic_id)))


@router.post(_TOPIC + "/partitions")
async def create_partitions(call: CallArgument, stream_id: str, topic_id: str, body: MorePartitions) -> None:
    """Give a topic more partitions."""
    request = PartitionsRequest(stream=identifier(stream_id), topic=identifier(topic_id), count=body.partitions_count)
    await served(call, partitions.create, request)


@router.delete(_TOPIC + "/partitions", status_code=204)
async def delete_partitions(
    call: CallArgument, stream_id: str, topic_id: str, partitions_count: Annotated[U32, Query()]
) -> None:
    """Take the last partitions of a topic away."""
    request = PartitionsRequest(stream=identifier(stream_id), topic=identifier(topic_id), count=partitions_count)
    await served(call, partitions.delete, request)


@router.delete(_TOPIC + "/partitions/{partition_id}", status_code=204)
async def delete_segments(
    call: CallArgument, stream_id: str, topic_id: str, partition_id: U32, segments_count: Annotated[U32, Query()]
) -> None:
    """Delete the oldest closed segments of a partition."""
    request = DeleteSegments(
        stream=identifier(stream_id), topic=identifier(topic_id), partition=partition_id, count=segments_count
    )
    await served(call, partitions.delete_segments, request)
