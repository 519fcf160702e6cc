"""The log of a Parquet table, which Spark reads too."""

import json
import os
import time
from pathlib import Path

import pytest

from millstream.spark.errors import TableError
from millstream.spark.tables.parquet_log import ParquetLog, SchemaFile
from millstream.spark.tables.table import Conflict, DataFile


def _file(root: Path, name: str, rows: int = 1) -> DataFile:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(b"rows")
    return DataFile(path=name, size_bytes=4, rows=rows, partition=(("day", None),))


def _begun(root: Path) -> tuple[ParquetLog, SchemaFile]:
    schema = SchemaFile(file=_file(root, "0-schema.parquet", 0), schema={}, partition_by=("day",), modified_ms=1)
    log = ParquetLog(str(root))
    log.replace(None, {}, schema, {}, {})
    return log, schema


def test_commits_follow_each_other(tmp_path: Path) -> None:
    log, _ = _begun(tmp_path)
    for number in range(25):
        base = log.read()
        assert base is not None
        log.append(base, [_file(tmp_path, f"a b/rows-{number}.parquet")], None, {"query": number})
    state = log.read()
    assert state is not None
    assert list(state.files) == [f"a b/rows-{number}.parquet" for number in range(25)]
    assert state.files["a b/rows-3.parquet"][0].partition == (("day", None),)
    assert state.ledger == {"query": 24}
    names = set(os.listdir(tmp_path / "_spark_metadata"))
    assert {"9.compact", "19.compact", "29.compact", "39.compact", "42", "43"} <= names
    line = json.loads((tmp_path / "_spark_metadata" / "43").read_text().splitlines()[1])
    assert line["path"] == (tmp_path / "a b" / "rows-24.parquet").as_uri()
    assert (line["size"], line["isDir"], line["action"]) == (4, False, "add")


def test_of_two_writers_one_gets_the_number(tmp_path: Path) -> None:
    log, schema = _begun(tmp_path)
    base = log.read()
    assert base is not None
    log.append(base, [_file(tmp_path, "rows-1.parquet")], None, {"a": 0})
    with pytest.raises(Conflict):
        log.append(base, [_file(tmp_path, "rows-2.parquet")], None, {"b": 0})
    with pytest.raises(Conflict):
        log.replace(base, {}, schema, {}, {})
    with pytest.raises(Conflict):
        log.replace(None, {}, schema, {}, {})
    state = log.read()
    assert state is not None
    assert (list(state.files), state.ledger) == (["rows-1.parquet"], {"a": 0})


def test_a_replacement_takes_the_numbers_before_its_own(tmp_path: Path) -> None:
    log, schema = _begun(tmp_path)
    for number in range(3):
        base = log.read()
        assert base is not None
        log.append(base, [_file(tmp_path, f"rows-{number}.parquet")], None, {})
    base = log.read()
    assert base is not None
    assert base.version == 21
    log.replace(base, log.dated([_file(tmp_path, "rows-new.parquet")]), schema, {}, {"rows-0.parquet": 5})
    with pytest.raises(Conflict):
        log.append(base, [], None, {})
    state = log.read()
    assert state is not None
    assert (state.version, list(state.files), state.removed) == (29, ["rows-new.parquet"], {"rows-0.parquet": 5})


def test_needless_files_of_the_log_go_in_time(tmp_path: Path) -> None:
    log, schema = _begun(tmp_path)
    directory = tmp_path / "_spark_metadata"
    for _ in range(12):
        log.replace(log.read(), {}, schema, {}, {})
    assert (directory / "9.compact").exists(), "young files stay"
    for name in os.listdir(directory):
        os.utime(directory / name, (time.time() - 3600, time.time() - 3600))
    log.replace(log.read(), {}, schema, {}, {})
    numbers = sorted(int(name.removesuffix(".compact")) for name in os.listdir(directory))
    assert (numbers[0], numbers[-1]) == (40, 139)


def test_logs_that_are_not_ours(tmp_path: Path) -> None:
    directory = tmp_path / "_spark_metadata"
    log, _ = _begun(tmp_path)
    (directory / "12").write_text("v1")
    with pytest.raises(TableError, match="has a gap between 9 and 12"):
        log.read()
    (directory / "9.compact").unlink()
    with pytest.raises(TableError, match="is the log of another sink; give the option path another directory"):
        log.read()
    (directory / "9.compact").write_text('v1\n{"path":"file:///x","size":1,"action":"add"}')
    (directory / "12").unlink()
    with pytest.raises(TableError, match="is the log of another sink"):
        log.read()
    (directory / "9.compact").write_text("v2\n")
    with pytest.raises(TableError, match="is of version 'v2'"):
        log.read()
