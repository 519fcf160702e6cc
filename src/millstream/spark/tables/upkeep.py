"""Jobs on tables: many small files become few, what is needed no more goes. Streams may write all the while."""

import contextlib
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from millstream.spark.errors import SparkSourceError, TableContended
from millstream.spark.tables.durable import forget, is_temporary
from millstream.spark.tables.formats import TableFormat, existing_table, format_at
from millstream.spark.tables.layout import INTENTS, OWN, STAGING, table_root
from millstream.spark.tables.ledger import Ledger
from millstream.spark.tables.options import DEFAULT_FILE_BYTES
from millstream.spark.tables.publishing import Intent, discard, intended
from millstream.spark.tables.staging import Staging, WritePlan
from millstream.spark.tables.table import Change, Conflict, DataFile, State, Table

__all__ = ["Compacted", "Description", "Expired", "compact", "describe", "expire"]

_SMALL: Final = 0.75
"""Files of less than this share of the target are compacted: what a compaction made is not worth another."""

_MOST_ATTEMPTS: Final = 20
_DAY_S: Final = 86_400
_OWN_SUFFIXES: Final = (".parquet", ".avro", ".metadata.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What a compaction did.

    Args:
        files_before, files_after: how many files were replaced, and by how many.
        bytes_before, bytes_after: how large they were.
        rows: how many rows they hold, before and after.
    """

    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """What an expiry removed.

    Args:
        states: earlier states of the table that are given up.
        files: removed files, of those states and of attempts that failed.
        bytes: how large they were.
    """

    states: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a table is.

    Args:
        path, format: where, and of which format.
        version: grows with each change.
        columns: names and Spark's types.
        partition_by: the partition columns.
        files, rows, bytes: of the live files; rows is -1 if some file does not say.
        small_files: how many of them a compaction would replace.
        staged_files: written, but not published: by attempts that are under way, or that failed.
    """

    path: str
    format: TableFormat
    version: int
    columns: tuple[tuple[str, str], ...]
    partition_by: tuple[str, ...]
    files: int
    rows: int
    bytes: int
    small_files: int
    staged_files: int


def describe(
    path: str, table_format: TableFormat | None = None, catalog: Mapping[str, str] | None = None
) -> Description:
    """Describe a table; the arguments are those of `live_files`.

    Raises:
        TableMissing: there is none.
    """
    from millstream.spark.tables.columns import spark_schema

    table, state = existing_table(table_root(path), table_format, catalog or {})
    files = table.files(state)
    return Description(
        path=table.root,
        format=format_at(table.root) or TableFormat.ICEBERG,
        version=state.version,
        columns=tuple((field.name, field.dataType.simpleString()) for field in spark_schema(state.schema).fields),
        partition_by=state.partition_by,
        files=len(files),
        rows=-1 if any(file.rows < 0 for file in files) else sum(file.rows for file in files),
        bytes=sum(file.size_bytes for file in files),
        small_files=sum(len(group) for group in _groups(files, DEFAULT_FILE_BYTES)),
        staged_files=sum(1 for _ in _walk(os.path.join(table.root, STAGING))),
    )


def compact(
    path: str,
    table_format: TableFormat | None = None,
    catalog: Mapping[str, str] | None = None,
    *,
    file_bytes: int = DEFAULT_FILE_BYTES,
    compression: str = "snappy",
) -> Compacted:
    """Replace small files by larger ones, partition by partition. The rows stay the same, in the order of the files.

    Runs in this process, without Spark. A stream may write meanwhile: what it adds stays, and its ledger too.

    Args:
        path, table_format, catalog: as for `live_files`.
        file_bytes: about how large files are to become.
        compression: their codec.

    Raises:
        TableMissing: there is no table.
        TableContended: others replaced the same files again and again.
    """
    for _ in range(_MOST_ATTEMPTS):
        table, state = existing_table(table_root(path), table_format, catalog or {})
        groups = _groups(table.files(state), file_bytes)
        if not groups:
            return Compacted()
        old = [file for group in groups for file in group]
        plan = WritePlan(
            table=table,
            schema=state.schema,
            partition_by=state.partition_by,
            compression=compression,
            file_bytes=file_bytes,
            write_id=uuid.uuid4().hex,
        )
        new = _rewritten(plan, state, groups)
        if _replaced(plan, old, new):
            return Compacted(
                files_before=len(old),
                files_after=len(new),
                bytes_before=sum(file.size_bytes for file in old),
                bytes_after=sum(file.size_bytes for file in new),
                rows=sum(file.rows for file in new),
            )
    raise TableContended(f"others replaced files of {path} {_MOST_ATTEMPTS} times in a row; try again later")


def _groups(files: Sequence[DataFile], file_bytes: int) -> list[list[DataFile]]:
    """Small files of a partition that become one file together."""
    partitions: dict[tuple[tuple[str, str | None], ...], list[DataFile]] = {}
    for file in sorted(files, key=lambda one: one.path):
        if file.size_bytes < _SMALL * file_bytes:
            partitions.setdefault(file.partition, []).append(file)
    groups = []
    for small in partitions.values():
        group: list[DataFile] = []
        for file in small:
            if group and sum(one.size_bytes for one in group) + file.size_bytes > file_bytes:
                groups.append(group)
                group = []
            group.append(file)
        groups.append(group)
    return [group for group in groups if len(group) > 1]


def _rewritten(plan: WritePlan, state: State, groups: list[list[DataFile]]) -> list[DataFile]:
    table, source, new = plan.table, plan.table.source(state), []
    try:
        for group in groups:
            rows = table.read(source, group, state.schema.names)
            new += Staging(plan, f"compact/{plan.write_id}", "compacted").write(rows)
    except BaseException:
        discard(table, new)
        raise
    finally:
        _remove_empty(os.path.join(table.root, STAGING, "compact", plan.write_id))
    return new


def _replaced(plan: WritePlan, old: list[DataFile], new: list[DataFile]) -> bool:
    """Publish new files in the place of old ones. Returns False if old ones are gone, and nothing was done."""
    table = plan.table
    intent = Intent(table, f"compact~{plan.write_id}~")
    placed = intent.place(new)
    _remove_empty(os.path.join(table.root, STAGING, "compact", plan.write_id))
    try:
        while True:
            state = table.load()
            paths = {file.path for file in old}
            there = [file for file in table.files(state) if file.path in paths] if state is not None else []
            if state is None or len(there) < len(old):
                intent.undo()
                return False
            change = Change(
                schema=state.schema,
                partition_by=state.partition_by,
                add=placed,
                remove=there,
                moves_rows_only=True,
            )
            try:
                table.commit(state, change)
            except Conflict:
                continue
            intent.fulfil()
            return True
    except SparkSourceError:
        intent.undo()
        raise


def expire(
    path: str,
    table_format: TableFormat | None = None,
    catalog: Mapping[str, str] | None = None,
    *,
    older_than_s: float = 7 * _DAY_S,
    leftovers_older_than_s: float = _DAY_S,
) -> Expired:
    """Give up earlier states of a table, and remove the files that no state needs any more.

    A reader that has planned its query on an earlier state fails if the files go while it runs: leave it time. The
    ledger stays as it is.

    Args:
        path, table_format, catalog: as for `live_files`.
        older_than_s: states that were replaced so long ago go. Delta rounds up to hours.
        leftovers_older_than_s: files of attempts that failed go when they are so old. It must be more than the
            longest micro-batch and the longest compaction take.

    Raises:
        TableMissing: there is no table.
    """
    now = time.time()
    leftover_before = now - leftovers_older_than_s
    table, state = existing_table(table_root(path), table_format, catalog or {})
    # The order matters. A file that is found here and was being published has an intent, or is in the table by the
    # time that the table is looked at below.
    found = dict(_sizes(table.root))
    _forget_old_intents(table.root, leftover_before)
    moving = {path for _, paths in intended(table.root) for path in paths}
    expiry = table.expire(int((now - older_than_s) * 1000))
    removed = bytes_removed = 0
    for relative, (size, modified) in found.items():
        if relative in expiry.needed or relative in moving:
            continue
        if (relative in expiry.released or modified < leftover_before) and forget(os.path.join(table.root, relative)):
            removed += 1
            bytes_removed += size
    for relative, (size, _) in _abandoned(table, state.ledger, leftover_before):
        if forget(os.path.join(table.root, relative)):
            removed += 1
            bytes_removed += size
    _remove_old_directories(os.path.join(table.root, STAGING), leftover_before)
    return Expired(states=expiry.states, files=removed, bytes=bytes_removed)


def _sizes(root: str) -> Iterator[tuple[str, tuple[int, float]]]:
    """Files of kinds that tables consist of, outside of directories that nobody lists."""
    for relative, entry in _walk(root):
        if relative.endswith(_OWN_SUFFIXES) and not any(part.startswith("_") for part in relative.split("/")[:-1]):
            yield relative, entry


def _forget_old_intents(root: str, before: float) -> None:
    directory = os.path.join(root, INTENTS)
    for name, (_, modified) in _walk(directory):
        if modified < before:
            forget(os.path.join(directory, name))


def _abandoned(table: Table, ledger: Ledger, before: float) -> Iterator[tuple[str, tuple[int, float]]]:
    """Staged files that will not be published: of batches that the table holds, or too old; and unfinished files."""
    for relative, entry in _walk(os.path.join(table.root, STAGING)):
        application, batch, *_ = (*relative.split("/"), "")
        last = ledger(unquote(application))
        if entry[1] < before or (last is not None and batch.isdecimal() and int(batch) <= last):
            yield f"{STAGING}/{relative}", entry
    for directory in ("_spark_metadata", OWN, INTENTS):
        for relative, entry in _walk(os.path.join(table.root, directory)):
            if is_temporary(os.path.basename(relative)) and entry[1] < before:
                yield f"{directory}/{relative}", entry


def _walk(root: str) -> Iterator[tuple[str, tuple[int, float]]]:
    """Files below a directory: path relative to it, size in bytes and time of the last change in s since 1970."""
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            try:
                status = os.stat(path)
            except FileNotFoundError:
                continue
            yield os.path.relpath(path, root), (status.st_size, status.st_mtime)


def _remove_empty(path: str) -> None:
    """Remove a directory if there is nothing in it."""
    with contextlib.suppress(OSError):
        os.rmdir(path)


def _remove_old_directories(staging: str, before: float) -> None:
    """Remove empty directories of batches. A young one may be about to get a file."""
    for application in os.scandir(staging) if os.path.isdir(staging) else ():
        for batch in os.scandir(application.path):
            if batch.stat().st_mtime < before:
                _remove_empty(batch.path)
