"""Runs scenarios written in JavaScript, with the clients of 2012 and 2013 that the lock file names."""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "millstream-tests"
INSTALL_TIMEOUT_S = 90
SCENARIO_TIMEOUT_S = 60

Run = Callable[..., None]


@pytest.fixture(scope="session")
def run() -> Run:
    """Runs a scenario of a module against a server. The packages are installed once, outside the project."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("the clients of Kafka 0.7 for Node.js need node and npm, which are not installed here")
    lock = (HERE / "package-lock.json").read_bytes()
    folder = CACHE / f"kafka07-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not folder.exists():
        _install(folder)

    def run_scenario(broker: str, module: str, scenario: str, **args: Any) -> None:
        result = subprocess.run(
            ["node", "--no-deprecation", str(HERE / "run.js"), module, scenario],
            env={**os.environ, "NODE_PATH": str(folder / "node_modules"), "BROKER": broker},
            input=json.dumps(args),
            capture_output=True,
            text=True,
            timeout=SCENARIO_TIMEOUT_S,
            check=False,
        )
        assert result.returncode == 0, result.stderr

    return run_scenario


def _install(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
    fresh.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, fresh)
    # Without its scripts: the one native package among them does not build any more, and is not used.
    command = ["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"]
    result = subprocess.run(
        command, cwd=fresh, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
    )
    if result.returncode:
        shutil.rmtree(fresh)
        pytest.fail(f"the clients cannot be installed: {result.stderr.strip()}")
    # Another run may have been faster.
    with contextlib.suppress(OSError):
        fresh.rename(folder)
    shutil.rmtree(fresh, ignore_errors=True)
