"""Streams of the Iggy protocol, which are namespaces to others."""

from typing import Any

from pydantic import BaseModel

from millstream.server.http.iggy_call import CallArgument, identifier, iggy_router, served, served_or_missing
from millstream.server.http.iggy_forms import stream_form
from millstream.sessions.iggy import streams
from millstream.wire.iggy.headers import HeaderKind, UserHeader
from millstream.wire.iggy.messages.streams import CreateStream, StreamRequest, UpdateStream
from millstream.wire.iggy.messages.system import Empty

__all__ = ["router"]

router = iggy_router()


class NewStream(BaseModel):
    """A stream to be made."""

    name: str


class ChangedStream(BaseModel):
    """What is to be changed of a stream."""

    name: str
    options: dict[str, str] = {}


@router.get("/streams")
async def get_streams(call: CallArgument) -> list[dict[str, Any]]:
    """All streams."""
    return [stream_form(one) for one in (await served(call, streams.get_all, Empty())).streams]


@router.get("/streams/{stream_id}")
async def get_stream(call: CallArgument, stream_id: str) -> dict[str, Any]:
    """A stream and its topics."""
    told = await served_or_missing(call, streams.get, StreamRequest(stream=identifier(stream_id)))
    return stream_form(told.stream, told.topics)


@router.post("/streams")
async def create_stream(call: CallArgument, body: NewStream) -> dict[str, Any]:
    """Make a stream."""
    made = await served(call, streams.create, CreateStream(name=body.name))
    assert made.stream is not None, "the dialect has it"
    return stream_form(made.stream, ())


@router.put("/streams/{stream_id}", status_code=204)
async def update_stream(call: CallArgument, stream_id: str, body: ChangedStream) -> None:
    """Change a stream."""
    options = [UserHeader(key.encode(), value.encode(), HeaderKind.STRING) for key, value in body.options.items()]
    await served(call, streams.update, UpdateStream(stream=identifier(stream_id), name=body.name, options=options))


@router.delete("/streams/{stream_id}", status_code=204)
async def delete_stream(call: CallArgument, stream_id: str) -> None:
    """Delete a stream with all its topics."""
    await served(call, streams.delete, StreamRequest(stream=identifier(stream_id)))


@router.delete("/streams/{stream_id}/purge", status_code=204)
async def purge_stream(call: CallArgument, stream_id: str) -> None:
    """Delete all messages of a stream."""
    await served(call, streams.purge, StreamRequest(stream=identifier(stream_id)))
