"""Records as JSON lines: what `consume --json` prints and `produce --jsonl` reads.

One object a line, in UTF-8:

    {"topic": "orders", "partition": 0, "offset": 7, "timestamp": 1767225600000, "timestamp_type": "create",
     "key": "a-17", "value": "hello", "headers": [["trace", "9f"], ["raw", {"base64": "/w=="}]]}

A key, a value and the value of a header are each a string when the bytes are valid UTF-8, otherwise an object
{"base64": "..."}, and null when there are none. `timestamp` is in milliseconds since 1970-01-01 UTC, null
when the record has none. Reading, only `value` is needed; topic, offset and timestamp_type are passed over.
"""

__all__ = ["Outgoing", "ReceivedRecord", "format_record", "parse_record"]

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Final, Protocol

Headers = list[tuple[str, bytes | None]]
JsonBytes = str | dict[str, str] | None

# As confluent_kafka numbers them: 0 not available, 1 creation time, 2 log append time.
_TIMESTAMP_TYPES: Final = (None, "create", "append")


class ReceivedRecord(Protocol):
    """What is used of a confluent_kafka.Message."""

    def topic(self) -> str: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def timestamp(self) -> tuple[int, int]: ...
    def headers(self) -> Headers | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A record to be written.

    `timestamp_ms` is in milliseconds since 1970-01-01 UTC, None for now; `partition` is None for any.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Headers | None = None
    timestamp_ms: int | None = None
    partition: int | None = None


def format_record(record: ReceivedRecord) -> bytes:
    """Return the record as one JSON object, without a line feed."""
    kind, timestamp_ms = record.timestamp()
    document = {
        "topic": record.topic(),
        "partition": record.partition(),
        "offset": record.offset(),
        "timestamp": timestamp_ms if kind else None,
        "timestamp_type": _TIMESTAMP_TYPES[kind],
        "key": _to_json(record.key()),
        "value": _to_json(record.value()),
        "headers": [[name, _to_json(value)] for name, value in record.headers() or ()],
    }
    return json.dumps(document, ensure_ascii=False).encode()


def parse_record(line: bytes) -> Outgoing:
    """Read one JSON object.

    Raises:
        ValueError: the line is not JSON, or a field has another form than described above.
    """
    document = json.loads(line)
    if not isinstance(document, dict):
        raise ValueError("the line is not a JSON object")
    if "value" not in document:
        raise ValueError("there is no 'value'")
    return Outgoing(
        value=_from_json(document["value"], "value"),
        key=_from_json(document.get("key"), "key"),
        headers=_headers(document.get("headers")),
        timestamp_ms=_integer(document, "timestamp"),
        partition=_integer(document, "partition"),
    )


def _to_json(content: bytes | None) -> JsonBytes:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode()}


def _from_json(content: object, field: str) -> bytes | None:
    match content:
        case None:
            return None
        case str():
            # A lone surrogate has no UTF-8 form: UnicodeEncodeError is a ValueError.
            return content.encode()
        case {"base64": str(encoded), **rest} if not rest:
            return b64decode(encoded, validate=True)
        case _:
            raise ValueError(f'{field!r} is neither a string nor null nor {{"base64": "..."}}')


def _headers(content: object) -> Headers | None:
    if content is None:
        return None
    if not isinstance(content, list):
        raise ValueError("'headers' is not an array of [name, value] pairs")
    headers: Headers = []
    for pair in content:
        match pair:
            case [str(name), value]:
                headers.append((name, _from_json(value, f"headers: {name}")))
            case _:
                raise ValueError("'headers' is not an array of [name, value] pairs")
    return headers or None


def _integer(document: dict[str, object], field: str) -> int | None:
    content = document.get(field)
    if content is None:
        return None
    if not isinstance(content, int) or isinstance(content, bool) or not 0 <= content < 1 << 63:
        raise ValueError(f"{field!r} is not an integer from 0 on")
    return content
