"""What one task does: it writes its rows to files of its own, which nobody sees until they are published.

The files lie in the directory of the attempt's batch (`layout`), under names that no other attempt takes, and are
flushed to the disk before the task answers. Whatever becomes of the attempt, they are either named in its answer, and
published or removed by the driver, or left behind and swept later.
"""

import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from millstream.spark.errors import SchemaMismatch
from millstream.spark.tables.durable import forget, sync_directory, sync_file
from millstream.spark.tables.layout import ROWS_PREFIX, STAGING
from millstream.spark.tables.partitions import by_partition
from millstream.spark.tables.statistics import file_statistics
from millstream.spark.tables.table import DataFile, Table

__all__ = ["Staging", "WritePlan"]

_ROW_GROUP_BYTES: Final = 32 << 20
"""Rows are gathered until they are so many bytes in memory, then written as one row group: Spark hands over 10,000
rows at a time, and row groups of that size would double the size of the files."""

_GATHERED_BYTES: Final = 4 * _ROW_GROUP_BYTES
"""Of all partitions together, before all that is gathered is written out."""

_MOST_OPEN_FILES: Final = 128
"""Of one task. A task that meets more partitions finishes the file it has had open for longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What tasks need to know; goes from the driver to them.

    Args:
        table: where to.
        schema: the columns that the table will have, as an Arrow schema.
        partition_by: its partition columns.
        compression: codec of the files, as pyarrow calls it.
        file_bytes: files that grow beyond are followed by another.
        write_id: tells the writes of a table apart that have no batch number.
    """

    table: Table
    schema: Any
    partition_by: tuple[str, ...]
    compression: str
    file_bytes: int
    write_id: str


class Staging:
    """Writes rows to staged files.

    Args:
        plan: how.
        directory: of the batch, relative to the staging area.
        attempt: begins the names of the files; only for people.
    """

    def __init__(self, plan: WritePlan, directory: str, attempt: str) -> None:
        self._plan = plan
        self._directory = f"{STAGING}/{directory}"
        self._attempt = attempt
        self._outputs: dict[tuple[tuple[str, str | None], ...], _Output] = {}
        self._done: list[DataFile] = []

    def write(self, batches: Iterable[Any]) -> list[DataFile]:
        """Write Arrow record batches; returns the files that now lie in the staging area.

        Raises:
            SchemaMismatch: the columns are not those of the plan.
            OSError: the disk is full, for instance. Nothing is left behind.
        """
        os.makedirs(os.path.join(self._plan.table.root, self._directory), exist_ok=True)
        try:
            for batch in batches:
                for values, rows in self._split(batch):
                    self._output(values).add(rows)
                if sum(output.gathered_bytes for output in self._outputs.values()) >= _GATHERED_BYTES:
                    for output in self._outputs.values():
                        output.flush()
            for output in self._outputs.values():
                self._done.extend(output.finish())
            sync_directory(os.path.join(self._plan.table.root, self._directory))
        except BaseException:
            self._discard()
            raise
        return self._done

    def _split(self, batch: Any) -> Iterator[tuple[tuple[tuple[str, str | None], ...], Any]]:
        if batch.num_rows == 0:
            return iter(())
        rows = _aligned(batch, self._plan.schema)
        return by_partition(rows, self._plan.partition_by, keeps=self._plan.table.writes_partition_columns())

    def _output(self, values: tuple[tuple[str, str | None], ...]) -> "_Output":
        output = self._outputs.get(values)
        if output is None:
            if len(self._outputs) >= _MOST_OPEN_FILES:
                oldest = next(iter(self._outputs))
                self._done.extend(self._outputs.pop(oldest).finish())
            output = self._outputs[values] = _Output(self._plan, self._directory, self._attempt, values)
        return output

    def _discard(self) -> None:
        paths = [file.staged for file in self._done]
        paths += [path for output in self._outputs.values() for path in output.abandon()]
        for path in paths:
            forget(os.path.join(self._plan.table.root, path))


class _Output:
    """The files of one partition, one after the other."""

    def __init__(
        self, plan: WritePlan, directory: str, attempt: str, values: tuple[tuple[str, str | None], ...]
    ) -> None:
        self._plan = plan
        self._directory = directory
        self._attempt = attempt
        self._values = values
        self._gathered: list[Any] = []
        self.gathered_bytes = 0
        self._writer: Any = None
        self._metadata: list[Any] = []
        self._name = ""
        self._files: list[DataFile] = []

    def add(self, rows: Any) -> None:
        """Gather an Arrow table of rows, and write when there are enough for a row group."""
        self._gathered.append(rows)
        self.gathered_bytes += rows.nbytes
        if self.gathered_bytes >= _ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is gathered."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self._gathered:
            return
        rows = pa.concat_tables(self._gathered)
        self._gathered, self.gathered_bytes = [], 0
        if self._writer is None:
            self._name = f"{ROWS_PREFIX}{self._attempt}-{uuid.uuid4().hex}.parquet"
            self._metadata = []
            self._writer = pq.ParquetWriter(
                os.path.join(self._plan.table.root, self._staged),
                self._plan.table.file_schema(rows.schema),
                compression=self._plan.compression,
                metadata_collector=self._metadata,
                coerce_timestamps="us",
            )
        self._writer.write_table(rows)
        if os.path.getsize(os.path.join(self._plan.table.root, self._staged)) >= self._plan.file_bytes:
            self._close()

    def finish(self) -> list[DataFile]:
        """Write what is left, and close; returns the files."""
        self.flush()
        if self._writer is not None:
            self._close()
        return self._files

    def abandon(self) -> list[str]:
        """Close without writing what is left; returns the paths of the files, relative to the root."""
        paths = [file.staged for file in self._files]
        if self._writer is not None:
            paths.append(self._staged)
            writer, self._writer = self._writer, None
            try:
                writer.close()
            except (OSError, RuntimeError):
                # The footer does not fit on the disk either, or was what failed. The file goes anyway.
                return paths
        return paths

    @property
    def _staged(self) -> str:
        return f"{self._directory}/{self._name}"

    def _close(self) -> None:
        self._writer.close()
        self._writer = None
        path = os.path.join(self._plan.table.root, self._staged)
        sync_file(path)
        (metadata,) = self._metadata
        place = self._plan.table.partition_path(self._values)
        self._files.append(
            DataFile(
                path=f"{self._plan.table.data_prefix}{place}{'/' if place else ''}{self._name}",
                size_bytes=os.path.getsize(path),
                rows=metadata.num_rows,
                partition=self._values,
                staged=self._staged,
                statistics=file_statistics(metadata),
            )
        )


def _aligned(batch: Any, schema: Any) -> Any:
    """The columns of a batch under the names and in the types of the table."""
    import pyarrow as pa

    by_lower_case = {field.name.lower(): field for field in schema}
    fields, columns = [], []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        field = by_lower_case.get(name.lower())
        if field is None:
            raise SchemaMismatch(f"column {name!r} is not one of those that the write began with")
        fields.append(field)
        columns.append(_cast(name, column, field.type))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _cast(name: str, column: Any, kind: Any) -> Any:
    import pyarrow as pa

    if column.type == kind:
        return column
    if pa.types.is_struct(kind):
        parts = dict(zip((field.name.lower() for field in column.type), column.flatten(), strict=True))
        arrays = [
            _cast(f"{name}.{field.name}", parts[field.name.lower()], field.type)
            if field.name.lower() in parts
            else pa.nulls(len(column), field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=column.is_null())
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaMismatch(f"column {name!r} does not become {kind}: {str(error).splitlines()[0]}") from None
