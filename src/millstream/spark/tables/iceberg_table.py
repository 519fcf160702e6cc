"""Iceberg tables: files written by tasks, transactions by the package `pyiceberg`.

The ledger is kept in the table's properties, which a commit changes together with its snapshot, and which outlive
snapshots that expire. The catalog is an SQLite file beside the table, unless the options name another.
"""

import datetime
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from millstream.spark.errors import BadOption, SchemaMismatch, TableError
from millstream.spark.tables.arrow_types import as_spark_brings
from millstream.spark.tables.columns import widenings
from millstream.spark.tables.durable import make_whole
from millstream.spark.tables.layout import OWN, plain_partition_directory
from millstream.spark.tables.table import Change, Conflict, DataFile, Expiry, State

__all__ = ["IcebergTable"]

_CATALOG: Final = "millstream"
_IDENTIFIER: Final = "millstream.table"
_LEDGER: Final = "millstream.batch."
"""In front of an application's id, in the table's properties."""

_PROPERTIES: Final = {
    # A stream makes a manifest with each batch; without merging, planning a scan would read all of them.
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
_NO_RETRIES: Final = {"commit.retry.num-retries": "0"}


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """A table with Iceberg's metadata.

    Args:
        root: its location.
        catalog: properties of the catalog, as pyiceberg names them; empty for the one beside the table. `table` is
            the name of the table there.
    """

    root: str
    catalog: Mapping[str, str] = field(default_factory=dict)
    data_prefix: str = "data/"

    def load(self) -> State | None:
        """See `Table.load`."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        if not self.catalog and not os.path.exists(self._catalog_file):
            return None
        try:
            table = self._opened().load_table(self._identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        place = table.location().removeprefix("file://").rstrip("/")
        if os.path.realpath(place) != os.path.realpath(self.root):
            raise TableError(f"the Iceberg table {self._identifier} lies in {place}; give that as the option path")
        properties = table.properties
        names = {column.field_id: column.name for column in table.schema().fields}
        return State(
            version=table.metadata.last_sequence_number,
            schema=as_spark_brings(table.schema().as_arrow()),
            partition_by=tuple(names[part.source_id] for part in table.spec().fields if part.source_id in names),
            ledger=lambda name: int(properties[_LEDGER + name]) if _LEDGER + name in properties else None,
            handle=table,
        )

    def files(self, state: State) -> list[DataFile]:
        """See `Table.files`."""
        return [
            DataFile(
                path=self._relative(task.file.file_path),
                size_bytes=task.file.file_size_in_bytes,
                rows=task.file.record_count,
                partition=tuple(
                    (name, None if value is None else str(value))
                    for name, value in zip(state.partition_by, task.file.partition, strict=False)
                ),
                detail=task,
            )
            for task in state.handle.scan().plan_files()
        ]

    def commit(self, state: State | None, change: Change) -> None:
        """See `Table.commit`."""
        from pyiceberg.exceptions import CommitFailedException

        if state is None:
            self._create(change)
            raise Conflict  # The table is there now, without rows: these are the next commit.
        table = state.handle
        self._check_partitioning(table)
        # A conflict must come back here, where the ledger is looked at again, instead of being tried again inside.
        # The property is set in this copy of the metadata only: the catalog applies the changes to its own.
        table.metadata.properties.update(_NO_RETRIES)
        transaction = table.transaction()
        if not change.schema.equals(state.schema):
            with transaction.update_schema() as update:
                update.union_by_name(change.schema)
        if change.ledger:
            transaction.set_properties({_LEDGER + name: str(batch) for name, batch in change.ledger.items()})
        told = {f"millstream.{name}": str(batch) for name, batch in change.ledger.items()}
        added = [self._uri(file.path) for file in change.add]
        if not change.overwrites and not change.remove:
            if added:
                transaction.add_files(added, snapshot_properties=told, check_duplicate_files=False)
        else:
            self._replace(state, transaction, change, added, told)
        try:
            transaction.commit_transaction()
        except CommitFailedException as error:
            raise Conflict from error

    def _replace(
        self, state: State, transaction: Any, change: Change, added: list[str], told: dict[str, str]
    ) -> None:
        from pyiceberg.io.pyarrow import parquet_file_to_data_file

        there = {file.path: file.detail.file for file in self.files(state)}
        going = there.keys() if change.overwrites else {file.path for file in change.remove}
        if not going <= there.keys():
            raise Conflict
        metadata = transaction.table_metadata
        if added and metadata.name_mapping() is None:
            # The files carry no field ids: their columns are found by name.
            transaction.set_properties(
                {"schema.name-mapping.default": metadata.schema().name_mapping.model_dump_json()}
            )
        with transaction.update_snapshot(snapshot_properties=told).overwrite() as snapshot:
            for path in going:
                snapshot.delete_data_file(there[path])
            for uri in added:
                snapshot.append_data_file(parquet_file_to_data_file(state.handle.io, transaction.table_metadata, uri))

    def _create(self, change: Change) -> None:
        from pyiceberg.exceptions import TableAlreadyExistsError

        catalog = self._opened()
        catalog.create_namespace_if_not_exists(catalog.namespace_from(self._identifier))
        try:
            with (
                catalog.create_table_transaction(
                    self._identifier, change.schema, location=f"file://{self.root}", properties=_PROPERTIES
                ) as transaction,
                transaction.update_spec() as spec,
            ):
                for name in change.partition_by:
                    spec.add_identity(name)
        except TableAlreadyExistsError as error:
            raise Conflict from error

    def _check_partitioning(self, table: Any) -> None:
        other = [str(part) for part in table.spec().fields if str(part.transform) != "identity"]
        if other:
            raise TableError(
                f"the Iceberg table {self._identifier} is partitioned by {other[0]}, not by a plain column"
            )

    def columns_of(self, schema: Any) -> Any:
        """See `Table.columns_of`: Iceberg has no integers of less than 32 bits."""
        import pyarrow as pa

        return pa.schema([pa.field(column.name, _kept(column.name, column.type)) for column in schema])

    def check_change(self, old: Any, new: Any) -> None:
        """See `Table.check_change`: Iceberg has three promotions, and that of decimals keeps the scale."""
        import pyarrow as pa

        for name, narrow, wide in widenings(old, new):
            if pa.types.is_decimal(wide) and wide.scale != narrow.scale:
                raise SchemaMismatch(
                    f"column {name!r} is {narrow} in the Iceberg table and {wide} in the rows; a decimal of an "
                    "Iceberg table keeps its scale: cast the rows"
                )

    def partition_path(self, values: tuple[tuple[str, str | None], ...]) -> str:
        """See `Table.partition_path`. The values are in the metadata."""
        return plain_partition_directory(values)

    def writes_partition_columns(self) -> bool:
        """See `Table.writes_partition_columns`: the partition of a file is told from its statistics."""
        return True

    def file_schema(self, schema: Any) -> Any:
        """See `Table.file_schema`."""
        return schema

    def source(self, state: State) -> Any:
        """See `Table.source`: where the metadata of the state lies."""
        return state.handle.metadata_location

    def read(self, source: Any, files: Sequence[DataFile], columns: Sequence[str]) -> Iterator[Any]:
        """See `Table.read`: with deletions, renamed columns and all else that Iceberg knows."""
        import pyarrow as pa
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan
        from pyiceberg.table import StaticTable

        table = StaticTable.from_metadata(source)
        schema = table.schema().select(*columns)
        wanted = as_spark_brings(table.schema().as_arrow())
        wanted = pa.schema([wanted.field(name) for name in columns])
        scan = ArrowScan(table.metadata, table.io, schema, AlwaysTrue())
        for batch in scan.to_record_batches([file.detail for file in files]):
            yield batch.select(list(columns)).cast(wanted)

    def expire(self, older_than_ms: int) -> Expiry:
        """See `Table.expire`: by Iceberg's snapshots."""
        from pyiceberg.exceptions import CommitFailedException

        moment = datetime.datetime.fromtimestamp(older_than_ms / 1000, datetime.UTC)
        while True:
            state = self.load()
            if state is None:
                return Expiry(states=0, released=set(), needed=set())
            before, snapshots = self._reachable(state.handle), len(state.handle.metadata.snapshots)
            try:
                state.handle.maintenance.expire_snapshots().older_than(moment).commit()
            except CommitFailedException:
                continue
            table = self._opened().load_table(self._identifier)
            needed = self._reachable(table)
            states = max(0, snapshots - len(table.metadata.snapshots))
            return Expiry(states=states, released=before - needed, needed=needed)

    def _reachable(self, table: Any) -> set[str]:
        metadata = table.metadata
        found = {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
        found.update(statistics.statistics_path for statistics in metadata.statistics)
        seen = set()
        for snapshot in metadata.snapshots:
            found.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(table.io):
                if manifest.manifest_path in seen:
                    continue
                seen.add(manifest.manifest_path)
                found.update(entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io))
        return {self._relative(uri) for uri in found | seen}

    @property
    def _catalog_file(self) -> str:
        return os.path.join(self.root, OWN, "catalog.db")

    @property
    def _identifier(self) -> str:
        return self.catalog.get("table", _IDENTIFIER)

    def _opened(self) -> Any:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.catalog.sql import SqlCatalog

        if self.catalog:
            properties = {name: value for name, value in self.catalog.items() if name not in {"table", "name"}}
            if "table" not in self.catalog:
                raise BadOption(
                    "the option catalog.table is missing: the name of the table in the catalog, as db.orders"
                )
            return load_catalog(self.catalog.get("name", _CATALOG), **properties)
        if not os.path.exists(self._catalog_file):
            # The tables of the catalog are made where nobody sees them: two makers at once would collide.
            make_whole(self._catalog_file, lambda path: SqlCatalog(_CATALOG, uri=_sqlite(path)).close())
        warehouse = f"file://{self.root}"
        return SqlCatalog(_CATALOG, uri=_sqlite(self._catalog_file), warehouse=warehouse, init_catalog_tables="false")

    def _uri(self, path: str) -> str:
        return f"file://{os.path.join(self.root, path)}"

    def _relative(self, uri: str) -> str:
        return os.path.relpath(uri.removeprefix("file://"), self.root)


def _sqlite(path: str) -> str:
    from sqlalchemy import URL

    return URL.create("sqlite", database=path).render_as_string()


def _kept(name: str, kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_duration(kind):
        raise SchemaMismatch(f"column {name!r} is an interval, which an Iceberg table has no place for; cast it")
    if pa.types.is_int8(kind) or pa.types.is_int16(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, _kept(f"{name}.{part.name}", part.type)) for part in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _kept(f"{name}.element", kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_kept(f"{name}.key", kind.key_type), _kept(f"{name}.value", kind.item_type))
    return kind
