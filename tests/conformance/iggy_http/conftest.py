"""A server with an Iggy and an HTTP listener, and today's Python package in an environment of its own."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.client_venv import client_venv
from tests.support.server_process import ServerProcess, serving

ROOT = Path(__file__).parents[3]
SCRIPT_TIMEOUT_S = 60

Script = Callable[..., None]
"""Runs a script with the package's Python; what the script asserts is a failure of the test."""


@pytest.fixture(scope="session")
def http_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A real server process, shared by the whole run. Nothing in it may go wrong unseen."""
    with serving(str(tmp_path_factory.mktemp("iggy-http") / "data"), listen="any=127.0.0.1:0") as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture(scope="session")
def script(http_server: ServerProcess) -> Script:
    """Runs scripts of this folder, which are told the URL of the HTTP API and the address of the protocol."""

    def run(name: str, *args: str) -> None:
        python = client_venv("apache-iggy-0.9.0", ["apache-iggy==0.9.0"])
        address = http_server.addresses["any"]
        command = [str(python), "-m", f"tests.conformance.iggy_http.{name}", f"http://{address}", address, *args]
        result = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=SCRIPT_TIMEOUT_S, check=False
        )
        assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"

    return run
