"""A write is killed, or fails, at each of its steps in turn: afterwards every row is there once."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.tables.conftest import FORMATS

_ROOT = Path(__file__).parents[3]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["kill", "fail", "full"])
@pytest.mark.parametrize("table_format", FORMATS)
def test_no_row_is_lost_or_doubled(table_format: str, how: str, tmp_path: Path) -> None:
    """`kill` ends the process before a step, `fail` has the step fail, `full` has the kernel refuse long files."""
    command = [sys.executable, "-m", "tests.spark.tables.crashing", str(tmp_path), table_format, how]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= (2 if how == "full" else 15), "so many steps are known"
