"""Sending and polling messages over HTTP: payloads, keys and headers are base64.

Sent messages become a batch of today's dialect and go the way of every other; polled ones are taken apart from it.
"""

import json
from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from millstream.server.http.iggy_call import CallArgument, identifier, iggy_router, served
from millstream.sessions.iggy import poll, send
from millstream.sessions.iggy.call import Call
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.headers import HeaderKind, UserHeader, read_headers
from millstream.wire.iggy.kinds import Consumer, Partitioning
from millstream.wire.iggy.messages.batches import FlushBuffer, PolledMessages, PollMessages, SendMessages, Strategy
from millstream.wire.iggy.polled import Message, encode_messages
from millstream.wire.iggy.stored import BODY_POSITION
from millstream.wire.iggy.unpacked import Unpacked, unpack

__all__ = ["router"]

router = iggy_router()
_MESSAGES: Final = "/streams/{stream_id}/topics/{topic_id}/messages"
_DURABILITY: Final = "iggy-durability"
_POLLED_HEAD_BYTES: Final = 16
_ID_MAX: Final = 2**128 - 1
_KINDS: Final = {kind.name.lower(): kind for kind in HeaderKind}
_KIND_NAMES: Final = {kind.value: kind.name.lower() for kind in HeaderKind}
_STRATEGIES: Final = {strategy.name.lower(): strategy for strategy in Strategy}
U32 = Annotated[int, Field(ge=0, lt=2**32)]
U64 = Annotated[int, Field(ge=0, lt=2**64)]
Base64 = Annotated[str, Field(description="base64")]
Kind = Literal[
    "raw",
    "string",
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "int128",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uint128",
    "float32",
    "float64",
]


class HeaderPart(BaseModel):
    """The key of a header, or its value."""

    kind: Kind
    value: Base64


class Header(BaseModel):
    """A header."""

    key: HeaderPart
    value: HeaderPart


class OutgoingMessage(BaseModel):
    """A message to be sent; `id` a number or a UUID, 0 for one that the server draws; headers may be one block."""

    id: int | str = 0
    payload: Base64
    user_headers: list[Header] | Base64 | None = None


class Destination(BaseModel):
    """How the partition is chosen: balanced, partition_id (a u32), messages_key."""

    kind: Literal["balanced", "partition_id", "messages_key"]
    value: Base64 = ""


class Sending(BaseModel):
    """Messages for one partition."""

    partitioning: Destination
    messages: list[OutgoingMessage]


_SENDING: Final = TypeAdapter(Sending)


# Sending


