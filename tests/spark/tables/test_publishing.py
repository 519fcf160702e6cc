"""Commits that meet: one batch from two drivers, several writers, files that were written for another table."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from millstream.spark.errors import StaleBatch, TableError
from millstream.spark.tables import live_files
from millstream.spark.tables.ledger import Batch
from millstream.spark.tables.options import TableOptions
from millstream.spark.tables.publishing import batch_directory, publish
from millstream.spark.tables.staging import Staging, WritePlan
from millstream.spark.tables.table import DataFile
from millstream.spark.tables.writers import plan_write
from tests.spark.tables.conftest import FORMATS
from tests.spark.tables.writing import number_type, numbers_of, rows_of, write_numbers

_ROOT = Path(__file__).parents[3]
_WRITER = """
import sys
from tests.spark.tables.writing import write_numbers
for batch in range(10):
    start = int(sys.argv[3]) * 1000 + batch * 10
    write_numbers(sys.argv[1], range(start, start + 10), tableFormat=sys.argv[2])
"""


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each format."""
    return str(request.param)


def _staged(path: str, kind: str, numbers: range) -> tuple[WritePlan, list[DataFile]]:
    import pyarrow as pa

    plan = plan_write(TableOptions.of({"path": path, "tableFormat": kind}, reads=False), number_type())
    rows = pa.table({"n": list(numbers)})
    return plan, Staging(plan, batch_directory("query", "1"), "00000").write(rows.to_batches())


def _publish(plan: WritePlan, files: list[DataFile]) -> bool:
    batch = Batch("query", 1, "query")
    return publish(plan, files, batch, overwrites=False, changes_schema=False, keeps_empty=True)


def test_two_drivers_of_one_query(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was thought dead commits in the very moment in which the other is about to."""
    path = str(tmp_path)
    write_numbers(path, range(10), 0, tableFormat=kind)
    zombie, alive = _staged(path, kind, range(10, 20)), _staged(path, kind, range(10, 20))
    commit = type(alive[0].table).commit

    def late(table: Any, state: Any, change: Any) -> None:
        monkeypatch.undo()
        assert _publish(*zombie)
        commit(table, state, change)

    monkeypatch.setattr(type(alive[0].table), "commit", late)
    assert not _publish(*alive), "the ledger was looked at again"
    assert numbers_of(path) == list(range(20))
    there = {str(file) for file in tmp_path.rglob("rows-*.parquet")}
    assert there == set(live_files(path)), "no file of the slower one is left"


@pytest.mark.timeout(240)
def test_several_writers_at_once(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_numbers(path, range(5), tableFormat=kind)
    command = [sys.executable, "-c", _WRITER, path, kind]
    writers = [subprocess.Popen([*command, str(number)], cwd=_ROOT) for number in (1, 2, 3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    expected = [number * 1000 + n for number in (1, 2, 3) for n in range(100)]
    assert numbers_of(path) == [*range(5), *expected]


def test_a_table_that_was_made_meanwhile_with_other_partitions(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path)
    plan, files = _staged(path, kind, range(10))
    schema = number_type(m="long")
    write_numbers(path, (), schema=schema, rows=[{"n": 1, "m": 2}], tableFormat=kind, partitionBy="m")
    with pytest.raises(TableError, match="while these rows were written with others; run it again"):
        _publish(plan, files)
    assert numbers_of(path) == [1]
    moved = [replace(file, path=f"data/{file.path}") for file in files]
    assert not any((tmp_path / file.path).exists() for file in (*files, *moved))


def test_an_older_checkpoint_is_told(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path)
    for batch in range(3):
        write_numbers(path, range(batch, batch + 1), batch, tableFormat=kind)
    with pytest.raises(StaleBatch, match="the checkpoint is older than the table"):
        write_numbers(path, range(1, 2), 1, tableFormat=kind)
    assert numbers_of(path) == [0, 1, 2]
    assert not list((tmp_path / "_millstream" / "staging").rglob("*.parquet"))


def test_texts_in_partition_columns(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path)
    texts = ["a/b=c%", "Köln Süd", "", None, ".", "x" * 120]
    rows = [{"n": n, "text": text} for n, text in enumerate(texts)]
    write_numbers(path, (), schema=number_type(text="string"), rows=rows, tableFormat=kind, partitionBy="text")
    kept = texts if kind == "iceberg" else [text or None for text in texts]
    assert [row["text"] for row in sorted(rows_of(path), key=lambda row: int(row["n"]))] == kept
