"""What the driver does with the files that tasks have staged: it publishes all of them at once, or none.

    1  the ledger is asked: a batch that the table holds is dropped, files and all
    2  an intent is written: the places that the files are going to have
    3  the files are moved to their places; nothing refers to them yet
    4  the table's own commit, with the ledger in the same transaction; on a conflict again from 1
    5  the intent goes, and so does all that other attempts at this batch have staged or moved

A crash before 4 leaves files that no reader sees; those that were moved are named in an intent. A crash after 4
leaves an intent that the ledger proves done. Nothing of another attempt is touched before 4: it may be alive, and
whoever comes to 4 first is right.
"""

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from millstream.spark.errors import SparkSourceError, TableContended, TableError
from millstream.spark.tables.columns import merged
from millstream.spark.tables.durable import create_whole, forget, move, read_whole, sync_directory
from millstream.spark.tables.layout import INTENTS, STAGING, directory_name
from millstream.spark.tables.ledger import Batch, is_committed
from millstream.spark.tables.staging import WritePlan
from millstream.spark.tables.table import Change, Conflict, DataFile, State, Table

__all__ = ["Intent", "batch_directory", "discard", "intended", "publish"]

_MOST_ATTEMPTS: Final = 50
"""At one commit. Every conflict means that another writer's commit went through, so this many are a storm."""


def batch_directory(application: str, batch: str) -> str:
    """Where the attempts of a batch stage their files, relative to the staging area."""
    return f"{directory_name(application)}/{batch}"


def publish(
    plan: WritePlan,
    files: Sequence[DataFile],
    batch: Batch | None,
    *,
    overwrites: bool,
    changes_schema: bool,
    keeps_empty: bool,
) -> bool:
    """Publish staged files.

    Args:
        plan: what the tasks wrote by.
        files: what they have staged.
        batch: the key in the ledger; None for a batch that is not repeated.
        overwrites: whether the rows that are there go.
        changes_schema: whether the table may get new columns and wider types.
        keeps_empty: whether a table that is there is left as it is if there are no rows.

    Returns:
        False if the table holds the batch already, and nothing was done.

    Raises:
        StaleBatch, SchemaMismatch, TableContended, TableError: nothing was published.
        OSError: the disk is full, for instance; nothing was published, or all was, which the ledger tells.
    """
    table = plan.table
    state = table.load()
    if state is not None and is_committed(batch, state.ledger):
        discard(table, files)
        _forget_fulfilled(table, _intent_stem(plan, batch), state)
        return False
    if state is not None and keeps_empty and not files:
        return True
    intent = Intent(table, _intent_stem(plan, batch))
    change = Change(
        schema=plan.schema,
        partition_by=plan.partition_by,
        add=intent.place(files),
        overwrites=overwrites,
        ledger={} if batch is None else batch.entries(),
    )
    try:
        is_new = _committed(table, change, batch, changes_schema=changes_schema)
    except SparkSourceError:
        # Our own errors are raised where nothing was committed; after others, only the ledger knows.
        intent.undo()
        raise
    if not is_new:
        intent.undo()
        return False
    intent.fulfil()
    _sweep(table, plan, batch)
    return True


def _committed(table: Table, change: Change, batch: Batch | None, *, changes_schema: bool) -> bool:
    """Make a change of whatever state the table is in by then.

    Returns:
        False if another driver of the same query was faster, of which this one knows nothing.
    """
    for _ in range(_MOST_ATTEMPTS):
        state = table.load()
        schema = change.schema
        if state is not None:
            if is_committed(batch, state.ledger):
                return False
            _check_partitions(change.add, state.partition_by)
            schema = merged(state.schema, schema, changes=changes_schema)
            table.check_change(state.schema, schema)
        try:
            table.commit(state, replace(change, schema=schema, overwrites=change.overwrites and state is not None))
        except Conflict:
            continue
        except FileNotFoundError:
            if _was_overtaken(table, batch):
                return False
            raise
        return True
    raise TableContended(f"{table.root} was changed by others {_MOST_ATTEMPTS} times in a row; try again later")


