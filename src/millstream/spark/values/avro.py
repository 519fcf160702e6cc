"""Avro: values decoded by the schema that they were written with, as columns of the reader's.

Values that were all written by one schema without arrays, maps and the like are decoded column by column
(`avro_columns`). The others fastavro reads, value by value; it is given the writer's schema alone, because what it
skips when it resolves schemas itself it does not bound: a few bytes that claim 2^60 items would keep it busy for
ever.

A value whose bytes do not end where its schema says is none of that schema: it is not decoded.
"""

import contextlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from fastavro.schema import SchemaParseException, UnknownType

from millstream.spark.errors import BadSchema
from millstream.spark.values.arrow_decoder import Result, decode_batch
from millstream.spark.values.avro_columns import Columns, Unreadable, columns_of
from millstream.spark.values.avro_types import Resolution, column_type, resolution
from millstream.spark.values.framing import CONFLUENT_BYTES, Framing, Undecodable

__all__ = ["AvroDecoder", "SchemaById", "parsed_avro"]

SchemaById = Callable[[int], str]
"""Gives the definition of a schema by its number. Raises BadSchema if there is none."""

_JSON: Final = ("{", "[", '"')
_NOT_A_SCHEMA: Final = (
    SchemaParseException,
    UnknownType,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,
)
_REFUSED_MAX: Final = 1000
"""Numbers of schemas known not to be there: records may name any, and each costs a question to the broker."""
_DAMAGED: Final = (EOFError, LookupError, ValueError, OverflowError)
"""What fastavro raises at bytes that are not of the schema."""


def parsed_avro(definition: str | Mapping[str, Any] | Sequence[Any]) -> tuple[Any, dict[str, Any]]:
    """Parse an Avro schema.

    Args:
        definition: its JSON, as text or as what that text stands for; or the name of a primitive type.

    Returns:
        The schema with all names in full, and its named types by name.

    Raises:
        BadSchema: it is none.
    """
    names: dict[str, Any] = {}
    try:
        schema: Any = definition
        if isinstance(definition, str) and definition.lstrip()[:1] in _JSON:
            schema = json.loads(definition)
        # fastavro hands back what it knows as parsed already, with names that are not in this table.
        return fastavro.parse_schema(schema, names, _force=True), names
    except _NOT_A_SCHEMA as error:
        raise BadSchema(f"the definition is not an Avro schema: {error}") from None


@dataclass
class AvroDecoder:
    """Decodes Avro.

    Args:
        reader: definition of the schema whose columns are wanted.
        writers: gives the schemas that values were written with; None if all were written with the reader's.
        unnumbered: number of the schema of values that do not say theirs; None if that is an error.
    """

    reader: str
    writers: SchemaById | None = None
    unnumbered: int | None = None
    _known: dict[int | None, "_Writer"] = field(default_factory=dict, repr=False)
    _refused: dict[int | None, str] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # Plans hold functions; each worker makes its own.
        return {**self.__dict__, "_known": {}, "_refused": {}}

    @property
    def type(self) -> Any:
        """The Arrow type of the columns."""
        return column_type(*parsed_avro(self.reader))

    def parse(self, value: bytes, schema_id: int | None) -> object:
        """Decode one value; see `arrow_decoder.Decoder`."""
        number = None if self.writers is None else self.unnumbered if schema_id is None else schema_id
        writer = self._known.get(number) or self._learn(number)
        stream = io.BytesIO(value)
        try:
            decoded = fastavro.schemaless_reader(stream, writer.schema, None)
        except _DAMAGED as error:
            raise Undecodable(f"it is not of its Avro schema{_detail(error)}") from None
        if stream.tell() != len(value):
            raise Undecodable(f"it goes on for {len(value) - stream.tell()} bytes behind what its Avro schema says")
        return writer, decoded

    def convert(self, parsed: Sequence[object]) -> Any:
        """Make an array of decoded values; see `arrow_decoder.Decoder`."""
        writers = {id(one[0]): one[0] for one in parsed if isinstance(one, tuple)}
        if len(writers) <= 1:
            writer = next(iter(writers.values()), None)
            values = [one[1] if isinstance(one, tuple) else None for one in parsed]
            return pa.nulls(len(values), self.type) if writer is None else writer.array(values)
        # Each writer's values become an array of their own, and the rows are put in order again.
        parts, places = [], []
        for key, writer in writers.items():
            rows = [row for row, one in enumerate(parsed) if isinstance(one, tuple) and id(one[0]) == key]
            parts.append(writer.array([parsed[row][1] for row in rows]))  # type: ignore[index]  # they are tuples
            places += rows
        order: list[int | None] = [None] * len(parsed)
        for index, row in enumerate(places):
            order[row] = index
        return pa.concat_arrays(parts).take(pa.array(order, pa.int64()))

    def decode_columns(self, values: Any, versions: Any, framing: Framing) -> Result | None:
        """Decode a batch column by column, if all of it was written by one schema that can be read so.

        Args:
            values: a binary array.
            versions: a binary array, the versions of the schemas of values, or null.
            framing: what stands before each value.

        Returns:
            None if it has to be decoded value by value.
        """
        try:
            number = self._common_number(values, versions, framing)
            writer = self._known.get(number) or self._learn(number)
        except (LookupError, Undecodable):
            return None
        if writer.columns is None:
            return None
        try:
            array, is_damaged = writer.columns.decode(values, CONFLUENT_BYTES if framing is Framing.CONFLUENT else 0)
            array = writer.resolve(array)
        except (pa.ArrowException, ValueError):
            return None  # what it is about is found out value by value
        reasons = pa.nulls(len(values), pa.string())
        if not is_damaged.any():
            return Result(array, reasons)
        rows = np.flatnonzero(is_damaged)
        exact = decode_batch(self, values.take(rows).to_pylist(), framing, [number] * len(rows))
        order = np.arange(len(values), dtype=np.int64)
        order[rows] = len(values) + np.arange(len(rows), dtype=np.int64)
        return Result(
            *(pa.concat_arrays(pair).take(pa.array(order)) for pair in zip((array, reasons), exact, strict=True))
        )

    def _common_number(self, values: Any, versions: Any, framing: Framing) -> int | None:
        """The number of the schema of all values. Raises LookupError if they have several, or do not tell."""
        if framing is Framing.CONFLUENT:
            heads = pc.unique(pc.binary_slice(values.drop_null(), 0, CONFLUENT_BYTES)).to_pylist()
            if len(heads) != 1 or len(heads[0]) < CONFLUENT_BYTES or heads[0][0]:
                raise LookupError
            return None if self.writers is None else int.from_bytes(heads[0][1:], "big")
        if self.writers is None:
            return None
        told = pc.unique(versions).to_pylist()
        if len(told) != 1:
            raise LookupError
        return self.unnumbered if told[0] is None else int.from_bytes(told[0], "big", signed=True)

    def _learn(self, number: int | None) -> "_Writer":
        if self.writers is not None and number is None:
            raise Undecodable("it does not say by which schema it was written, and there are several")
        if number in self._refused:
            raise Undecodable(self._refused[number])
        try:
            text = self.reader if self.writers is None or number is None else self.writers(number)
            writer = _Writer(text, self.reader)
        except BadSchema as error:
            if len(self._refused) >= _REFUSED_MAX:
                self._refused.clear()
            self._refused[number] = str(error)
            raise Undecodable(str(error)) from None
        self._known[number] = writer
        return writer


