"""Tables of plain Parquet files: `parquet_log` says which files they consist of."""

import json
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from millstream.spark.tables.columns import arrow_schema, spark_schema
from millstream.spark.tables.durable import create_whole
from millstream.spark.tables.files import read_files
from millstream.spark.tables.layout import SCHEMA_PREFIX, partition_directory
from millstream.spark.tables.parquet_log import LogState, ParquetLog, SchemaFile
from millstream.spark.tables.table import Change, Conflict, DataFile, Expiry, State

__all__ = ["ParquetTable"]

_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark keeps its own schema in a Parquet file; it gives back types that Parquet has no name for."""

_LAST_SCHEMA: Final = 999_999


@dataclass(frozen=True, slots=True)
class ParquetTable:
    """A table of Parquet files that a plain `spark.read.parquet` reads.

    The schema is carried by a file without rows whose name sorts first: that is where Spark takes it from.
    """

    root: str
    data_prefix: str = ""

    def load(self) -> State | None:
        """See `Table.load`."""
        from pyspark.sql.types import StructType

        log = ParquetLog(self.root).read()
        if log is None:
            return None
        return State(
            version=log.version,
            schema=arrow_schema(StructType.fromJson(dict(log.schema_file.schema))),
            partition_by=log.schema_file.partition_by,
            ledger=log.ledger.get,
            handle=log,
        )

    def files(self, state: State) -> list[DataFile]:
        """See `Table.files`."""
        log: LogState = state.handle
        return [file for file, _ in log.files.values()]

    def commit(self, state: State | None, change: Change) -> None:
        """See `Table.commit`."""
        log = ParquetLog(self.root)
        if state is None:
            log.replace(None, {}, self._schema_file(change.schema, change.partition_by, 0), {}, {})
            raise Conflict  # The table is there now, without rows: these are the next commit.
        base: LogState = state.handle
        schema = None
        if not change.schema.equals(state.schema):
            schema = self._schema_file(change.schema, state.partition_by, base.version)
        if not change.overwrites and not change.remove:
            log.append(base, change.add, schema, dict(change.ledger))
            return
        going = set(base.files) if change.overwrites else {file.path for file in change.remove}
        if not going <= set(base.files):
            raise Conflict
        now_ms = int(time.time() * 1000)
        files = {path: entry for path, entry in base.files.items() if path not in going}
        log.replace(
            base,
            {**files, **log.dated(change.add)},
            schema or base.schema_file,
            {**base.ledger, **change.ledger},
            {**base.removed, **dict.fromkeys(going, now_ms)},
        )

    def columns_of(self, schema: Any) -> Any:
        """See `Table.columns_of`."""
        return schema

    def check_change(self, old: Any, new: Any) -> None:
        """See `Table.check_change`: Spark reads narrower types of Parquet as wider ones."""

    def partition_path(self, values: tuple[tuple[str, str | None], ...]) -> str:
        """See `Table.partition_path`: as Spark names directories, for it reads the values from there."""
        return partition_directory(values)

    def writes_partition_columns(self) -> bool:
        """See `Table.writes_partition_columns`."""
        return False

    def file_schema(self, schema: Any) -> Any:
        """See `Table.file_schema`."""
        return schema.with_metadata({_SPARK_SCHEMA: spark_schema(schema).json().encode()})

    def source(self, state: State) -> Any:
        """See `Table.source`."""
        return state.schema

    def read(self, source: Any, files: Sequence[DataFile], columns: Sequence[str]) -> Iterator[Any]:
        """See `Table.read`."""
        return read_files(self.root, files, source, columns)

    def expire(self, older_than_ms: int) -> Expiry:
        """See `Table.expire`: of earlier states the log keeps the files that went since, and when they did."""
        log = ParquetLog(self.root)
        while True:
            base = log.read()
            if base is None:
                return Expiry(states=0, released=set(), needed=set())
            kept = {path: at for path, at in base.removed.items() if at >= older_than_ms}
            expiry = Expiry(
                states=len(set(base.removed.values()) - set(kept.values())),
                released=base.removed.keys() - kept.keys(),
                needed={base.schema_file.file.path, *base.files, *kept},
            )
            if not expiry.released:
                return expiry
            try:
                log.replace(base, base.files, base.schema_file, base.ledger, kept)
            except Conflict:
                continue
            return expiry

    def _schema_file(self, schema: Any, partition_by: tuple[str, ...], version: int) -> SchemaFile:
        import pyarrow as pa
        import pyarrow.parquet as pq

        in_files = pa.schema([field for field in schema if field.name not in partition_by])
        content = pa.BufferOutputStream()
        pq.write_table(self.file_schema(in_files).empty_table(), content)
        # Later ones must sort before earlier ones: a table may hold both until the next full listing.
        path = f"{SCHEMA_PREFIX}{_LAST_SCHEMA - version:06d}-{uuid.uuid4().hex}.parquet"
        create_whole(os.path.join(self.root, path), content.getvalue().to_pybytes())
        return SchemaFile(
            file=DataFile(path=path, size_bytes=os.path.getsize(os.path.join(self.root, path)), rows=0),
            schema=json.loads(spark_schema(schema).json()),
            partition_by=partition_by,
            modified_ms=int(time.time() * 1000),
        )
