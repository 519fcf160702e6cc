"""Where reading starts: the values of `consume --from`."""

__all__ = ["Earliest", "FromOffset", "FromTime", "LastRecords", "Latest", "Start", "parse_start"]

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final


@dataclass(frozen=True, slots=True)
class Earliest:
    """The oldest record there is."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The next record to be written."""


@dataclass(frozen=True, slots=True)
class FromOffset:
    """This offset in each partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class LastRecords:
    """So many offsets before the end of each partition."""

    count: int


@dataclass(frozen=True, slots=True)
class FromTime:
    """The first record that is not older, in each partition; milliseconds since 1970-01-01 UTC."""

    timestamp_ms: int


Start = Earliest | Latest | FromOffset | LastRecords | FromTime

_UNITS: Final = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_AGO: Final = re.compile(
    r"-(?:(?P<w>\d+)w)?(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+)s)?", re.ASCII
)
_INT64_MAX: Final = (1 << 63) - 1


def parse_start(text: str, *, now: datetime) -> Start:
    """Read a value of --from.

    Args:
        text: earliest, latest, an offset (42), a number of records before the end (-10), a time ago in weeks,
            days, hours, minutes and seconds (-1h, -1d12h), milliseconds since 1970-01-01 UTC (@1767225600000),
            or a date and time in ISO 8601.
        now: the present, with a time zone. A date without a zone is local time.

    Raises:
        ValueError: the text is none of these.
    """
    match text:
        case "earliest" | "beginning" | "start":
            return Earliest()
        case "latest" | "end":
            return Latest()
    if re.fullmatch(r"-?\d+", text, re.ASCII):
        number = _bounded(int(text.lstrip("-")))
        return LastRecords(number) if text.startswith("-") else FromOffset(number)
    if re.fullmatch(r"@\d+", text, re.ASCII):
        return FromTime(_bounded(int(text[1:])))
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None and len(text) > 1:
            length = timedelta(**{_UNITS[unit]: int(count) for unit, count in ago.groupdict("0").items()})
            return FromTime(_milliseconds(now - length))
        moment = datetime.fromisoformat(text)
        return FromTime(_milliseconds(moment if moment.tzinfo else moment.astimezone()))
    except (OverflowError, ValueError) as error:
        raise ValueError(f"{text!r} is no place to start from") from error


def _milliseconds(moment: datetime) -> int:
    return max(0, round(moment.timestamp() * 1000))


def _bounded(number: int) -> int:
    if number > _INT64_MAX:
        raise ValueError(f"{number} is more than an offset or a time can be")
    return number
