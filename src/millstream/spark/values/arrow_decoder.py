"""Decoding in Python, batch by batch: from Arrow's binary arrays to typed ones, for the formats that Spark's own
functions do not read.

A decoder turns each value into a plain Python object first, and all objects of a batch into one Arrow array. What
cannot be decoded is known one by one then. What cannot be converted (a time beyond what Spark counts, say) is known
of a whole batch only, which is halved until the values are found that it is about.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from millstream.spark.values.framing import Framing, Undecodable, unframed

__all__ = ["ArrowDecoder", "ColumnDecoder", "Decoder", "Result", "decode_batch"]


class Result(NamedTuple):
    """What became of some values.

    Args:
        values: an array of the decoder's type, null where the value is null or could not be decoded.
        reasons: why not, a string array, null elsewhere.
    """

    values: Any
    reasons: Any


class Decoder(Protocol):
    """Decodes values of one format; made on the driver, pickled, used in Python workers."""

    @property
    def type(self) -> Any:
        """The pyarrow.DataType of what values become."""

    def parse(self, value: bytes, schema_id: int | None) -> object:
        """Decode one value.

        Args:
            value: its bytes, without their framing.
            schema_id: number of the schema that it was written with, if the record says so.

        Raises:
            Undecodable: as it says.
        """

    def convert(self, parsed: Sequence[object]) -> Any:
        """Make an array of `type` of what `parse` gave, None for nulls.

        Raises:
            pyarrow.ArrowException, ValueError, TypeError, OverflowError: at least one cannot be converted.
        """


@runtime_checkable
class ColumnDecoder(Protocol):
    """A decoder that may decode a batch without looking at its values one by one."""

    def decode_columns(self, values: Any, versions: Any, framing: Framing) -> Result | None:
        """Decode a batch; None if that must be done value by value, with `parse` and `convert`."""


class ArrowDecoder:
    """A function from columns to a column of structs (value, reason), to be made an Arrow UDF of.

    Args:
        decoder: of the format.
        framing: what stands before each value.
    """

    def __init__(self, decoder: Decoder, framing: Framing) -> None:
        self._decoder = decoder
        self._framing = framing

    def __call__(self, values: Any, versions: Any) -> Any:
        """Decode a batch.

        Args:
            values: a binary array.
            versions: a binary array: the schema versions that the records' headers name, 8 bytes each, or null.
        """
        result = None
        if isinstance(self._decoder, ColumnDecoder):
            result = self._decoder.decode_columns(values, versions, self._framing)
        if result is None:
            numbers = [_number(version) for version in versions.to_pylist()]
            result = decode_batch(self._decoder, values.to_pylist(), self._framing, numbers)
        return pa.StructArray.from_arrays([result.values, result.reasons], ["value", "reason"])


def decode_batch(
    decoder: Decoder, values: Sequence[bytes | None], framing: Framing, versions: Sequence[int | None]
) -> Result:
    """Decode values.

    Args:
        decoder, framing: as of `ArrowDecoder`.
        values: None for nulls, which stay null.
        versions: of the schema of each.
    """
    parsed: list[object] = []
    reasons: list[str | None] = [None] * len(values)
    parse = decoder.parse
    for row, value in enumerate(values):
        if value is None:
            parsed.append(None)
            continue
        try:
            if framing is Framing.NONE:
                parsed.append(parse(value, versions[row]))
            else:
                schema_id, content = unframed(value)
                parsed.append(parse(content, schema_id))
        except Undecodable as error:
            reasons[row] = str(error)
            parsed.append(None)
    arrays = _converted(decoder.convert, parsed, reasons, 0)
    array = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
    return Result(array, pa.array(reasons, pa.string()))


def _converted(
    convert: Callable[[Sequence[object]], Any], parsed: list[object], reasons: list[str | None], first: int
) -> list[Any]:
    try:
        return [convert(parsed)]
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        if len(parsed) == 1:
            reasons[first] = f"it has no place in its column: {error}"
            return [convert([None])]
    half = len(parsed) // 2
    return [
        *_converted(convert, parsed[:half], reasons, first),
        *_converted(convert, parsed[half:], reasons, first + half),
    ]


def _number(version: bytes | None) -> int | None:
    return None if version is None else int.from_bytes(version, "big", signed=True)
