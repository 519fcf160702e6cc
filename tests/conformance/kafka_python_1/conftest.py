"""kafka-python 1.x: the last releases with the clients of 0.8, in a process and an environment of their own."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.client_venv import client_venv

SCENARIO_TIMEOUT_S = 100
_RUN = Path(__file__).with_name("run.py")
_REQUIREMENTS = ("kafka-python==1.4.7", "lz4==4.4.4", "python-snappy==0.7.3", "six==1.17.0", "xxhash==3.5.0")

Scenario = Callable[..., Any]


@pytest.fixture(scope="session")
def scenario() -> Scenario:
    """Runs a scenario of `run.py` to its end; what it returns comes back, what it raises is a failure."""
    python = client_venv("kafka-python-1", _REQUIREMENTS)

    def run(name: str, **args: Any) -> Any:
        result = subprocess.run(
            [str(python), str(_RUN), name],
            input=json.dumps(args),
            capture_output=True,
            text=True,
            timeout=SCENARIO_TIMEOUT_S,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return run
