"""The log of a Parquet table: Spark's own log of a file sink, so that a plain `spark.read.parquet(path)` obeys it.

    _spark_metadata/N            what commit N adds
    _spark_metadata/N.compact    all there is after commit N, for every N with (N + 1) % 10 == 0

Each file is the line `v1` and a line of JSON for each file of the table, with Spark's fields (path, size, isDir,
modificationTime, blockReplication, blockSize, action) and one of ours, `millstream`, which Spark passes over:

    rows, partition              of a file with rows
    schema, partitionBy          of the file that carries the schema
    removed                      of the same: files that are in the table no more, with the time in ms since 1970
    ledger                       on the first line of a file: what the commit adds to the ledger; of a .compact, all

Spark finds the newest `.compact` and reads on from there; it derives the distance of 10 from the two newest, which is
why a table begins with two of them. A commit is a link to a whole file under the next number, which one of several
writers gets. One that must write a `.compact` before its turn first takes the numbers before it, as commits that add
nothing: so every number has one owner, and a state follows from the one before.

Source: Spark, FileStreamSinkLog, CompactibleFileStreamLog (allFiles, compactInterval, deriveCompactInterval).
"""

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from millstream.spark.errors import TableError
from millstream.spark.tables.durable import create_whole, forget, read_whole
from millstream.spark.tables.table import Conflict, DataFile

__all__ = ["DIRECTORY", "LogState", "ParquetLog", "SchemaFile"]

DIRECTORY: Final = "_spark_metadata"
_VERSION: Final = "v1"
_DISTANCE: Final = 10
"""Commits from one full listing to the next. Spark's own default."""

_KEPT: Final = 10 * _DISTANCE
"""Commits whose files are kept though newer full listings make them needless: a reader may be about to open them."""

_KEPT_MS: Final = 600_000
"""For how long at least they are kept. As long as Spark keeps its own (fileSink.log.cleanupDelay)."""

