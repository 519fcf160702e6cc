"""The options of the source, named as those of Spark's own Kafka source."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from millstream.spark.errors import BadOption
from millstream.spark.read.points import EARLIEST_OFFSET, LATEST_OFFSET, Point, read_point
from millstream.spark.read.schema import ALL_COLUMNS, COLUMNS, HEADERS
from millstream.spark.read.selection import ASSIGN, PATTERN, SUBSCRIBE, Selection
from millstream.spark.servers import SERVER_OPTIONS, Servers

__all__ = ["Direct", "Limits", "ReadOptions"]

_FOR_STREAMS: Final = (
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "kafka.group.id",
)
_ENDING: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
_NAMES: Final = (
    *SERVER_OPTIONS,
    SUBSCRIBE,
    PATTERN,
    ASSIGN,
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingGroup",
    *_ENDING,
    *_FOR_STREAMS,
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "columns",
    "direct",
    "kafka.isolation.level",
    "kafka.default.api.timeout.ms",
)
_PATIENCE_MS: Final = 60_000
"""As long as Kafka's clients ask again where nobody answers."""
_TRIGGER_DELAY_MS: Final = 15 * 60 * 1000
"""As Spark's Kafka source."""
_UNITS_MS: Final = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class Direct(StrEnum):
    """Whether tasks read segment files."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a micro-batch may be, and must be.

    Args:
        rows_max: records at most (`maxOffsetsPerTrigger`); None for no limit.
        bytes_max: bytes in the log at most, about (`maxBytesPerTrigger`); None for no limit.
        rows_min: records at least (`minOffsetsPerTrigger`), unless `delay_ms` is over; None for any.
        delay_ms: for how long records wait for more to come (`maxTriggerDelay`).
    """

    rows_max: int | None = None
    bytes_max: int | None = None
    rows_min: int | None = None
    delay_ms: int = _TRIGGER_DELAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What to read and how.

    Args:
        servers: the brokers, and how to speak to them (`kafka.bootstrap.servers`, `kafka.security.protocol`, ...).
        selection: which topics and partitions.
        start: where to begin; None for the default, which is earliest for a batch and latest for a stream.
        end: where a batch ends; None for the latest.
        limits: of micro-batches.
        group: the group under which a stream shows how far it has come (`kafka.group.id`); empty for none.
        min_partitions: partitions are split until there are at least so many tasks; None for one task each.
        task_rows_max: records of one task at most (`maxRecordsPerPartition`); None for no limit.
        fails_on_data_loss: whether records that are gone are an error (`failOnDataLoss`).
        columns: which columns, in which order (`columns`, `includeHeaders`).
        direct: whether segment files are read where the broker's data directory is reachable.
        patience_s: for how long a broker that has answered before and does not now is asked again.
        for_streams: the first option that was given and is only for streams; empty if there is none.
    """

    servers: Servers
    selection: Selection
    start: Point | None
    end: Point | None
    limits: Limits
    group: str
    min_partitions: int | None
    task_rows_max: int | None
    fails_on_data_loss: bool
    columns: tuple[str, ...]
    direct: Direct
    patience_s: float
    for_streams: str

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "ReadOptions":
        """Read the options that were given to Spark; names count without case.

        Raises:
            BadOption: the first that is missing, unknown or makes no sense.
        """
        given = _known(options)
        servers = Servers.of(options)
        selection = Selection.of(given)
        direct = given.get("direct", Direct.AUTO).lower()
        if direct not in set(Direct):
            raise BadOption(f"direct is one of {', '.join(Direct)}, not {given['direct']!r}")
        if given.get("kafka.isolation.level", "read_committed").lower() != "read_committed":
            raise BadOption("kafka.isolation.level can only be read_committed: what is not decided is never read")
        return cls(
            servers=servers,
            selection=selection,
            start=read_point(given, "starting", selection),
            end=read_point(given, "ending", selection),
            limits=_limits(given),
            group=given.get("kafka.group.id", ""),
            min_partitions=_positive(given, "minPartitions"),
            task_rows_max=_positive(given, "maxRecordsPerPartition"),
            fails_on_data_loss=_boolean(given, "failOnDataLoss", default=True),
            columns=_columns(given),
            direct=Direct(direct),
            patience_s=_duration_ms(given, "kafka.default.api.timeout.ms", _PATIENCE_MS) / 1000,
            for_streams=next((name for name in _FOR_STREAMS if name in given), ""),
        )

    def for_batch(self) -> "ReadOptions":
        """Check that a batch can be read with them.

        Raises:
            BadOption: a batch cannot begin at the latest offset, nor end at the earliest.
        """
        if self.start is not None and self.start.holds(LATEST_OFFSET):
            raise BadOption("startingOffsets: a batch cannot begin at the latest offset; take earliest or offsets")
        if self.end is not None and self.end.holds(EARLIEST_OFFSET):
            raise BadOption("endingOffsets: a batch cannot end at the earliest offset; take latest or offsets")
        if self.for_streams:
            raise BadOption(f"{self.for_streams} is for streams; a batch is bounded by endingOffsets")
        return self

    def for_stream(self) -> "ReadOptions":
        """Check that a stream can be read with them.

        Raises:
            BadOption: a stream has no end.
        """
        if self.end is not None and (self.end.option != "endingOffsets" or self.end.offsets != "latest"):
            raise BadOption(f"{self.end.option} is for batches; a stream has no end (see the trigger availableNow)")
        return self


def _known(options: Mapping[str, str]) -> dict[str, str]:
    known = {name.lower(): name for name in _NAMES}
    given: dict[str, str] = {}
    for key, value in options.items():
        name = known.get(key.lower())
        if name is None:
            raise BadOption(f"there is no option {key!r}; there are {', '.join(_NAMES)}")
        given[name] = value.strip()
    return given


def _limits(given: Mapping[str, str]) -> Limits:
    limits = Limits(
        rows_max=_positive(given, "maxOffsetsPerTrigger"),
        bytes_max=_positive(given, "maxBytesPerTrigger"),
        rows_min=_positive(given, "minOffsetsPerTrigger"),
        delay_ms=_duration_ms(given, "maxTriggerDelay", _TRIGGER_DELAY_MS),
    )
    if limits.rows_min is not None and limits.rows_max is not None and limits.rows_min > limits.rows_max:
        raise BadOption(
            f"minOffsetsPerTrigger of {limits.rows_min} is more than maxOffsetsPerTrigger of {limits.rows_max}"
        )
    return limits


def _positive(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise BadOption(f"{name} takes a whole number above 0, not {text!r}")
    return int(text)


def _duration_ms(given: Mapping[str, str], name: str, default_ms: int) -> int:
    """Read a duration as Spark writes it: a number of milliseconds, or with a unit such as 90s or 15m."""
    text = given.get(name)
    if text is None:
        return default_ms
    found = re.fullmatch(r"(\d{1,15})\s*([a-z]*)", text.lower())
    if found is None or found.group(2) not in _UNITS_MS:
        raise BadOption(f"{name} takes a time such as 500ms, 90s or 15m, not {text!r}")
    return int(found.group(1)) * _UNITS_MS[found.group(2)]


def _boolean(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name, str(default)).lower()
    if text not in {"true", "false"}:
        raise BadOption(f"{name} is true or false, not {given[name]!r}")
    return text == "true"


def _columns(given: Mapping[str, str]) -> tuple[str, ...]:
    with_headers = _boolean(given, "includeHeaders", default=False)
    if "columns" not in given:
        return (*COLUMNS, HEADERS) if with_headers else COLUMNS
    by_lower_case = {name.lower(): name for name in ALL_COLUMNS}
    columns: list[str] = []
    for text in given["columns"].split(","):
        name = text.strip().lower()
        # A star stands for the columns that there are without the option, so that others can be added to them.
        new = list(COLUMNS) if name == "*" else [by_lower_case.get(name, "")]
        if "" in new or not set(new).isdisjoint(columns):
            raise BadOption(
                f"columns takes * and some of {', '.join(ALL_COLUMNS)}, each once, not {given['columns']!r}"
            )
        columns += new
    if with_headers and HEADERS not in columns:
        columns.append(HEADERS)
    return tuple(columns)
