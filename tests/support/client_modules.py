"""Clients from npm: the packages that a lock file names, installed once and kept."""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.client_venv import CLIENTS

__all__ = ["client_modules"]

INSTALL_TIMEOUT_S = 90
_NOT_REACHED = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ERR_SOCKET_TIMEOUT")


def client_modules(name: str, folder: Path) -> Path:
    """The `node_modules` of a client. Without node, npm or a network the test is skipped.

    Args:
        name: the client's, for the folder.
        folder: where its `package.json` and `package-lock.json` lie.
    """
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip(f"{name} needs node and npm, which are not installed here")
    digest = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()[:12]
    target = CLIENTS / f"{name}-{digest}"
    CLIENTS.mkdir(parents=True, exist_ok=True)
    with (CLIENTS / f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = target / "made"
        if not made.exists():
            shutil.rmtree(target, ignore_errors=True)  # what a run that was killed has left
            target.mkdir()
            for file in ("package.json", "package-lock.json"):
                shutil.copy(folder / file, target)
            _install(name, target)
            made.touch()
    return target / "node_modules"


def _install(name: str, target: Path) -> None:
    command = ["npm", "ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"]
    result = subprocess.run(
        command, cwd=target, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
    )
    if result.returncode == 0:
        return
    if any(word in result.stderr for word in _NOT_REACHED):
        pytest.skip(f"{name} is installed from npm, which cannot be reached")
    pytest.fail(f"{name} cannot be installed: {result.stderr.strip()}")
