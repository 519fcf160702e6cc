"""Values of --from."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.cli.start import Earliest, FromOffset, FromTime, LastRecords, Latest, Start, parse_start

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
NOW_MS = 1_769_860_800_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", Earliest()),
        ("beginning", Earliest()),
        ("latest", Latest()),
        ("end", Latest()),
        ("0", FromOffset(0)),
        ("42", FromOffset(42)),
        ("20260131", FromOffset(20260131)),
        ("-10", LastRecords(10)),
        ("-1h", FromTime(NOW_MS - HOUR_MS)),
        ("-1d12h", FromTime(NOW_MS - 36 * HOUR_MS)),
        ("-90s", FromTime(NOW_MS - 90_000)),
        ("-1w", FromTime(NOW_MS - 7 * 24 * HOUR_MS)),
        ("-5m", FromTime(NOW_MS - 5 * 60_000)),
        ("@1769860800123", FromTime(NOW_MS + 123)),
        ("2026-01-31T12:00:00Z", FromTime(NOW_MS)),
        ("2026-01-31 12:00:00.250+00:00", FromTime(NOW_MS + 250)),
        ("2026-01-31T14:00+02:00", FromTime(NOW_MS)),
        ("1969-12-31T00:00:00Z", FromTime(0)),
    ],
)
def test_forms(text: str, start: Start) -> None:
    assert parse_start(text, now=NOW) == start


def test_a_date_without_a_zone_is_local() -> None:
    local = datetime(2026, 1, 31, 8, 0).astimezone()
    assert parse_start("2026-01-31T08:00", now=NOW) == FromTime(int(local.timestamp() * 1000))


@pytest.mark.parametrize("text", ["", "-", "now", "-1x", "-h", "1h", "+5", "@", "@-1", "2026-13-01", "٣", "9" * 30])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_start(text, now=NOW)


@given(st.text(max_size=30))
def test_any_text_parses_or_is_refused(text: str) -> None:
    with suppress(ValueError):
        parse_start(text, now=NOW)


@pytest.mark.parametrize("text", ["-99999999999w", "0001-01-01"])
def test_times_before_the_calendar_do_not_escape(text: str) -> None:
    with suppress(ValueError):
        assert parse_start(text, now=NOW) == FromTime(0)
