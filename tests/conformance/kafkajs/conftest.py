"""Runs scenarios written in JavaScript, with the packages that the lock file names."""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "millstream-tests"
INSTALL_TIMEOUT_S = 90
SCENARIO_TIMEOUT_S = 100


class Scenarios:
    """Runs scenarios against a server.

    Args:
        modules: the `node_modules` folder with the packages.
    """

    def __init__(self, modules: Path) -> None:
        self._modules = modules

    def start(self, broker: str, module: str, scenario: str, **args: Any) -> "subprocess.Popen[str]":
        """Start a scenario."""
        process = subprocess.Popen(
            ["node", str(HERE / "run.js"), module, scenario],
            env={
                **os.environ,
                "NODE_PATH": str(self._modules),
                "BROKER": broker,
                "KAFKAJS_NO_PARTITIONER_WARNING": "1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(args))
        process.stdin.close()
        process.stdin = None
        return process

    def __call__(self, broker: str, module: str, scenario: str, **args: Any) -> None:
        """Run a scenario to its end; what it throws is a failure."""
        with self.killed_at_the_end(self.start(broker, module, scenario, **args)) as process:
            _, errors = process.communicate(timeout=SCENARIO_TIMEOUT_S)
            assert process.returncode == 0, errors

    @staticmethod
    @contextlib.contextmanager
    def killed_at_the_end(process: "subprocess.Popen[str]") -> Iterator["subprocess.Popen[str]"]:
        """See that a process does not outlive the block."""
        with process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture(scope="session")
def scenarios() -> Scenarios:
    """The scenarios. Their packages are installed once, into a cache outside the project."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("kafkajs needs node and npm, which are not installed here")
    lock = (HERE / "package-lock.json").read_bytes()
    folder = CACHE / f"kafkajs-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not folder.exists():
        _install(folder)
    return Scenarios(folder / "node_modules")


def _install(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
    fresh.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, fresh)
    command = ["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"]
    result = subprocess.run(
        command, cwd=fresh, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
    )
    if result.returncode:
        shutil.rmtree(fresh)
        pytest.fail(f"kafkajs cannot be installed: {result.stderr.strip()}")
    # Another run may have been faster.
    with contextlib.suppress(OSError):
        fresh.rename(folder)
    shutil.rmtree(fresh, ignore_errors=True)
