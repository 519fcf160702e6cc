"""Decoding keys and values of records to typed columns, for tables and streams alike."""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millstream.spark.errors import BadOption, BadSchema
from millstream.spark.values.columns import Parsed, without_framing
from millstream.spark.values.framing import Framing
from millstream.spark.values.inline_values import inline_part
from millstream.spark.values.key_value import Part
from millstream.spark.values.registry import Registered
from millstream.spark.values.schemas import arrow_decoder_of, struct_of

__all__ = ["QUARANTINE_COLUMNS", "Decoded", "Format", "Mode", "decode"]

QUARANTINE_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "column", "reason", "raw")
"""Columns of the rows that did not decode."""

_PLACE: Final = ("topic", "partition", "offset", "timestamp")
_VERSION_HEADER: Final = "pulsar.schema-version"
"""Header of a record that tells by which version of its topic's schema a Pulsar client has written it."""
_VALUE: Final = "__millstream_value"
_REASON: Final = "__millstream_reason"
_DECODED: Final = "__millstream_decoded"


class Format(StrEnum):
    """How values are encoded."""

    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    CSV = "csv"
    TEXT = "text"
    BYTES = "bytes"


class Mode(StrEnum):
    """What becomes of a row that does not decode."""

    QUARANTINE = "quarantine"
    NULL = "null"
    FAILFAST = "failfast"


class Decoded(NamedTuple):
    """Two tables, or two streams, of the same rows.

    Args:
        good: the rows that decoded: the columns of the source, the decoded one in place of the raw one. With
            mode="null" also those that did not, their value null.
        bad: the rows that did not decode, with QUARANTINE_COLUMNS; none with mode="failfast".
    """

    good: Any
    bad: Any


