"""Stored offsets of consumers of the Iggy protocol.

A consumer is a single one: a group's members are connections. What a group has stored can be read all the same.
"""

from typing import Annotated, Any, Final, Literal

from fastapi import Query
from pydantic import BaseModel, Field

from millstream.server.http.iggy_call import CallArgument, identifier, iggy_router, served, served_or_missing
from millstream.sessions.iggy import offsets
from millstream.wire.iggy.kinds import Consumer
from millstream.wire.iggy.messages.offsets import DeleteOffset, GetOffset, StoreOffset

__all__ = ["router"]

router = iggy_router()
_OFFSETS: Final = "/streams/{stream_id}/topics/{topic_id}/consumer-offsets"
U32 = Annotated[int, Field(ge=0, lt=2**32)]
U64 = Annotated[int, Field(ge=0, lt=2**64)]


class NewOffset(BaseModel):
    """The offset of the last message that a consumer is done with."""

    consumer_id: str | U32 = "1"
    partition_id: U32 | None = None
    offset: U64


@router.get(_OFFSETS)
async def get_offset(
    call: CallArgument,
    stream_id: str,
    topic_id: str,
    consumer_id: str = "1",
    consumer_kind: Literal["consumer", "consumer_group"] = "consumer",
    partition_id: Annotated[U32 | None, Query()] = None,
) -> dict[str, Any]:
    """How far a consumer, or a group, has come."""
    request = GetOffset(
        consumer=Consumer(consumer_kind == "consumer_group", identifier(consumer_id)),
        stream=identifier(stream_id),
        topic=identifier(topic_id),
        partition=partition_id or 0,
    )
    told = await served_or_missing(call, offsets.get, request)
    return {
        "partition_id": told.partition,
        "current_offset": told.current_offset,
        "stored_offset": told.stored_offset,
    }


@router.put(_OFFSETS, status_code=204)
async def store_offset(call: CallArgument, stream_id: str, topic_id: str, body: NewOffset) -> None:
    """Say how far a consumer has come."""
    request = StoreOffset(
        consumer=Consumer(False, identifier(str(body.consumer_id))),
        stream=identifier(stream_id),
        topic=identifier(topic_id),
        partition=body.partition_id,
        offset=body.offset,
    )
    await served(call, offsets.store, request)


@router.delete(_OFFSETS + "/{consumer_id}", status_code=204)
async def delete_offset(
    call: CallArgument,
    stream_id: str,
    topic_id: str,
    consumer_id: str,
    partition_id: Annotated[U32 | None, Query()] = None,
) -> None:
    """Forget how far a consumer has come."""
    request = DeleteOffset(
        consumer=Consumer(False, identifier(consumer_id)),
        stream=identifier(stream_id),
        topic=identifier(topic_id),
        partition=partition_id,
    )
    await served(call, offsets.delete, request)
