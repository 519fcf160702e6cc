"""`millstream table`, as a user calls it."""

import json
import subprocess
import sys
from pathlib import Path

from tests.spark.tables.writing import numbers_of, write_numbers


def _run(*arguments: str, fails: bool = False) -> str:
    command = [sys.executable, "-m", "millstream.cli.main", "table", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


def test_a_table_is_described_compacted_and_expired(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    for batch in range(3):
        write_numbers(path, range(batch * 10, batch * 10 + 10), batch, tableFormat="delta")
    told = json.loads(_run("describe", path, "--json"))
    assert (told["format"], told["files"], told["small_files"], told["rows"]) == ("delta", 6, 6, 30)
    assert told["columns"] == {"n": "bigint"}
    assert _run("describe", path).splitlines()[1] == "column\tn\tbigint\tno"
    before, after, *_, rows = _run("compact", path, "--file-size", "1M").split()
    assert (before, after, rows) == ("6", "1", "30")
    assert json.loads(_run("expire", path, "--older-than", "0s", "--json"))["files"] == 6
    assert numbers_of(path) == list(range(30))


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    for arguments, message in [
        (("describe", str(tmp_path)), f"error: there is no table in {tmp_path}; change the option path\n"),
        (("compact", str(tmp_path), "--file-size", "big"), "--file-size takes a number with a unit (K, M, G)"),
        (("expire", str(tmp_path), "--older-than", "1y"), "--older-than takes a number with a unit (s, m, h, d)"),
        (("describe", str(tmp_path), "--format", "orc"), "there is no format 'orc'; give --format one of parquet"),
        (("describe", str(tmp_path), "--catalog", "uri"), "--catalog takes KEY=VALUE"),
    ]:
        said = _run(*arguments, fails=True)
        assert message in said
        assert said.count("\n") == 1
