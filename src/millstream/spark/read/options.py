"""The options of the source, named as those of Spark's own Kafka source."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from millstream.spark.errors import BadOption
from millstream.spark.read.schema import ALL_COLUMNS, COLUMNS, HEADERS

__all__ = ["Direct", "ReadOptions", "StartingPoint"]

StartingPoint = Literal["earliest", "latest"] | Mapping[str, Mapping[int, int]]
"""Where to begin or end: everywhere alike, or an offset by topic and partition (-2 for earliest, -1 for latest)."""

_EARLIEST: Final = -2
_LATEST: Final = -1
_NAMES: Final = (
    "kafka.bootstrap.servers",
    "subscribe",
    "startingOffsets",
    "endingOffsets",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "includeHeaders",
    "columns",
    "direct",
)


class Direct(StrEnum):
    """Whether tasks read segment files."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What to read and how.

    Args:
        servers: HOST:PORT, comma-separated (`kafka.bootstrap.servers`).
        topics: names of the topics, at least one (`subscribe`).
        start: where to begin (`startingOffsets`); None for the default, which is earliest for a batch and latest
            for a stream.
        end: where a batch ends (`endingOffsets`).
        max_offsets_per_trigger: records of one micro-batch at most; None for no limit.
        min_partitions: partitions are split until there are at least so many tasks; None for one task each.
        fails_on_data_loss: whether records that are gone are an error (`failOnDataLoss`).
        columns: which columns, in which order (`columns`, `includeHeaders`).
        direct: whether segment files are read where the broker's data directory is reachable.
    """

    servers: str
    topics: tuple[str, ...]
    start: StartingPoint | None
    end: StartingPoint
    max_offsets_per_trigger: int | None
    min_partitions: int | None
    fails_on_data_loss: bool
    columns: tuple[str, ...]
    direct: Direct

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "ReadOptions":
        """Read the options that were given to Spark; names count without case.

        Raises:
            BadOption: the first that is missing, unknown or makes no sense.
        """
        known = {name.lower(): name for name in _NAMES}
        given: dict[str, str] = {}
        for key, value in options.items():
            name = known.get(key.lower())
            if name is None:
                raise BadOption(f"there is no option {key!r}; there are {', '.join(_NAMES)}")
            given[name] = value.strip()
        servers = _required(given, "kafka.bootstrap.servers", "HOST:PORT of a broker")
        for server in servers.split(","):
            host, _, port = server.strip().rpartition(":")
            if not host or not port.isdecimal() or int(port) > 65535:
                raise BadOption(f"kafka.bootstrap.servers takes HOST:PORT, not {server.strip()!r}")
        topics = tuple(filter(None, (name.strip() for name in _required(given, "subscribe", "a topic").split(","))))
        if not topics or len(set(topics)) < len(topics):
            raise BadOption(f"subscribe takes topics separated by commas, each once, not {given['subscribe']!r}")
        direct = given.get("direct", Direct.AUTO).lower()
        if direct not in set(Direct):
            raise BadOption(f"direct is one of {', '.join(Direct)}, not {given['direct']!r}")
        starting, ending = given.get("startingOffsets"), given.get("endingOffsets", "latest")
        return cls(
            servers=servers,
            topics=topics,
            start=None if starting is None else _point("startingOffsets", starting, topics),
            end=_point("endingOffsets", ending, topics),
            max_offsets_per_trigger=_positive(given, "maxOffsetsPerTrigger"),
            min_partitions=_positive(given, "minPartitions"),
            fails_on_data_loss=_boolean(given, "failOnDataLoss", default=True),
            columns=_columns(given),
            direct=Direct(direct),
        )

    def for_batch(self) -> "ReadOptions":
        """Check that a batch can be read with them.

        Raises:
            BadOption: a batch cannot begin at the latest offset, nor end at the earliest.
        """
        if self.start == "latest" or _holds(self.start, _LATEST):
            raise BadOption("startingOffsets: a batch cannot begin at the latest offset; take earliest or offsets")
        if self.end == "earliest" or _holds(self.end, _EARLIEST):
            raise BadOption("endingOffsets: a batch cannot end at the earliest offset; take latest or offsets")
        if self.max_offsets_per_trigger is not None:
            raise BadOption("maxOffsetsPerTrigger is for streams; a batch is bounded by endingOffsets")
        return self

    def for_stream(self) -> "ReadOptions":
        """Check that a stream can be read with them.

        Raises:
            BadOption: a stream has no end.
        """
        if self.end != "latest":
            raise BadOption("endingOffsets is for batches; a stream has no end (see the trigger availableNow)")
        return self


def _required(given: Mapping[str, str], name: str, what: str) -> str:
    if not given.get(name):
        raise BadOption(f"the option {name} is missing: {what}")
    return given[name]


def _positive(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise BadOption(f"{name} takes a whole number above 0, not {text!r}")
    return int(text)


def _boolean(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name, str(default)).lower()
    if text not in {"true", "false"}:
        raise BadOption(f"{name} is true or false, not {given[name]!r}")
    return text == "true"


def _columns(given: Mapping[str, str]) -> tuple[str, ...]:
    with_headers = _boolean(given, "includeHeaders", default=False)
    if "columns" not in given:
        return ALL_COLUMNS if with_headers else COLUMNS
    by_lower_case = {name.lower(): name for name in ALL_COLUMNS}
    columns = []
    for text in given["columns"].split(","):
        name = by_lower_case.get(text.strip().lower())
        if name is None or name in columns:
            raise BadOption(f"columns takes some of {', '.join(ALL_COLUMNS)}, each once, not {given['columns']!r}")
        columns.append(name)
    if with_headers and HEADERS not in columns:
        columns.append(HEADERS)
    return tuple(columns)


def _point(name: str, text: str, topics: tuple[str, ...]) -> StartingPoint:
    """Read earliest, latest, or JSON such as {"orders": {"0": 23, "1": -2}}."""
    if text.lower() == "earliest":
        return "earliest"
    if text.lower() == "latest":
        return "latest"
    try:
        read = json.loads(text)
        offsets = {str(topic): {int(part): int(at) for part, at in parts.items()} for topic, parts in read.items()}
    except (ValueError, AttributeError, TypeError):
        raise BadOption(
            f'{name} takes earliest, latest or JSON such as {{"topic": {{"0": 23}}}}, not {text!r}'
        ) from None
    if set(offsets) != set(topics):
        raise BadOption(f"{name} must name the topics of subscribe, all of them and no others: {', '.join(topics)}")
    if any(at < _EARLIEST for parts in offsets.values() for at in parts.values()):
        raise BadOption(f"{name}: an offset is 0 or more, -1 for the latest or -2 for the earliest")
    return offsets


def _holds(point: StartingPoint | None, offset: int) -> bool:
    return isinstance(point, Mapping) and any(offset in parts.values() for parts in point.values())
