"""Records as text."""

from collections.abc import Callable

import pytest

from millstream.cli.record_format import compile_format, iso_time, render_line, unescape
from millstream.cli.record_json import ReceivedRecord

Make = Callable[..., ReceivedRecord]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", b""),
        ("plain", b"plain"),
        ("%t %p %o %k %v", b"orders 3 7 k\xff v"),
        ("%K,%V,%S", b"2,1,1"),
        ("%s", b"v"),
        ("%T", b"1769860800123"),
        ("%d", b"2026-01-31T12:00:00.123Z"),
        ("%h", b"a=1,b="),
        ("100%%", b"100%"),
        ("%%v%v", b"%vv"),
        ("%%%%", b"%%"),
        ("%%%v", b"%v"),
        (r"%k\t%v\n\x00\\", b"k\xff\tv\n\0\\"),
        ("é%v", b"\xc3\xa9v"),
    ],
)
def test_format(received: Make, text: str, expected: bytes) -> None:
    assert compile_format(text)(received(b"v", b"k\xff", [("a", b"1"), ("b", None)])) == expected


def test_null_is_empty_and_minus_one_long(received: Make) -> None:
    assert compile_format("<%k|%v|%K|%V>")(received(None)) == b"<||-1|-1>"


def test_a_record_without_a_time(received: Make) -> None:
    assert compile_format("%T %d")(received(timestamp_=(0, 0))) == b"-1 -"


@pytest.mark.parametrize("text", ["%", "%q", "a%", "%%%", "\\", "\\q", "%v\\", "\\x1"])
def test_an_unknown_sequence_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="there is no"):
        compile_format(text)


def test_lines(received: Make) -> None:
    record = received(b"v", b"k")
    assert render_line(with_timestamp=False, key_separator=None)(record) == b"v"
    assert render_line(with_timestamp=False, key_separator=b"=")(record) == b"k=v"
    assert render_line(with_timestamp=True, key_separator=b"=")(record) == b"2026-01-31T12:00:00.123Z\tk=v"
    assert render_line(with_timestamp=False, key_separator=b"=")(received(None)) == b"="


@pytest.mark.parametrize(("text", "expected"), [(r"\t", b"\t"), (r"\xff", b"\xff"), ("::", b"::"), (r"\0", b"\0")])
def test_unescape(text: str, expected: bytes) -> None:
    assert unescape(text) == expected


def test_a_time_beyond_the_calendar() -> None:
    assert iso_time((1 << 63) - 1) == "@9223372036854775807"
    assert iso_time(0) == "1970-01-01T00:00:00.000Z"