def decode(
    df: Any,
    *,
    format: str,  # noqa: A002 - what Spark calls it
    schema: Any = None,
    column: str = "value",
    mode: str = "quarantine",
    framing: str = "none",
    message: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Decoded:
    """Decode a column of records.

    A null stays null: it is a record that says a key is gone, and decodes in every format.

    Args:
        df: a table or stream with the columns of the source, at least topic, partition, offset, timestamp and the one
            to decode. Its column headers, if it has one, tells the versions of registered schemas.
        format: json, avro, protobuf, csv, text or bytes.
        schema: json, csv: a StructType, or DDL as "id BIGINT, name STRING". avro: the JSON of an Avro schema, or a
            dict of such by schema id, of which the last is that of the columns. protobuf: a FileDescriptorSet as
            bytes, the path of a file with one, or a generated message class. json, avro, protobuf: also a
            `registered` schema. text: the charset, UTF-8 if not given. bytes: a type such as BIGINT for numbers in
            big-endian order; binary if not given.
        column: value or key. A registered schema of keys and values gives each its own, also where Pulsar's clients
            have written both into the value: decode the key first then.
        mode: quarantine, null or failfast: what becomes of a row that does not decode.
        framing: none, or confluent for the five bytes that Confluent's serializers put before a value.
        message: full name of the Protobuf message, for a schema that is a FileDescriptorSet.
        options: json, csv: further options of from_json or from_csv.

    Returns:
        The good rows and the bad ones. The column becomes a struct for all formats but text and bytes:
        `good.select("value.*", "offset")`.

    Raises:
        BadOption: an argument makes no sense.
        BadSchema: the schema is none, is not registered, or has no columns.
        BrokerUnreachable: a registered schema cannot be asked for.
    """
    how, what = _one_of("format", Format, format), _one_of("mode", Mode, mode)
    before = _one_of("framing", Framing, framing)
    _check(df, how, column, options, before)
    _check_versions(df, how, schema)
    source = _source(schema, column)
    parsed = _parsed(df, how, source, before, message, options or {})
    rows = df
    if parsed.once:
        # A generator: Spark does not merge what follows with it, which would decode everything many times.
        rows = df.select("*", F.inline(F.array(F.struct(*(one.alias(name) for name, one in parsed.once.items())))))
    rows = rows.select("*", parsed.value.alias(_VALUE), parsed.reason.alias(_REASON))
    is_bad = F.col(_REASON).isNotNull()
    match what:
        case Mode.FAILFAST:
            value = F.when(~is_bad, F.col(_VALUE)).otherwise(F.raise_error(_complaint(column)))
        case Mode.NULL:
            value = F.when(~is_bad, F.col(_VALUE))
        case _:
            value = F.col(_VALUE)
    good = rows if what is not Mode.QUARANTINE else rows.where(~is_bad)
    columns = [value.alias(name) if name == column else F.col(_quoted(name)) for name in df.columns]
    bad = rows.where(is_bad) if what is not Mode.FAILFAST else rows.where(F.lit(False))
    return Decoded(
        good.select(*columns),
        bad.select(*_PLACE, F.lit(column).alias("column"), F.col(_REASON).alias("reason"), source.raw.alias("raw")),
    )


class _Source(NamedTuple):
    """What is decoded.

    Args:
        schema: by which.
        raw: the column that it stands in.
        content: it itself.
    """

    schema: Any
    raw: Any
    content: Parsed


def _source(schema: Any, column: str) -> _Source:
    raw = F.col(column).cast("binary")
    if isinstance(schema, Registered) and column in set(Part):
        schema = replace(schema, part=Part(column))
        if schema.is_inline():
            raw = F.col(Part.VALUE).cast("binary")
            return _Source(schema, raw, inline_part(raw, Part(column)))
    return _Source(schema, raw, Parsed(raw, F.lit(None).cast("string")))


def _parsed(
    df: Any, how: Format, source: _Source, framing: Framing, message: str | None, options: Mapping[str, str]
) -> Parsed:
    decoder = arrow_decoder_of(how.value, source.schema, message, framing)
    if decoder is not None:
        from pyspark.sql.functions import arrow_udf
        from pyspark.sql.pandas.types import from_arrow_type

        kind = from_arrow_type(decoder.type, prefer_timestamp_ntz=True)
        result = StructType().add("value", kind).add("reason", "string")
        both = arrow_udf(decoder.function, result)(source.content.value, _version(df))
        found = F.col(_DECODED)
        return Parsed(
            found.getField("value"), F.coalesce(source.content.reason, found.getField("reason")), {_DECODED: both}
        )
    content = without_framing(source.content.value, framing)
    content = Parsed(content.value, F.coalesce(source.content.reason, content.reason))
    match how:
        case Format.JSON:
            from millstream.spark.values.json_values import parse_json

            parsed = parse_json(content.value, struct_of(how.value, source.schema), options)
        case Format.CSV:
            from millstream.spark.values.text_values import parse_csv

            parsed = parse_csv(content.value, struct_of(how.value, source.schema), options)
        case Format.TEXT:
            from millstream.spark.values.text_values import parse_text

            parsed = parse_text(content.value)
        case _:
            return content
    return Parsed(parsed.value, F.coalesce(content.reason, parsed.reason), parsed.once)


def _version(df: Any) -> Any:
    """The version of the schema that a record's headers tell; null if they do not."""
    if "headers" not in df.columns:
        return F.lit(None).cast("binary")
    told = F.filter("headers", lambda header: header.getField("key") == _VERSION_HEADER)
    return F.get(told, F.lit(0)).getField("value")


def _complaint(column: str) -> Any:
    return F.concat(
        F.lit("the topic '"), F.col("topic"), F.lit("' has at partition "), F.col("partition"), F.lit(" offset "),
        F.col("offset"), F.lit(f" a {column} that does not decode: "), F.col(_REASON),
        F.lit("; take mode='quarantine' to go on without it"),
    )  # fmt: skip


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _one_of(name: str, kind: Any, given: str) -> Any:
    try:
        return kind(given.lower())
    except (ValueError, AttributeError):
        raise BadOption(f"{name} is one of {', '.join(kind)}, not {given!r}") from None


def _check(df: Any, how: Format, column: str, options: Mapping[str, str] | None, framing: Framing) -> None:
    missing = [name for name in (*_PLACE, column) if name not in df.columns]
    if missing:
        raise BadOption(f"the rows have no column {missing[0]!r}; decode() takes those of the source")
    if options and how not in {Format.JSON, Format.CSV}:
        raise BadOption(f"options are for the formats json and csv, not for {how}")
    if framing is not Framing.NONE and how in {Format.CSV, Format.TEXT, Format.BYTES}:
        raise BadSchema(f"framing='confluent' is for json, avro and protobuf, not for {how}")


def _check_versions(df: Any, how: Format, schema: Any) -> None:
    """Whoever has not asked for the headers is not told by which version a value was written: it would be a guess."""
    is_told = "headers" in df.columns or getattr(schema, "unversioned", None) is not None
    if how is Format.AVRO and isinstance(schema, Registered) and not is_told:
        raise BadOption(
            "the versions of registered schemas are told in the column headers: set the option includeHeaders of the "
            "source, or name the one version that all values are of with unversioned="
        )