_BLOCK_BYTES: Final = 32 << 20
"""What Spark's local file system says of itself; nobody reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFile:
    """The file that carries the schema, and what else holds for the whole table.

    Args:
        file: the file; it has no rows.
        schema: the columns, as Spark writes a schema in JSON.
        partition_by: names of the partition columns.
        modified_ms: when the file was written.
    """

    file: DataFile
    schema: Mapping[str, Any]
    partition_by: tuple[str, ...]
    modified_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """What the log says after one of its commits.

    Args:
        version: number of the commit.
        schema_file: what holds for the whole table.
        files: the files with rows, by path, with the time they were written.
        removed: files that went, by path, with the time they did.
        ledger: numbers of the last micro-batches.
        full_listings: how many `.compact` files there are.
    """

    version: int
    schema_file: SchemaFile
    files: dict[str, tuple[DataFile, int]]
    removed: dict[str, int] = field(default_factory=dict)
    ledger: dict[str, int] = field(default_factory=dict)
    full_listings: int = 0


class ParquetLog:
    """The log of one table.

    Args:
        root: directory of the table.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._directory = os.path.join(root, DIRECTORY)

    def read(self) -> LogState | None:
        """The newest state; None if there is no log.

        Raises:
            TableError: the log is damaged, or Spark's own file sink has written it.
        """
        while True:
            numbers = self._numbers()
            if not numbers:
                return None
            latest = max(numbers)
            begin = max((number for number in numbers if _is_full(number)), default=None)
            if begin is None:
                raise TableError(
                    f"{self._directory} is the log of another sink; give the option path another directory"
                )
            contents = [read_whole(self._path(number)) for number in range(begin, latest + 1)]
            if None in contents:
                if self._numbers() == numbers:
                    raise TableError(f"{self._directory} has a gap between {begin} and {latest}: files were deleted")
                # Another writer has tidied up between the two looks.
                continue
            full = sum(_is_full(number) for number in numbers)
            return self._state(latest, full, [_lines(content or b"", self._directory) for content in contents])

    def append(
        self, base: LogState, add: Iterable[DataFile], schema: SchemaFile | None, ledger: dict[str, int]
    ) -> None:
        """Add files to a state.

        Args:
            base: the state, as `read` gave it.
            add: new files with rows.
            schema: what the table is to be from now on; None if it stays.
            ledger: what to add to the ledger.

        Raises:
            Conflict: there is another state by now.
        """
        number = base.version + 1
        if _is_full(number) or base.full_listings < 2:
            files = {**base.files, **self.dated(add)}
            self.replace(base, files, schema or base.schema_file, {**base.ledger, **ledger}, base.removed)
            return
        lines = [] if schema is None else [self._schema_line(schema, {})]
        lines += [self._line(file, at) for file, at in self.dated(add).values()]
        if not lines:
            lines = [self._schema_line(base.schema_file, {})]
        lines[0]["millstream"]["ledger"] = ledger
        self._take(number, lines)

    def replace(
        self,
        base: LogState | None,
        files: dict[str, tuple[DataFile, int]],
        schema: SchemaFile,
        ledger: dict[str, int],
        removed: dict[str, int],
    ) -> None:
        """Make a state of all that is given; the arguments are as in `LogState`. Raises Conflict."""
        # A log begins with a full listing; all who make the table at once want this same name.
        number = _DISTANCE - 1 if base is None else base.version + 1
        while not _is_full(number):
            self._take(number, [])
            number += 1
        head = self._schema_line(schema, removed)
        head["millstream"]["ledger"] = ledger
        self._take(number, [head, *(self._line(file, at) for file, at in files.values())])
        self._tidy(number)

    def dated(self, add: Iterable[DataFile]) -> dict[str, tuple[DataFile, int]]:
        """Files by path, with the time they were written."""
        return {file.path: (file, int(os.stat(os.path.join(self._root, file.path)).st_mtime * 1000)) for file in add}

    def _numbers(self) -> list[int]:
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return []
        stems = ((name.removesuffix(".compact"), name) for name in names)
        numbers = ((int(stem), name) for stem, name in stems if stem.isdecimal())
        return [number for number, name in numbers if name.endswith(".compact") == _is_full(number)]

    def _path(self, number: int) -> str:
        return os.path.join(self._directory, f"{number}.compact" if _is_full(number) else str(number))

    def _take(self, number: int, lines: list[dict[str, Any]]) -> None:
        content = "\n".join([_VERSION, *(json.dumps(line, ensure_ascii=False) for line in lines)])
        if not create_whole(self._path(number), content.encode()):
            raise Conflict

    def _tidy(self, newest: int) -> None:
        """Remove files that no state since long needs, so that the log does not outgrow the table."""
        before = time.time() - _KEPT_MS / 1000
        for number in self._numbers():
            path = self._path(number)
            if number <= newest - _KEPT and os.stat(path).st_mtime < before:
                forget(path)

    def _state(self, version: int, full: int, commits: list[list[dict[str, Any]]]) -> LogState:
        schema: SchemaFile | None = None
        files: dict[str, tuple[DataFile, int]] = {}
        removed: dict[str, int] = {}
        ledger: dict[str, int] = {}
        for line in (line for commit in commits for line in commit):
            ours = line.get("millstream")
            if ours is None:
                raise TableError(
                    f"{self._directory} is the log of another sink; give the option path another directory"
                )
            ledger.update(ours.get("ledger", {}))
            file = DataFile(
                path=self._relative(line["path"]),
                size_bytes=line["size"],
                rows=ours.get("rows", 0),
                partition=tuple((name, value) for name, value in ours.get("partition", ())),
            )
            if "schema" not in ours:
                files[file.path] = (file, line["modificationTime"])
                continue
            removed.update(ours.get("removed", {}))
            schema = SchemaFile(
                file=file,
                schema=ours["schema"],
                partition_by=tuple(ours["partitionBy"]),
                modified_ms=line["modificationTime"],
            )
        if schema is None:
            raise TableError(f"{self._directory} is damaged: it does not say which columns the table has")
        return LogState(
            version=version, schema_file=schema, files=files, removed=removed, ledger=ledger, full_listings=full
        )

    def _relative(self, uri: str) -> str:
        return os.path.relpath(unquote(urlsplit(uri).path), self._root)

    def _line(self, file: DataFile, modified_ms: int) -> dict[str, Any]:
        return {
            "path": Path(self._root, file.path).as_uri(),
            "size": file.size_bytes,
            "isDir": False,
            "modificationTime": modified_ms,
            "blockReplication": 1,
            "blockSize": _BLOCK_BYTES,
            "action": "add",
            "millstream": {"rows": file.rows, "partition": file.partition},
        }

    def _schema_line(self, schema: SchemaFile, removed: dict[str, int]) -> dict[str, Any]:
        line = self._line(schema.file, schema.modified_ms)
        line["millstream"] = {"schema": schema.schema, "partitionBy": schema.partition_by, "removed": removed}
        return line


def _is_full(number: int) -> bool:
    return (number + 1) % _DISTANCE == 0


def _lines(content: bytes, where: str) -> list[dict[str, Any]]:
    version, *lines = content.decode().splitlines()
    if version != _VERSION:
        raise TableError(f"{where} is of version {version!r}, which is not known here")
    return [json.loads(line) for line in lines if line]
