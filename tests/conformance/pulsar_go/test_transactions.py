"""Transactions of the Go client."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.server_process import ServerProcess


@pytest.mark.timeout(700)
@pytest.mark.parametrize("scenario", ["commit", "abort", "timeout", "transform"])
def test_transactions(server: ServerProcess, program: Path, unique: Callable[[str], str], scenario: str) -> None:
    command = [str(program), f"pulsar://{server.addresses['any']}", scenario, unique(f"go-{scenario}")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