def _bytes(text: str, what: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (BadBase64, ValueError):
        raise _unfit(what, "it is not base64") from None


def _unfit(what: str, reason: str) -> RequestValidationError:
    return RequestValidationError([{"loc": ("body", what), "msg": reason, "type": "value_error"}])


def _id(given: int | str, drawn: bytes) -> bytes:
    """The id of a message, 16 bytes in wire order."""
    if isinstance(given, str):
        text = given.replace("-", "")
        try:
            number = int(given) if given.isascii() and given.isdecimal() else int(text, 16) if len(text) == 32 else -1
        except ValueError:
            number = -1
    else:
        number = given
    if not 0 <= number <= _ID_MAX:
        raise _unfit("id", "it is a number of 128 bits or a UUID")
    return number.to_bytes(16, "little") if number else drawn


def _headers(given: list[Header] | str | None) -> list[UserHeader]:
    if given is None:
        return []
    if isinstance(given, str):
        return read_headers(memoryview(_bytes(given, "user_headers")), kinded_keys=True)
    return [
        UserHeader(
            _bytes(one.key.value, "key"),
            _bytes(one.value.value, "value"),
            _KINDS[one.value.kind],
            _KINDS[one.key.kind],
        )
        for one in given
    ]


def _partitioning(destination: Destination) -> Partitioning:
    value = _bytes(destination.value, "partitioning")
    if len(value) > 255 or (destination.kind != "balanced" and not value):
        raise Refused(ErrorCode.INVALID_KEY_VALUE_LENGTH, f"a partitioning of {len(value)} bytes")
    if destination.kind == "balanced":
        return Partitioning()
    if destination.kind == "messages_key":
        return Partitioning(key=value)
    if len(value) != 4:
        raise Refused(ErrorCode.INVALID_COMMAND, f"a partition's number of {len(value)} bytes")
    return Partitioning(partition=int.from_bytes(value, "little"))


def _frame(call: Call, messages: list[OutgoingMessage]) -> memoryview:
    """A batch of messages, with room before it for what is stored in front of it."""
    runtime = call.broker.runtime
    now_us, drawn = runtime.now_ms() * 1000, runtime.random_bytes(16 * len(messages))
    batch = [
        Message(
            offset,
            0,
            now_us,
            _id(one.id, drawn[16 * offset : 16 * offset + 16]),
            _bytes(one.payload, "payload"),
            _headers(one.user_headers),
        )
        for offset, one in enumerate(messages)
    ]
    return memoryview(bytearray(b"".join([bytes(BODY_POSITION), *encode_messages(batch, Dialect.D, 0)])))


@router.post(_MESSAGES, status_code=201)
async def send_messages(
    request: Request,
    call: CallArgument,
    stream_id: str,
    topic_id: str,
    ack: Literal["replicated", "none"] = "replicated",
) -> Response:
    """Send messages; answered when they last, or at once with `ack=none`."""
    try:
        body = _SENDING.validate_json(await request.body())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise RequestValidationError([{**first, "loc": ("body", *first["loc"])}]) from None
    partitioning = _partitioning(body.partitioning)
    frame = _frame(call, body.messages)
    sending = SendMessages(
        stream=identifier(stream_id),
        topic=identifier(topic_id),
        partitioning=partitioning,
        count=len(body.messages),
        messages=frame[BODY_POSITION:],
    )
    placing = Call(call.shared, call.client, call.dialect, frame)
    if ack == "none":
        send.handle(placing, sending)
        return Response(status_code=202, headers={_DURABILITY: "none"})
    reply = await served(placing, send.handle, sending)
    confirmations = [
        {
            "stream_id": one.stream,
            "topic_id": one.topic,
            "partition_id": one.partition,
            "base_offset": one.base_offset,
        }
        for one in reply.placed
    ]
    durability = "persisted" if call.broker.settings.fsync else "replicated"
    return JSONResponse({"confirmations": confirmations}, 201, {_DURABILITY: durability})


# Polling


def _message(one: Unpacked) -> dict[str, Any]:
    try:
        headers: Any = [
            {"key": _part(header.key_kind, header.key), "value": _part(header.kind, header.value)}
            for header in one.headers()
        ]
    except Refused:
        headers = b64encode(one.block).decode()
    return {
        "header": {
            "checksum": one.checksum,
            "id": int.from_bytes(one.id, "little"),
            "offset": one.offset,
            "timestamp": one.timestamp_us,
            "origin_timestamp": one.origin_us,
            "user_headers_length": len(one.block),
            "payload_length": len(one.payload),
            "reserved": 0,
        },
        "payload": b64encode(one.payload).decode(),
        "user_headers": headers,
    }


def _part(kind: int, value: bytes) -> dict[str, str]:
    return {"kind": _KIND_NAMES[kind], "value": b64encode(value).decode()}


def _polled(call: Call, request: PollMessages) -> bytes:
    """The JSON of what was polled. It is made at once: the messages lie in a buffer that is used again."""
    answer = memoryview(b"".join(poll.handle(call, request)))
    head = PolledMessages(
        partition=int.from_bytes(answer[:4], "little"),
        current_offset=int.from_bytes(answer[4:12], "little"),
        count=int.from_bytes(answer[12:_POLLED_HEAD_BYTES], "little"),
        messages=answer[_POLLED_HEAD_BYTES:],
    )
    form = {
        "partition_id": head.partition,
        "current_offset": head.current_offset,
        "count": head.count,
        "messages": [_message(one) for one in unpack(head.messages)],
    }
    return json.dumps(form, separators=(",", ":")).encode()


@router.get(_MESSAGES)
async def poll_messages(
    call: CallArgument,
    stream_id: str,
    topic_id: str,
    consumer_id: str = "1",
    partition_id: Annotated[U32, Query()] = 0,
    kind: Literal["offset", "timestamp", "first", "last", "next"] = "offset",
    value: Annotated[U64, Query()] = 0,
    count: Annotated[U32, Query()] = 10,
    auto_commit: bool = False,
) -> Response:
    """Poll messages of one partition as a single consumer."""
    request = PollMessages(
        consumer=Consumer(False, identifier(consumer_id)),
        stream=identifier(stream_id),
        topic=identifier(topic_id),
        partition=partition_id,
        strategy=_STRATEGIES[kind],
        value=value,
        count=count,
        auto_commit=auto_commit,
    )
    return Response(await served(call, _polled, request), media_type="application/json")


@router.get(_MESSAGES + "/flush/{partition_id}/{fsync}")
async def flush(call: CallArgument, stream_id: str, topic_id: str, partition_id: U32, fsync: str) -> None:
    """Put a partition on the disk; `fsync` is true or false, as it is or as "fsync=true"."""
    words = fsync.removeprefix("fsync=")
    if words not in {"true", "false"}:
        raise Refused(ErrorCode.INVALID_COMMAND, f"fsync is true or false, not {words!r}")
    request = FlushBuffer(
        stream=identifier(stream_id), topic=identifier(topic_id), partition=partition_id, fsync=words == "true"
    )
    await served(call, send.flush, request)
