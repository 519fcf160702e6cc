"""Records as JSON lines."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.cli.record_json import Outgoing, ReceivedRecord, format_record, parse_record

CONTENT = st.none() | st.binary(max_size=40) | st.text(max_size=20).map(str.encode)


def test_every_field(received: Callable[..., ReceivedRecord]) -> None:
    record = received(b"h\xc3\xa9llo", b"\xff", [("trace", b"9f"), ("none", None), ("raw", b"\xfe")])
    assert json.loads(format_record(record)) == {
        "topic": "orders",
        "partition": 3,
        "offset": 7,
        "timestamp": 1769860800123,
        "timestamp_type": "create",
        "key": {"base64": "/w=="},
        "value": "héllo",
        "headers": [["trace", "9f"], ["none", None], ["raw", {"base64": "/g=="}]],
    }


def test_a_record_without_a_time(received: Callable[..., ReceivedRecord]) -> None:
    document = json.loads(format_record(received(None, timestamp_=(0, -1))))
    assert (document["timestamp"], document["timestamp_type"], document["value"]) == (None, None, None)


@given(value=CONTENT, key=CONTENT, headers=st.lists(st.tuples(st.text(max_size=10), CONTENT), max_size=3))
def test_round_trip(
    received: Callable[..., ReceivedRecord],
    value: bytes | None,
    key: bytes | None,
    headers: list[tuple[str, bytes | None]],
) -> None:
    line = format_record(received(value, key, headers))
    assert b"\n" not in line
    assert parse_record(line) == Outgoing(
        value=value, key=key, headers=headers or None, timestamp_ms=1769860800123, partition=3
    )


def test_only_a_value_is_needed() -> None:
    assert parse_record(b'{"value": "x"}') == Outgoing(value=b"x")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"x",
        b"[]",
        b"{}",
        b'{"value": 1}',
        b'{"value": {"a": 1}}',
        b'{"value": {"base64": "/w==", "x": 1}}',
        b'{"value": {"base64": "not base64!"}}',
        b'{"value": "\\ud800"}',
        b'{"value": "x", "key": []}',
        b'{"value": "x", "headers": {"a": "b"}}',
        b'{"value": "x", "headers": [["a"]]}',
        b'{"value": "x", "headers": [[1, "b"]]}',
        b'{"value": "x", "timestamp": "now"}',
        b'{"value": "x", "timestamp": true}',
        b'{"value": "x", "partition": -1}',
        b'{"value": "\xff"}',
    ],
)
def test_anything_else_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_record(line)


FIELDS = st.sampled_from(["value", "key", "headers", "timestamp", "partition", "base64"])
SCALARS = st.none() | st.booleans() | st.integers() | st.text()


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(FIELDS, inner)))
def test_any_json_parses_or_is_refused(document: Any) -> None:
    with suppress(ValueError):
        parse_record(json.dumps(document).encode())