def _was_overtaken(table: Table, batch: Batch | None) -> bool:
    """Whether another driver has published the batch, and removed the files of this one, in mid-commit."""
    state = table.load()
    return state is not None and is_committed(batch, state.ledger)


def discard(table: Table, files: Sequence[DataFile]) -> None:
    """Remove staged files that are not to be published."""
    for file in files:
        forget(os.path.join(table.root, file.staged))


def intended(root: str) -> Iterator[tuple[str, list[str]]]:
    """The intents of a table: their names, and the files that each is about, relative to the root."""
    directory = os.path.join(root, INTENTS)
    for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
        content = read_whole(os.path.join(directory, name))
        # A file that is not whole yet has a name of its own, and nothing was moved on its behalf.
        if content and name.endswith(".json"):
            yield name, json.loads(content)["files"]


class Intent:
    """The files of one attempt, on their way into the table.

    Args:
        table: which.
        stem: begins the names of the intents of all attempts at the same batch.
    """

    def __init__(self, table: Table, stem: str) -> None:
        self._table = table
        self._stem = stem
        self._path = os.path.join(table.root, INTENTS, f"{stem}{uuid.uuid4().hex}.json")
        self._files: list[str] = []

    def place(self, files: Sequence[DataFile]) -> list[DataFile]:
        """Move staged files to their places, after writing down where that is."""
        root = self._table.root
        self._files = [file.path for file in files]
        try:
            if files:
                create_whole(self._path, json.dumps({"files": self._files}).encode())
            for file in files:
                move(os.path.join(root, file.staged), os.path.join(root, file.path))
            for directory in {os.path.dirname(file.path) for file in files}:
                sync_directory(os.path.join(root, directory))
        except OSError:
            self.undo()
            raise
        return [replace(file, staged="") for file in files]

    def undo(self) -> None:
        """Remove the files: they are not published, and will not be."""
        for path in self._files:
            forget(os.path.join(self._table.root, path))
        forget(self._path)

    def fulfil(self) -> None:
        """The files are published. Other attempts at the same batch never will: their files go."""
        forget(self._path)
        for name, paths in list(intended(self._table.root)):
            if name.startswith(self._stem):
                for path in paths:
                    forget(os.path.join(self._table.root, path))
                forget(os.path.join(self._table.root, INTENTS, name))


def _check_partitions(files: Sequence[DataFile], partition_by: tuple[str, ...]) -> None:
    """Check that files were written by the partition columns of the table, which may be younger than they are."""
    for file in files:
        if tuple(name for name, _ in file.partition) != partition_by:
            raise TableError(
                f"the table was made with the partition columns {partition_by or 'none'} while these rows were "
                "written with others; run it again"
            )


def _intent_stem(plan: WritePlan, batch: Batch | None) -> str:
    if batch is None:
        return f"write~{plan.write_id}~"
    return f"{directory_name(batch.application)}~{batch.batch_id}~"


def _forget_fulfilled(table: Table, stem: str, state: State) -> None:
    """Remove the intent of the attempt that published a batch and died before it could do so itself."""
    intents = [(name, paths) for name, paths in intended(table.root) if name.startswith(stem)]
    live = {file.path for file in table.files(state)} if intents else set()
    for name, paths in intents:
        # What is not in the table (any more) may still be read by somebody: an expiry decides about that by age.
        if live.issuperset(paths):
            forget(os.path.join(table.root, INTENTS, name))


def _sweep(table: Table, plan: WritePlan, batch: Batch | None) -> None:
    """Remove what other attempts of this batch, and of those before it, have staged: they will never be published."""
    if batch is None:
        _remove_tree(os.path.join(table.root, STAGING, batch_directory("write", plan.write_id)))
        return
    home = os.path.join(table.root, STAGING, directory_name(batch.application))
    for name in os.listdir(home) if os.path.isdir(home) else ():
        if name.isdecimal() and int(name) <= batch.batch_id:
            _remove_tree(os.path.join(home, name))


def _remove_tree(path: str) -> None:
    # An attempt that Spark has given up may still be writing there; what it leaves is swept by age.
    shutil.rmtree(path, ignore_errors=True)
