"""Filters that Spark hands to the source: what they say of offsets, partitions and times, and of single rows.

Offsets, partitions and topics decide at planning what is read at all. Times pass over whole segments and frames by
their headers. What then is left, and keys, for which the log has no index, is looked at in the task: rows that do not
match are dropped before they cross to Spark.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from millstream.model.frame import Attributes, Magic
from millstream.spark.read.frames import Frame

__all__ = ["NOTHING_PUSHED", "Condition", "Pushed", "pushed"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "EqualTo": lambda one, other: bool(one == other),
    "GreaterThan": lambda one, other: bool(one > other),
    "GreaterThanOrEqual": lambda one, other: bool(one >= other),
    "LessThan": lambda one, other: bool(one < other),
    "LessThanOrEqual": lambda one, other: bool(one <= other),
    "In": lambda one, others: one in others,
    "StringStartsWith": lambda one, start: bool(one.startswith(start)),
    "IsNotNull": lambda one, _: one is not None,
    "IsNull": lambda one, _: one is None,
}
_NUMBERS: Final = frozenset({"partition", "offset", "timestampType", "timestamp"})
_BYTES: Final = frozenset({"key", "value"})
_ORDERED: Final = frozenset({"GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"})


@dataclass(frozen=True, slots=True)
class Condition:
    """What one column of every row must be.

    Args:
        column: its name.
        test: the name of the test, as Spark's filter has it.
        value: what the column is held against; microseconds since 1970 for a time, a tuple for In.
    """

    column: str
    test: str
    value: Any = None

    def is_met(self, value: Any) -> bool:
        """Whether a value meets it."""
        return _COMPARISONS[self.test](value, self.value)

    @property
    def low(self) -> int | None:
        """The least number that meets it; None if it says nothing about that."""
        match self.test:
            case "EqualTo" | "GreaterThanOrEqual":
                return int(self.value)
            case "GreaterThan":
                return int(self.value) + 1
            case "In":
                return min(self.value, default=0)
        return None

    @property
    def high(self) -> int | None:
        """The largest number that meets it; None if it says nothing about that."""
        match self.test:
            case "EqualTo" | "LessThanOrEqual":
                return int(self.value)
            case "LessThan":
                return int(self.value) - 1
            case "In":
                return max(self.value, default=-1)
        return None


@dataclass(frozen=True, slots=True)
class Pushed:
    """All that rows must meet."""

    conditions: tuple[Condition, ...] = ()

    def wants(self, topic: str, partition: int) -> bool:
        """Whether any row of a partition can meet it."""
        known = {"topic": topic, "partition": partition}
        return all(each.is_met(known[each.column]) for each in self.conditions if each.column in known)

    def bounds(self, column: str) -> tuple[int | None, int | None]:
        """The least and the largest number that a column can have; None for no bound."""
        lows = [each.low for each in self.conditions if each.column == column]
        highs = [each.high for each in self.conditions if each.column == column]
        return (
            max((low for low in lows if low is not None), default=None),
            min((high for high in highs if high is not None), default=None),
        )

    @property
    def since_ms(self) -> int | None:
        """The time before which no record is wanted; None if times do not matter."""
        since_us = self.bounds("timestamp")[0]
        return None if since_us is None else since_us // 1000

    def rows(self, batch: Any) -> Any:
        """Those rows of an Arrow record batch that meet it."""
        import pyarrow.compute as pc

        mask = None
        for each in self.conditions:
            if each.column in {"topic", "partition"}:
                continue  # decided when the task was planned
            met = _mask(batch.column(each.column), each)
            mask = met if mask is None else pc.and_(mask, met)
        return batch if mask is None else batch.filter(mask)

    def frames(self, found: list[Frame]) -> list[Frame]:
        """Those frames that can have records of the right time, as far as their headers tell.

        Only Kafka's own frames are passed over: those of other protocols have the time at which they came, and an
        application may have given their records any other.
        """
        since, until = self.bounds("timestamp")
        if since is None and until is None:
            return found
        return [frame for frame in found if _may_hold(frame, since, until)]


NOTHING_PUSHED: Final = Pushed()


def _may_hold(frame: Frame, since_us: int | None, until_us: int | None) -> bool:
    """Whether a frame can have records from one time to another."""
    header = frame.header
    if header.magic != Magic.KAFKA_V2:
        return True
    if since_us is not None and header.max_timestamp * 1000 < since_us:
        return False
    is_append_time = bool(header.attributes & Attributes.LOG_APPEND_TIME)
    return not (is_append_time and until_us is not None and header.max_timestamp * 1000 > until_us)


def pushed(filters: Iterable[Any]) -> tuple[Pushed, list[Any]]:
    """Sort filters of Spark's.

    Args:
        filters: of pyspark.sql.datasource.

    Returns:
        What rows must meet, and the filters that are left to Spark.
    """
    conditions, left = [], []
    for each in filters:
        condition = _condition(each)
        if condition is None:
            left.append(each)
        else:
            conditions.append(condition)
    return Pushed(tuple(conditions)), left


def _condition(each: Any) -> Condition | None:
    test = type(each).__name__
    column = ".".join(getattr(each, "attribute", ()))
    if test in {"IsNull", "IsNotNull"}:
        # Only keys and values can be null.
        return Condition(column, test) if column in _BYTES else None
    if test not in _COMPARISONS:
        return None
    raw = getattr(each, "value", None)
    values = [value for value in raw if value is not None] if test == "In" and raw is not None else [raw]
    if column in _NUMBERS and test != "StringStartsWith":
        read = [_number(value) for value in values]
    elif column in _BYTES and test in {"EqualTo", "In"}:
        read = [bytes(value) if isinstance(value, bytes | bytearray) else None for value in values]
    elif column == "topic" and test not in _ORDERED:
        read = [value if isinstance(value, str) else None for value in values]
    else:
        return None
    if any(value is None for value in read):
        return None
    return Condition(column, test, tuple(read) if test == "In" else read[0])


def _number(value: Any) -> Any:
    """A whole number, microseconds for a time; None for anything else."""
    if isinstance(value, datetime):
        return None if value.tzinfo is None else (value - _EPOCH) // _MICROSECOND
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _mask(column: Any, condition: Condition) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if condition.test in {"IsNull", "IsNotNull"}:
        return pc.is_null(column) if condition.test == "IsNull" else pc.is_valid(column)
    kind = pa.int64() if condition.column in _NUMBERS else column.type
    if condition.test == "In":
        return pc.is_in(column.cast(kind), value_set=pa.array(condition.value, kind))
    function = {
        "EqualTo": "equal",
        "GreaterThan": "greater",
        "GreaterThanOrEqual": "greater_equal",
        "LessThan": "less",
        "LessThanOrEqual": "less_equal",
    }[condition.test]
    return pc.call_function(function, [column.cast(kind), pa.scalar(condition.value, kind)])
