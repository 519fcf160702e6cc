"""pulsar-rs, which speaks version 12 of the protocol, through a bridge with a Python face."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client_venv import client_venv
from tests.support.server_process import ServerProcess, serving

SCENARIO_TIMEOUT_S = 60
_RUN = Path(__file__).with_name("run.py")
_REQUIREMENTS = ("mq-bridge==1.2.0", "mq-bridge-pulsar==0.1.6", "mq-bridge-py==0.4.16", "typing_extensions==4.16.0")

Scenario = Callable[..., Any]


@pytest.fixture(scope="session")
def rust_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A real server process with one port for everything. Nothing in it may go wrong unseen."""
    with serving(str(tmp_path_factory.mktemp("pulsar-rust") / "data"), "any=127.0.0.1:0") as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture(scope="session")
def scenario(rust_server: ServerProcess) -> Scenario:
    """Runs a scenario of `run.py` to its end; what it returns comes back, what it raises is a failure."""
    python = client_venv("pulsar-rust", _REQUIREMENTS)

    def run(name: str, **args: Any) -> Any:
        result = subprocess.run(
            [str(python), str(_RUN), name],
            input=json.dumps({"url": f"pulsar://{rust_server.addresses['any']}", **args}),
            capture_output=True,
            text=True,
            timeout=SCENARIO_TIMEOUT_S,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return run
