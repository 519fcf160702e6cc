"""Compaction and expiry: the rows stay what they are, and so does the ledger, whatever else goes on."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from millstream.spark.errors import TableMissing
from millstream.spark.tables import compact, describe, expire, live_files
from tests.spark.tables.conftest import FORMATS
from tests.spark.tables.writing import number_type, numbers_of, rows_of, write_numbers

_ROOT = Path(__file__).parents[3]
_WRITER = """
import sys
from tests.spark.tables.writing import write_numbers
for batch in range(25):
    write_numbers(sys.argv[1], range(batch * 10, batch * 10 + 10), batch, tableFormat=sys.argv[2])
"""


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each format."""
    return str(request.param)


def test_compaction_keeps_rows_partitions_and_ledger(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path)
    schema = number_type(day="date", text="string")
    import datetime

    days = [datetime.date(2026, 1, 1), None, datetime.date(2026, 1, 2)]
    rows = [{"n": n, "day": days[n % 3], "text": "x" * (n % 5)} for n in range(60)]
    for batch in range(6):
        part = rows[batch * 10 : batch * 10 + 10]
        write_numbers(path, (), batch, schema=schema, rows=part, tableFormat=kind, partitionBy="day")
    before = describe(path)
    done = compact(path)
    after = describe(path)
    assert done.files_before == before.files == before.small_files
    assert done.files_after == after.files == 3, "one file for each day"
    assert after.rows == done.rows == 60
    assert after.partition_by == ("day",)
    assert sorted(rows_of(path), key=lambda row: int(row["n"])) == rows
    assert compact(path).files_before == 0, "there is nothing left to do"
    assert not write_numbers(path, (), 5, schema=schema, rows=rows[50:], tableFormat=kind), "batch 5 is there already"


def test_expiry_takes_only_what_is_not_needed(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path)
    for batch in range(4):
        write_numbers(path, range(batch * 10, batch * 10 + 10), batch, tableFormat=kind)
    compact(path)
    replaced = [file for file in Path(path).rglob("rows-*.parquet") if str(file) not in live_files(path)]
    assert len(replaced) == 8
    assert expire(path).files == 0, "a reader may still be at them"
    assert all(file.exists() for file in replaced)
    assert expire(path, older_than_s=0).files >= 8
    assert not any(file.exists() for file in replaced)
    assert numbers_of(path) == list(range(40))
    write_numbers(path, range(3), overwrites=True, tableFormat=kind)
    expire(path, older_than_s=0)
    assert len(list(Path(path).rglob("rows-*.parquet"))) == len(live_files(path))
    assert not write_numbers(path, range(30, 40), 3, tableFormat=kind), "the ledger outlives all of it"
    assert numbers_of(path) == [0, 1, 2]


def test_expiry_sweeps_what_failed_attempts_left(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_numbers(path, range(10), 7, tableFormat=kind)
    staged = tmp_path / "_millstream" / "staging" / "query"
    prefix = "data/" if kind == "iceberg" else ""
    old, new = time.time() - 90_000, time.time()
    for name, changed, goes in [
        (staged / "7" / "rows-zombie.parquet", new, True),  # of a batch that the table holds
        (staged / "8" / "rows-old.parquet", old, True),
        (staged / "8" / "rows-new.parquet", new, False),
        (tmp_path / f"{prefix}rows-orphan.parquet", old, True),
        (tmp_path / f"{prefix}rows-moving.parquet", new, False),
        (tmp_path / f"{prefix}notes.txt", old, False),
    ]:
        name.parent.mkdir(parents=True, exist_ok=True)
        name.write_bytes(b"rows")
        os.utime(name, (changed, changed))
        expire(path)
        assert name.exists() != goes, name
    assert numbers_of(path) == list(range(10))


@pytest.mark.timeout(240)
def test_jobs_beside_a_writer(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    command = [sys.executable, "-c", _WRITER, path, kind]
    writer = subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.PIPE)
    compacted = 0
    while writer.poll() is None:
        try:
            compacted += compact(path).files_before
            expire(path, older_than_s=0)
        except TableMissing:
            continue
        seen = numbers_of(path)
        assert seen == list(range(len(seen))), "at any time, whole batches"
    assert writer.returncode == 0, (writer.stderr or sys.stdin).read()[-2000:]
    assert compacted > 0
    assert numbers_of(path) == list(range(250))
    compact(path)
    expire(path, older_than_s=0)
    assert numbers_of(path) == list(range(250))


def test_there_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableMissing, match=r"there is no table in .*; change the option path"):
        compact(str(tmp_path))
