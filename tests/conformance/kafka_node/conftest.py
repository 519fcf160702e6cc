"""kafka-node, which speaks the protocol of 0.8 to 0.10 and knows no record batches."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.client_modules import client_modules

SCENARIO_TIMEOUT_S = 100
_HERE = Path(__file__).parent

Scenario = Callable[..., None]


@pytest.fixture(scope="session")
def scenario() -> Scenario:
    """Runs a scenario of `run.js` to its end; what it throws is a failure."""
    modules = client_modules("kafka-node", _HERE)

    def run(broker: str, name: str, **args: Any) -> None:
        result = subprocess.run(
            ["node", str(_HERE / "run.js"), name],
            input=json.dumps(args),
            env={**os.environ, "NODE_PATH": str(modules), "NODE_NO_WARNINGS": "1", "BROKER": broker},
            capture_output=True,
            text=True,
            timeout=SCENARIO_TIMEOUT_S,
            check=False,
        )
        assert result.returncode == 0, result.stderr

    return run