class _Writer:
    """Values that were written by one schema, as columns of another."""

    def __init__(self, definition: str, reader: str) -> None:
        schema, names = parsed_avro(definition)
        _refuse_items_without_bytes(schema, names)
        _refuse_recursion(schema, names, ())
        plan: Resolution = resolution(schema, names, *parsed_avro(reader))
        self._stored, self.resolve = plan
        self.columns: Columns | None = None
        with contextlib.suppress(Unreadable):
            self.columns = columns_of(schema, names, plan.stored)
        self.schema = fastavro.parse_schema(_bare(schema), _force=True)

    def array(self, values: Sequence[object]) -> Any:
        """Make an array of what fastavro has decoded."""
        return self.resolve(pa.array(values, self._stored))


def _bare(schema: Any) -> Any:
    """A schema without logical types but decimals: numbers are made times a column at once."""
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    bare = {key: value for key, value in schema.items() if not key.startswith("__")}
    if bare.get("logicalType") != "decimal":
        bare.pop("logicalType", None)
    for key in bare.keys() & {"type", "items", "values"}:
        bare[key] = _bare(bare[key])
    if "fields" in bare:
        bare["fields"] = [{**one, "type": _bare(one["type"])} for one in bare["fields"]]
    return bare


def _refuse_items_without_bytes(schema: Any, names: Mapping[str, Any]) -> None:
    """Refuse arrays whose items take no bytes: a few bytes may claim any number of them. Raises BadSchema."""
    if isinstance(schema, list):
        for branch in schema:
            _refuse_items_without_bytes(branch, names)
    elif isinstance(schema, dict):
        if schema["type"] == "array" and _is_empty(schema["items"], names, ()):
            raise BadSchema("the Avro schema has an array whose items take no bytes, which could be any number")
        parts = [one["type"] for one in schema.get("fields", ())]
        parts += [schema[key] for key in ("type", "items", "values") if isinstance(schema.get(key), dict | list)]
        for part in parts:
            _refuse_items_without_bytes(part, names)


def _refuse_recursion(schema: Any, names: Mapping[str, Any], within: tuple[str, ...]) -> None:
    """Refuse types that contain themselves, also where no column is made of them: bytes could say how deep.

    Raises:
        BadSchema: there is one.
    """
    if isinstance(schema, str) and schema in names:
        if schema in within:
            raise BadSchema(f"the Avro type {schema} contains itself, which has no column type")
        _refuse_recursion(names[schema], names, within)
    elif isinstance(schema, list):
        for branch in schema:
            _refuse_recursion(branch, names, within)
    elif isinstance(schema, dict):
        inner = (*within, schema["name"]) if "fields" in schema else within
        for one in schema.get("fields", ()):
            _refuse_recursion(one["type"], names, inner)
        for key in ("type", "items", "values"):
            if isinstance(schema.get(key), dict | list) or schema.get(key) in names:
                _refuse_recursion(schema[key], names, inner)


def _is_empty(schema: Any, names: Mapping[str, Any], within: tuple[str, ...]) -> bool:
    """Whether a value of a type may take no bytes."""
    if isinstance(schema, str):
        if schema in names and schema not in within:
            return _is_empty(names[schema], names, within)
        return schema == "null"
    if isinstance(schema, list):
        return False
    kind = schema["type"]
    if kind in {"record", "error"}:
        inner = (*within, schema["name"])
        return all(_is_empty(one["type"], names, inner) for one in schema["fields"])
    if kind == "fixed":
        return bool(schema["size"] == 0)
    return kind not in {"array", "map", "enum"} and _is_empty(kind, names, within)


def _detail(error: BaseException) -> str:
    text = str(error)
    return f": {text}" if text and "<_io" not in text else ""
