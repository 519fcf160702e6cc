"""A server with an Iggy listener, and the Python packages of every release, each in an environment of its own."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.client_venv import client_venv
from tests.support.server_process import ServerProcess, serving

ROOT = Path(__file__).parents[3]
SCRIPT_TIMEOUT_S = 60
PACKAGES = {
    "iggy-py 0.4.0": "iggy-py==0.4.0",
    "apache-iggy 0.5.0": "apache-iggy==0.5.0",
    "apache-iggy 0.6.0": "apache-iggy==0.6.0",
    "apache-iggy 0.7.0": "apache-iggy==0.7.0",
    "apache-iggy 0.8.0": "apache-iggy==0.8.0",
    "apache-iggy 0.9.0": "apache-iggy==0.9.0",
}
IN_DEVELOPMENT = "apache-iggy 0.9.1.dev5"

Script = Callable[..., str]
"""Runs a script with a release's Python against the server; what the script asserts is a failure of the test."""


@pytest.fixture(scope="session")
def iggy_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A real server process for the whole run, one port for all protocols. Nothing in it may go wrong unseen."""
    data_dir = str(tmp_path_factory.mktemp("iggy") / "data")
    with serving(data_dir, listen="any=127.0.0.1:0") as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture(scope="session")
def script(iggy_server: ServerProcess) -> Script:
    """Runs scripts of this folder."""

    def run(name: str, package: str, *args: str) -> str:
        python = client_venv(package.replace(" ", "-"), [PACKAGES.get(package, package.replace(" ", "=="))])
        command = [str(python), "-m", f"tests.conformance.iggy_apache.{name}", iggy_server.addresses["any"], *args]
        result = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=SCRIPT_TIMEOUT_S, check=False
        )
        assert result.returncode == 0, f"{package}: {result.stdout}\n{result.stderr}"
        return result.stdout

    return run
