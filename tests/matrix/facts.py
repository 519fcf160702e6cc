"""What a message can have in each protocol, and how one finds out what of it has arrived.

A fact is judged from what a reader was given, and gets one of these words:

    carried         it is as its producer sent it
    NAME            it is there as the header or property of this name
    empty           null has become empty
    base64          the client gives it in base64
    ms              to the millisecond
    first, last     of headers with one name, only the first or the last
    lost            it is not there

`docs/matrix.toml` has the word for each writer and reader.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.matrix.message import Message

__all__ = ["FACTS", "Fact", "own_headers"]

Judge = Callable[[Message, Message], str]
"""Judges what has arrived; the first message is what was sent, as a reader of the same protocol sees it."""

KEY_HEADER: Final = "millstream.key"
ORIGIN_HEADER: Final = "iggy.origin-timestamp"
ID_HEADER: Final = "iggy.id"
KINDS_HEADER: Final = "iggy.kinds"
ORDERING_HEADER: Final = "pulsar.ordering-key"
PUBLISHED_HEADER: Final = "pulsar.publish-time"
_CARRIED: Final = "carried"
_LOST: Final = "lost"
_TIME_US: Final = 1_600_000_000_123_000
_LONG: Final = b"x" * 300


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a message can have.

    Args:
        name: of it, as in `docs/matrix.toml`.
        message: one that has it.
        judge: finds out what has arrived.
    """

    name: str
    message: Message
    judge: Judge


def _value(sent: Message, found: Message) -> str:
    if found.value == sent.value:
        return _CARRIED
    return "empty" if sent.value is None and found.value == b"" else _LOST


def _key(sent: Message, found: Message) -> str:
    key = found.key if sent.key is not None else None
    wanted = sent.key if sent.key is not None else (sent.values_of(KEY_HEADER) or [None])[0]
    assert wanted is not None
    if wanted in (key, found.key):
        return _CARRIED
    if found.key == base64.b64encode(wanted):
        return "base64"
    return KEY_HEADER if found.values_of(KEY_HEADER) == [wanted] else _LOST


def _header(sent: Message, found: Message) -> str:
    name, value = sent.headers[0]
    if found.values_of(name) == [value]:
        return _CARRIED
    if value is None and found.values_of(f"{name}:null") == [b""]:
        return f"{name}:null"
    if value is not None and found.values_of(f"{name}:b64") == [base64.b64encode(value)]:
        return f"{name}:b64"
    return _LOST


def _repeated(sent: Message, found: Message) -> str:
    values = [value for _, value in sent.headers]
    there = found.values_of(sent.headers[0][0])
    if there == values:
        return _CARRIED
    return "first" if there == values[:1] else "last" if there == values[-1:] else _LOST


def _time(sent: Message, found: Message) -> str:
    assert sent.time_us is not None
    if found.time_us == sent.time_us:
        return _CARRIED
    if found.time_us != sent.time_us // 1000 * 1000:
        return _LOST
    return f"ms, {ORIGIN_HEADER}" if found.values_of(ORIGIN_HEADER) == [b"%d" % sent.time_us] else "ms"


def _number(sent: Message, found: Message) -> str:
    assert sent.number is not None
    if found.number == sent.number:
        return _CARRIED
    return ID_HEADER if found.values_of(ID_HEADER) == [b"%032x" % sent.number] else _LOST


def _kind(sent: Message, found: Message) -> str:
    if found.kinds == sent.kinds:
        return _CARRIED
    kinds = ",".join(sent.kinds.values()).encode()
    return KINDS_HEADER if found.values_of(KINDS_HEADER) == [kinds] else _LOST


def _more(name: str, header: str) -> Judge:
    def judge(sent: Message, found: Message) -> str:
        if found.more.get(name) == sent.more[name]:
            return _CARRIED
        return header if found.values_of(header) == [sent.more[name].encode()] else _LOST

    return judge


_ANY: Final = (Fact("value", Message(value=b"\x00\xff value"), _value), Fact("empty value", Message(), _value))
_NULL: Final = Fact("null value", Message(value=None, key=b"tombstone"), _value)
_WITH_KEY: Final = Fact("key", Message(value=b"v", key="schlüssel".encode()), _key)


def _with_header(value: bytes | None) -> Message:
    return Message(value=b"v", headers=(("name", value),))


FACTS: Final[dict[str, tuple[Fact, ...]]] = {
    "kafka": (
        *_ANY,
        _NULL,
        _WITH_KEY,
        Fact("binary key", Message(value=b"v", key=b"\xff\x00"), _key),
        Fact("empty key", Message(value=b"v", key=b""), _key),
        Fact("key over 255 bytes", Message(value=b"v", key=_LONG), _key),
        Fact("header", _with_header(b"text"), _header),
        Fact("binary header", _with_header(b"\xff\x00"), _header),
        Fact("empty header", _with_header(b""), _header),
        Fact("null header", _with_header(None), _header),
        Fact("header over 255 bytes", _with_header(_LONG), _header),
        Fact("repeated header", Message(value=b"v", headers=(("name", b"1"), ("name", b"2"))), _repeated),
        Fact("time", Message(value=b"v", time_us=_TIME_US), _time),
    ),
    "kafka07": _ANY,
    "pulsar": (
        *_ANY,
        _NULL,
        _WITH_KEY,
        Fact("property", _with_header(b"text"), _header),
        Fact("empty property", _with_header(b""), _header),
        Fact("property over 255 bytes", _with_header(_LONG), _header),
        Fact("event time", Message(value=b"v", time_us=_TIME_US), _time),
        Fact("publish time", Message(value=b"v"), _time),
        Fact(
            "publish time beside an event time",
            Message(value=b"v", time_us=_TIME_US),
            _more("published", PUBLISHED_HEADER),
        ),
        Fact(
            "ordering key",
            Message(value=b"v", more={"ordering_key": "the order"}),
            _more("ordering_key", ORDERING_HEADER),
        ),
    ),
    "iggy": (
        _ANY[0],
        Fact("header millstream.key", Message(value=b"v", headers=((KEY_HEADER, b"\xff k"),)), _key),
        Fact("header", _with_header(b"\xff raw"), _header),
        Fact(
            "kind of a header",
            Message(value=b"v", headers=(("name", b"\1\2\0\0"),), kinds={"name": "int32"}),
            _kind,
        ),
        Fact("origin timestamp", Message(value=b"v"), _time),
        Fact("id", Message(value=b"v", number=2**127 + 5), _number),
    ),
}
"""What a message can have, by the protocol of its writer."""


def own_headers(sent: Message, found: Message) -> set[str]:
    """The names of headers that were found and that nobody has sent, nor the documentation names."""
    ours = {KEY_HEADER, ORIGIN_HEADER, ID_HEADER, KINDS_HEADER, ORDERING_HEADER, PUBLISHED_HEADER}
    theirs = {f"{name}{ending}" for name, _ in sent.headers for ending in ("", ":b64", ":null")}
    return {name for name, _ in found.headers} - ours - theirs
