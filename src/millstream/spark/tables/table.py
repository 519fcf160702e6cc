"""What a table is, whatever its format: the interface that `formats.open_table` gives implementations of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from millstream.spark.tables.ledger import Ledger

__all__ = ["Change", "Conflict", "DataFile", "Expiry", "State", "Table"]


class Conflict(Exception):
    """Somebody else has changed the table since its state was loaded; nothing was changed. To be tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A Parquet file with rows.

    Args:
        path: where it lies in the table, relative to its root; for a file that a table of others refers to outside
            of its root, absolute.
        size_bytes: its size.
        rows: how many; -1 if the table does not say.
        partition: name and value of the partition columns, in the table's order; None for a missing value.
        staged: where it lies until it is published, relative to the root; empty if it is published.
        statistics: nulls, least and greatest values by column, in the form of Delta's log; empty if unknown.
        detail: what else the format needs to read or remove it.
    """

    path: str
    size_bytes: int
    rows: int
    partition: tuple[tuple[str, str | None], ...] = ()
    staged: str = ""
    statistics: str = ""
    detail: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a table was when it was looked at.

    Args:
        version: which of its states; grows with each change.
        schema: all columns, those of the partitions included, as an Arrow schema of nullable fields.
        partition_by: names of the partition columns.
        ledger: which micro-batches it holds.
        handle: what the format needs to commit a change of this state.
    """

    version: int
    schema: Any
    partition_by: tuple[str, ...]
    ledger: Ledger
    handle: Any = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to become of a table, all at once.

    Args:
        schema: the columns from now on.
        partition_by: the partition columns of a table that is made by this change.
        add: files that are in their places already.
        remove: files that the table is to hold no more; all of them must be there.
        overwrites: whether all files that are there go.
        ledger: what the ledger is to hold from now on, by name.
        moves_rows_only: whether the rows stay the same, as in a compaction.
    """

    schema: Any
    partition_by: tuple[str, ...]
    add: Sequence[DataFile] = ()
    remove: Sequence[DataFile] = ()
    overwrites: bool = False
    ledger: Mapping[str, int] = field(default_factory=dict)
    moves_rows_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """What is left of a table's history.

    Args:
        states: how many earlier states were given up.
        released: files that only those needed; paths relative to the root.
        needed: files that the remaining states need.
    """

    states: int
    released: set[str]
    needed: set[str]


class Table(Protocol):
    """A table of one format in one directory. Nothing is kept between calls, so that it may be pickled."""

    @property
    def root(self) -> str:
        """Its directory, absolute."""

    @property
    def data_prefix(self) -> str:
        """In front of the paths of new files: empty, or a directory with a slash behind."""

    def load(self) -> State | None:
        """Look at the table; None if there is none.

        Raises:
            TableError: it is not whole, or of a kind that is not supported.
        """

    def files(self, state: State) -> list[DataFile]:
        """The files with the rows of a state."""

    def commit(self, state: State | None, change: Change) -> None:
        """Change a state, or make the table, atomically and durably.

        Raises:
            Conflict: the table is in another state by now.
            OSError: the disk is full, or the file system refuses; nothing was changed, or all was.
        """

    def columns_of(self, schema: Any) -> Any:
        """The Arrow schema in which the format keeps rows of a Spark schema.

        Raises:
            SchemaMismatch: it has no place for a column.
        """

    def check_change(self, old: Any, new: Any) -> None:
        """Check that a schema can become another that `columns.merged` has made of it.

        Raises:
            SchemaMismatch: the format cannot change a column in this way.
        """

    def partition_path(self, values: tuple[tuple[str, str | None], ...]) -> str:
        """The directory of the files of a partition."""

    def writes_partition_columns(self) -> bool:
        """Whether the files hold the partition columns too."""

    def file_schema(self, schema: Any) -> Any:
        """The Arrow schema of a file, with the metadata that goes into it.

        Args:
            schema: the columns that are to be written to it.
        """

    def source(self, state: State) -> Any:
        """What tasks need to read files of a state, besides the files; can be pickled."""

    def read(self, source: Any, files: Sequence[DataFile], columns: Sequence[str]) -> Iterator[Any]:
        """The rows of some files of a state, as Arrow record batches of these columns of its schema."""

    def expire(self, older_than_ms: int) -> Expiry:
        """Give up all states but the present one and those that were the present one later than a time.

        No file is removed but those of the table's log.

        Args:
            older_than_ms: ms since 1970.
        """
