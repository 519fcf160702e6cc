"""Delta tables: files written by tasks, transactions by the package `deltalake`.

The ledger is Delta's own: application transactions (`txn` actions), which outlive checkpoints and the cleaning of
logs. Of two writers of the same application the log takes one only, also if they commit at the same moment.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from millstream.spark.errors import SchemaMismatch, TableError
from millstream.spark.tables.arrow_types import as_spark_brings
from millstream.spark.tables.columns import widenings
from millstream.spark.tables.files import read_files
from millstream.spark.tables.layout import plain_partition_directory
from millstream.spark.tables.table import Change, Conflict, DataFile, Expiry, State

__all__ = ["DeltaTable"]

_READABLE: Final = {"timestampNtz"}
"""Reader features that are obeyed. Others, such as deletion vectors, change which rows of a file count."""

_HOUR_MS: Final = 3_600_000
_SLACK_MS: Final = 60_000
"""Taken off an age before it is rounded up to hours, so that an age of 0 stays 0."""


@dataclass(frozen=True, slots=True)
class DeltaTable:
    """A table with Delta's log."""

    root: str
    data_prefix: str = ""

    def load(self) -> State | None:
        """See `Table.load`."""
        import pyarrow as pa
        from deltalake import DeltaTable as Opened

        if not Opened.is_deltatable(self.root):
            return None
        opened = Opened(self.root)
        unknown = set(opened.protocol().reader_features or ()) - _READABLE
        if unknown:
            raise TableError(f"the Delta table {self.root} uses {', '.join(sorted(unknown))}, not supported here")
        return State(
            version=opened.version(),
            schema=as_spark_brings(pa.schema(opened.schema().to_arrow())),
            partition_by=tuple(opened.metadata().partition_columns),
            ledger=opened.transaction_version,
            handle=opened,
        )

    def files(self, state: State) -> list[DataFile]:
        """See `Table.files`."""
        import pyarrow as pa

        rows = pa.table(state.handle.get_add_actions(flatten=False)).to_pylist()
        return [
            DataFile(
                path=unquote(row["path"]),
                size_bytes=row["size_bytes"],
                rows=-1 if row.get("num_records") is None else row["num_records"],
                partition=tuple((name, _text(row["partition"].get(name))) for name in state.partition_by),
            )
            for row in rows
        ]

    def commit(self, state: State | None, change: Change) -> None:
        """See `Table.commit`."""
        from deltalake import CommitProperties, Schema, Transaction
        from deltalake.exceptions import CommitFailedError, DeltaError
        from deltalake.transaction import create_table_with_add_actions

        properties = CommitProperties(
            app_transactions=[Transaction(name, batch) for name, batch in change.ledger.items()]
        )
        schema = Schema.from_arrow(change.schema)
        actions: list[Any] = [_add(file, rows_are_new=not change.moves_rows_only) for file in change.add]
        if state is None:
            os.makedirs(self.root, exist_ok=True)
            try:
                create_table_with_add_actions(
                    self.root,
                    schema,
                    actions,
                    mode="error",
                    partition_by=list(change.partition_by),
                    commit_properties=properties,
                )
            except DeltaError as error:
                if self.load() is None:
                    raise
                raise Conflict from error
            return
        opened = state.handle
        if change.overwrites:
            mode = "overwrite"
        else:
            mode = "append"
            self._add_columns(state, change.schema)
        actions += [_remove(file, rows_go=not change.moves_rows_only) for file in change.remove]
        try:
            opened.create_write_transaction(
                actions, mode, schema, partition_by=list(state.partition_by), commit_properties=properties
            )
        except CommitFailedError as error:
            raise Conflict from error

    def _add_columns(self, state: State, schema: Any) -> None:
        """Add columns that are new, in a commit of their own: without rows, they are nobody's loss."""
        import pyarrow as pa
        from deltalake import Schema
        from deltalake.exceptions import CommitFailedError

        new = [field for field in schema if field not in list(state.schema)]
        if not new:
            return
        try:
            state.handle.alter.add_columns(Schema.from_arrow(pa.schema(new)).fields)
        except CommitFailedError as error:
            raise Conflict from error

    def check_change(self, old: Any, new: Any) -> None:
        """See `Table.check_change`."""
        for name, narrow, wide in widenings(old, new):
            raise SchemaMismatch(
                f"column {name!r} is {narrow} in the Delta table and {wide} in the rows; a column of a Delta table "
                "keeps its type: cast the rows"
            )

    def columns_of(self, schema: Any) -> Any:
        """See `Table.columns_of`."""
        for field in schema:
            _check(field.name, field.type)
        return schema

    def partition_path(self, values: tuple[tuple[str, str | None], ...]) -> str:
        """See `Table.partition_path`. The values are in the log."""
        return plain_partition_directory(values)

    def writes_partition_columns(self) -> bool:
        """See `Table.writes_partition_columns`."""
        return False

    def file_schema(self, schema: Any) -> Any:
        """See `Table.file_schema`."""
        return schema

    def source(self, state: State) -> Any:
        """See `Table.source`."""
        return state.schema

    def read(self, source: Any, files: Sequence[DataFile], columns: Sequence[str]) -> Iterator[Any]:
        """See `Table.read`."""
        return read_files(self.root, files, source, columns)

    def expire(self, older_than_ms: int) -> Expiry:
        """See `Table.expire`: tombstones tell when files went. Delta counts in hours, rounded up."""
        import pyarrow as pa
        from deltalake import DeltaTable as Opened

        if not Opened.is_deltatable(self.root):
            return Expiry(states=0, released=set(), needed=set())
        opened = Opened(self.root)
        opened.create_checkpoint()
        opened.cleanup_metadata()
        opened = Opened(self.root)
        age_ms = int(time.time() * 1000) - older_than_ms
        hours = max(0, -(-(age_ms - _SLACK_MS) // _HOUR_MS))
        released, replaced = (
            {
                unquote(path)
                for path in opened.vacuum(retention_hours=age, dry_run=True, enforce_retention_duration=False)
            }
            for age in (hours, 0)
        )
        live = {unquote(path) for path in pa.table(opened.get_add_actions()).column("path").to_pylist()}
        return Expiry(states=0, released=released - live, needed=live | (replaced - released))


def _add(file: DataFile, *, rows_are_new: bool) -> Any:
    from deltalake.transaction import AddAction

    return AddAction(
        path=file.path,
        size=file.size_bytes,
        # An empty text counts as missing in Delta.
        partition_values={name: value or None for name, value in file.partition},
        modification_time=int(time.time() * 1000),
        data_change=rows_are_new,
        stats=file.statistics or json.dumps({"numRecords": file.rows}),
    )


def _remove(file: DataFile, *, rows_go: bool) -> Any:
    from deltalake.transaction import RemoveAction

    return RemoveAction(
        file.path,
        rows_go,
        int(time.time() * 1000),
        file.size_bytes,
        {name: value or None for name, value in file.partition},
    )


def _text(value: Any) -> str | None:
    from millstream.spark.tables.partitions import partition_text

    return partition_text(value)


def _check(name: str, kind: Any) -> None:
    import pyarrow as pa

    if pa.types.is_duration(kind) or pa.types.is_time64(kind):
        raise SchemaMismatch(f"column {name!r} is of type {kind}, which a Delta table has no place for; cast it")
    for index in range(kind.num_fields):
        field = kind.field(index) if pa.types.is_struct(kind) else None
        if field is not None:
            _check(f"{name}.{field.name}", field.type)
    if pa.types.is_list(kind):
        _check(f"{name}.element", kind.value_type)
    if pa.types.is_map(kind):
        _check(f"{name}.value", kind.item_type)
