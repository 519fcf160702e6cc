"""Readers driven as Spark drives them, without Spark."""

from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from millstream.spark.read.options import ReadOptions
from millstream.spark.read.readers import BatchReader, PushingReader, StreamReader

__all__ = ["batch_rows", "pushing_reader", "stream_reader", "stream_rows"]

_TYPES: dict[str, Any] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
    "protocol": StringType(),
    "codec": StringType(),
    "producerId": LongType(),
    "producerEpoch": IntegerType(),
}


def _schema(options: ReadOptions) -> Any:
    return StructType([StructField(name, _TYPES[name]) for name in options.columns])


def batch_rows(servers: str, **given: Any) -> list[dict[str, Any]]:
    """What a batch query reads."""
    options = ReadOptions.of({"kafka.bootstrap.servers": servers, **_texts(given)}).for_batch()
    return rows_of(BatchReader(options, _schema(options)))


def pushing_reader(servers: str, **given: Any) -> PushingReader:
    """A reader of a batch to which filters can be pushed."""
    options = ReadOptions.of({"kafka.bootstrap.servers": servers, **_texts(given)}).for_batch()
    return PushingReader(options, _schema(options))


def rows_of(reader: BatchReader) -> list[dict[str, Any]]:
    """All that a reader of a batch reads, in the order of its tasks."""
    return _rows(reader, reader.partitions())


def stream_reader(servers: str, **given: Any) -> StreamReader:
    """A reader of a stream."""
    options = ReadOptions.of({"kafka.bootstrap.servers": servers, **_texts(given)}).for_stream()
    return StreamReader(options, _schema(options))


def stream_rows(reader: StreamReader, start: Any, end: Any) -> list[dict[str, Any]]:
    """What a micro-batch reads."""
    return _rows(reader, reader.partitions(start, end))


def _rows(reader: Any, tasks: list[Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for task in tasks:
        batches: list[pa.RecordBatch] = list(reader.read(task))
        rows += [row for batch in batches for row in batch.to_pylist()]
    return rows


def _texts(given: dict[str, Any]) -> dict[str, str]:
    """Options as Spark hands them over: all of them text; dots in names are written as __."""
    return {name.replace("__", "."): str(value) for name, value in given.items()}
