"""A process that writes to a table and is killed, or meets a full disk, at one step after the other.

    python -m tests.spark.tables.crashing DIRECTORY FORMAT kill|fail

Each step (a rename, a link, a flush, a removal; or the call by which a format commits) is tried in a process of its
own, forked from one that has imported everything. After each, the table must hold the micro-batch wholly or not at
all; after the batch was run again, as Spark does it, exactly once. Prints how many steps there were.
"""

import errno
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import deltalake
import pyiceberg.catalog
import pyiceberg.catalog.sql
import pyiceberg.io.pyarrow

from tests.spark.tables.writing import numbers_of, write_numbers

_MOST_STEPS: Final = 400
_STEPS: Final = (
    *((os, name) for name in ("rename", "replace", "link", "unlink", "fsync", "mkdir", "rmdir")),
    (deltalake.DeltaTable, "create_write_transaction"),
    (pyiceberg.catalog.MetastoreCatalog, "_write_metadata"),
    (pyiceberg.catalog.sql.SqlCatalog, "commit_table"),
)
_NEVER_REACHED: Final = 7
_FILE_LIMITS: Final = (1, 500, 700, 1_000, 1_500, 2_000, 3_000, 6_000)
_BEFORE: Final = list(range(20))
_BATCH: Final = list(range(20, 50))
_AFTER: Final = list(range(50, 60))


class _Countdown:
    """Lets so many steps pass, and does something before the next."""

    def __init__(self, steps: int, act: Callable[[], None]) -> None:
        self.left = steps
        self._act = act

    def install(self) -> None:
        for owner, name in _STEPS:
            is_static = isinstance(vars(owner).get(name), staticmethod)
            counted = self._counted(getattr(owner, name))
            setattr(owner, name, staticmethod(counted) if is_static else counted)

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left == -1:
                self._act()
            return function(*arguments, **options)

        return counted


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _fail() -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


def _forked(work: Callable[[], None]) -> int:
    """Do something in a forked process; returns its wait status."""
    child = os.fork()
    if child == 0:
        # With `_exit`, so that nothing of the parent is done twice.
        try:
            work()
        except OSError as error:
            os._exit(3 if error.errno in {errno.ENOSPC, errno.EFBIG} else 4)
        except BaseException as error:  # noqa: BLE001 - of a child only the status comes back
            print(type(error).__name__, error, file=sys.stderr)
            os._exit(5)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def _check(condition: bool, what: str) -> None:
    if not condition:
        raise SystemExit(what)


def _leftovers(path: str) -> list[str]:
    """Files with rows that are in no table, and staged ones."""
    from millstream.spark.tables import live_files

    live = set(live_files(path))
    return [str(file) for file in Path(path).rglob("rows-*.parquet") if str(file) not in live]


def run_again(path: str, table_format: str, step: str) -> None:
    """Run the batch again, and the next; check that every row is there once, and nothing else."""

    def again() -> None:
        seen = numbers_of(path)
        _check(seen in (_BEFORE, _BEFORE + _BATCH), f"{step}: a part of a batch is in the table: {seen}")
        write_numbers(path, _BATCH, 1, tableFormat=table_format)
        _check(not write_numbers(path, _BATCH, 1, tableFormat=table_format), f"{step}: the ledger has no batch 1")
        _check(numbers_of(path) == _BEFORE + _BATCH, f"{step}: after the repetition: {numbers_of(path)}")
        _check(write_numbers(path, _AFTER, 2, tableFormat=table_format), f"{step}: batch 2 is not new")
        _check(numbers_of(path) == _BEFORE + _BATCH + _AFTER, f"{step}: after batch 2: {numbers_of(path)}")
        _check(not _leftovers(path), f"{step}: files are left over: {_leftovers(path)}")

    # A library that has begun to use threads does not survive a fork: the parent never opens a table.
    _check(_forked(again) == 0, f"{step}: the repetition failed")


class _Table:
    """A table with one batch, to which one returns.

    Args:
        directory: where it may be made.
        table_format: of which format.
    """

    def __init__(self, directory: str, table_format: str) -> None:
        self.path = os.path.join(directory, "table")
        self._kept = os.path.join(directory, "kept")
        _check(_forked(lambda: _write(self.path, _BEFORE, 0, table_format)) == 0, "the first batch failed")
        shutil.copytree(self.path, self._kept, copy_function=shutil.copy2)

    def restore(self) -> None:
        """Make it what it was, at the same place: logs hold absolute paths."""
        shutil.rmtree(self.path)
        shutil.copytree(self._kept, self.path, copy_function=shutil.copy2)


def _write(path: str, numbers: list[int], batch: int, table_format: str) -> None:
    write_numbers(path, numbers, batch, tableFormat=table_format)


def steps(directory: str, table_format: str, act: Callable[[], None]) -> int:
    """Try all steps; returns how many there were."""
    table = _Table(directory, table_format)
    for step in range(_MOST_STEPS):
        table.restore()

        def write(step: int = step) -> None:
            countdown = _Countdown(step, act)
            countdown.install()
            _write(table.path, _BATCH, 1, table_format)
            if countdown.left >= 0:
                os._exit(_NEVER_REACHED)

        status = _forked(write)
        run_again(table.path, table_format, f"step {step}")
        if os.waitstatus_to_exitcode(status) == _NEVER_REACHED:
            return step
    raise SystemExit("there is no end of steps")


def full(directory: str, table_format: str) -> int:
    """Have the kernel refuse to write files beyond a size, for sizes from small to large; returns how many failed."""
    table, failed = _Table(directory, table_format), 0
    for limit in _FILE_LIMITS:
        table.restore()

        def write(limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            _write(table.path, _BATCH, 1, table_format)

        failed += _forked(write) != 0
        run_again(table.path, table_format, f"files of {limit} bytes at most")
    return failed


def main(directory: str, table_format: str, how: str) -> int:
    """Import all there is to import, then try."""
    _write(os.path.join(directory, "warm"), _BEFORE, 0, "parquet")
    if how == "full":
        return full(directory, table_format)
    return steps(directory, table_format, _die if how == "kill" else _fail)


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
