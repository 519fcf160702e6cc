"""Requests of dialect A as the protocol's document spells them out, where its clients have them otherwise.

                    the document's table                    its clients
    CREATE_STREAM   identifier, name                        u32, name
    CREATE_TOPIC    stream, identifier, partitions u32,     stream, u32, partitions u32, expiry u32,
                    name                                    name
    SEND_MESSAGES   of a message: id 16, length u32,        id 16, headers_len u32, headers, length u32,
                    payload                                 payload

In its lists of fields the document has the number of a topic as a u32, and an expiry, so that what is between the two
forms is as right. All are taken: of those that a payload fills to its last byte, the one with the smallest numbers.
Where a form is not the one that was meant, text comes to stand where numbers are, and makes them huge.

Source: the Iggy binary transport page, "Create stream", "Create topic" and "Send messages"; captures of its clients.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.kinds import IDENT, NAME, OPTIONAL_ID, U32, Identifier
from millstream.wire.iggy.layout import field, message, reader_of
from millstream.wire.iggy.limits import MESSAGES_MAX
from millstream.wire.iggy.messages.streams import CreateStream
from millstream.wire.iggy.messages.topics import CreateTopic

__all__ = ["FORMS", "read_documented", "with_headers"]

_HEAD: Final = struct.Struct("<16sI")
_NO_HEADERS: Final = bytes(4)


@message
class _StreamByIdentifier:
    stream_id: Identifier = field(IDENT)
    name: str = field(NAME)


@message
class _TopicByIdentifier:
    stream: Identifier = field(IDENT)
    topic_id: Identifier = field(IDENT)
    partitions_count: int = field(U32)
    name: str = field(NAME)


@message
class _TopicByIdentifierExpiring:
    stream: Identifier = field(IDENT)
    topic_id: Identifier = field(IDENT)
    partitions_count: int = field(U32)
    expiry_s: int = field(U32)
    name: str = field(NAME)


@message
class _TopicByNumber:
    stream: Identifier = field(IDENT)
    topic_id: int | None = field(OPTIONAL_ID)
    partitions_count: int = field(U32)
    name: str = field(NAME)


def _stream(found: Any) -> CreateStream:
    return CreateStream(stream_id=_number(found.stream_id, found.name, ErrorCode.INVALID_STREAM_ID), name=found.name)


def _topic(found: Any) -> CreateTopic:
    return CreateTopic(
        stream=found.stream,
        topic_id=_number(found.topic_id, found.name, ErrorCode.INVALID_TOPIC_ID),
        partitions_count=found.partitions_count,
        expiry_s=getattr(found, "expiry_s", 0),
        name=found.name,
    )


def _number(identifier: Identifier | None, name: str, code: ErrorCode) -> int | None:
    """The number of something new; None leaves it to the server, as it is where the identifier is the name."""
    if not isinstance(identifier, str):
        return identifier
    if identifier.lower() != name.lower():
        raise Refused(code, f"what is to be called {name!r} is named {identifier!r}")
    return None


FORMS: Final[Mapping[type, tuple[tuple[type, ...], Callable[[Any], Any]]]] = {
    CreateStream: ((CreateStream, _StreamByIdentifier), _stream),
    CreateTopic: ((CreateTopic, _TopicByIdentifier, _TopicByIdentifierExpiring, _TopicByNumber), _topic),
}
"""The forms of a request, that of its clients first, and what makes that of the others."""


def read_documented(cls: type, payload: memoryview) -> Any:
    """Read a request in whatever form fills the payload.

    Args:
        cls: one of `FORMS`.
        payload: what follows the code. Zeros may follow what clients send: one is known to do so.

    Returns:
        The request; None if no form fits.

    Raises:
        Refused: it names what is to be made in two ways.
    """
    forms, make = FORMS[cls]
    fitting = [found for form in forms if (found := _read(form, payload, spare=form is cls)) is not None]
    if not fitting:
        return None
    best = min(fitting, key=_largest_number)
    return best if type(best) is cls else make(best)


def _read(form: type, payload: memoryview, *, spare: bool) -> Any:
    try:
        found, position = reader_of(form, Dialect.A)(payload, 0)
    except (struct.error, IndexError, UnicodeDecodeError, Refused):
        return None
    rest = payload[position:]
    if (len(rest) and not spare) or any(rest):
        return None
    # A number such as 514, as clients send it, begins as an identifier with a name does, but zeros come in the name.
    names = ("stream", "stream_id", "topic_id", "name")
    texts = [text for name in names if isinstance(text := getattr(found, name, None), str)]
    return found if all(text and text.isprintable() for text in texts) else None


def _largest_number(found: Any) -> int:
    names = ("stream_id", "topic_id", "partitions_count", "expiry_s")
    return max(number for name in names if isinstance(number := getattr(found, name, 0), int))


def with_headers(messages: memoryview) -> memoryview | None:
    """Messages as the document has them, in the form of its clients: without any headers.

    Returns:
        None if they are not as the document has them, or too many.
    """
    heads = list(islice(_heads(messages), MESSAGES_MAX + 1))
    if not 0 < len(heads) <= MESSAGES_MAX or heads[-1] < 0:
        return None
    parts: list[bytes | memoryview] = []
    for at, stop in zip(heads, [*heads[1:], len(messages)], strict=True):
        parts += (messages[at : at + 16], _NO_HEADERS, messages[at + 16 : stop])
    return memoryview(bytearray(b"".join(parts)))


def _heads(messages: memoryview) -> Iterator[int]:
    """Where each message begins; -1 in the end if they do not fill the payload, or one is empty."""
    position, end = 0, len(messages)
    while position < end:
        yield position
        length = _HEAD.unpack_from(messages, position)[1] if end - position >= _HEAD.size else 0
        if not 0 < length <= end - position - _HEAD.size:
            yield -1
            return
        position += _HEAD.size + length
