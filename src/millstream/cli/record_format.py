"""Records as text: the default of `consume`, and what its --format makes of them."""

__all__ = ["Render", "compile_format", "iso_time", "render_line", "unescape"]

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from millstream.cli.record_json import ReceivedRecord

Render = Callable[[ReceivedRecord], bytes]

_TOKENS: Final[dict[str, Render]] = {
    "t": lambda record: record.topic().encode(),
    "p": lambda record: b"%d" % record.partition(),
    "o": lambda record: b"%d" % record.offset(),
    "k": lambda record: record.key() or b"",
    "K": lambda record: _length(record.key()),
    "v": lambda record: record.value() or b"",
    "V": lambda record: _length(record.value()),
    # kcat's letters for the value and its length.
    "s": lambda record: record.value() or b"",
    "S": lambda record: _length(record.value()),
    "T": lambda record: b"%d" % _timestamp_ms(record),
    "d": lambda record: iso_time(_timestamp_ms(record)).encode(),
    "h": lambda record: _headers(record),
    "%": lambda record: b"%",
}
_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_ESCAPE: Final = re.compile(r"\\(?:x(?P<hex>[0-9a-fA-F]{2})|(?P<letter>.))|\\$", re.DOTALL)


def compile_format(text: str) -> Render:
    """Return what renders a record by a format.

    %t topic, %p partition, %o offset, %k key, %v (or %s) value, %K and %V (or %S) their lengths in bytes, -1
    for null, %T time in milliseconds since 1970-01-01 UTC, %d the same in ISO 8601, %h headers as
    "name=value,...", %% a percent sign. Backslash escapes are those of `unescape`.

    Raises:
        ValueError: an unknown % or backslash sequence.
    """
    parts: list[Render] = []
    literals = text.split("%")
    parts.append(_constant(unescape(literals[0])))
    pending = iter(literals[1:])
    for piece in pending:
        letter, rest = (piece[0], piece[1:]) if piece else ("%", next(pending, None))
        if rest is None or letter not in _TOKENS:
            raise ValueError(f"there is no %{letter if rest is not None else ''}")
        parts.append(_TOKENS[letter])
        parts.append(_constant(unescape(rest)))

    def render(record: ReceivedRecord) -> bytes:
        return b"".join([part(record) for part in parts])

    return render


def render_line(*, with_timestamp: bool, key_separator: bytes | None) -> Render:
    """Return what renders a record as its value, after its key and after its time if these are wanted."""

    def render(record: ReceivedRecord) -> bytes:
        line = record.value() or b""
        if key_separator is not None:
            line = (record.key() or b"") + key_separator + line
        if with_timestamp:
            line = iso_time(_timestamp_ms(record)).encode() + b"\t" + line
        return line

    return render


def unescape(text: str) -> bytes:
    r"""Return the text in UTF-8 with \n, \r, \t, \0, \\ and \xHH (one byte) replaced by what they stand for.

    Raises:
        ValueError: another character follows a backslash.
    """
    result = bytearray()
    position = 0
    for match in _ESCAPE.finditer(text):
        result += text[position : match.start()].encode()
        position = match.end()
        if match["hex"]:
            result += bytes.fromhex(match["hex"])
        elif match["letter"] in _ESCAPES:
            result += _ESCAPES[match["letter"]]
        else:
            raise ValueError(f"there is no escape {match[0]}")
    return bytes(result + text[position:].encode())


def iso_time(timestamp_ms: int) -> str:
    """Return a time in ISO 8601, in UTC with milliseconds; "-" for -1, which stands for no time.

    Args:
        timestamp_ms: milliseconds since 1970-01-01 UTC.
    """
    if timestamp_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        # Nothing keeps a producer from writing a time beyond the calendar.
        return f"@{timestamp_ms}"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp_ms % 1000:03d}Z"


def _constant(content: bytes) -> Render:
    return lambda record: content


def _length(content: bytes | None) -> bytes:
    return b"%d" % (-1 if content is None else len(content))


def _timestamp_ms(record: ReceivedRecord) -> int:
    kind, timestamp_ms = record.timestamp()
    return timestamp_ms if kind else -1


def _headers(record: ReceivedRecord) -> bytes:
    return b",".join(name.encode() + b"=" + (value or b"") for name, value in record.headers() or ())
