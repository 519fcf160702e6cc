"""Clients whose packages cannot live beside the project's own: each in a virtual environment that is made once."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

__all__ = ["client_venv"]

CLIENTS = Path(__file__).resolve().parents[2] / "build" / "clients"
INSTALL_TIMEOUT_S = 100
_UNREACHABLE = ("NewConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ProxyError", "NameResolutionError")
"""How pip names a network that is not there, as opposed to a package that cannot be installed."""


def client_venv(name: str, requirements: Sequence[str]) -> Path:
    """The Python of a virtual environment with some packages from PyPI, made at the first use and kept.

    Tests that run side by side share it: one makes it, the others wait. Without a network the test is skipped.

    Args:
        name: the client's, for the folder.
        requirements: what pip installs, each with its exact version, as other requirements make another environment.

    Returns:
        The path of its python.
    """
    digest = hashlib.sha256(repr((sys.version_info[:2], sorted(requirements))).encode()).hexdigest()[:12]
    folder = CLIENTS / f"{name}-{digest}"
    python = folder / "bin" / "python"
    CLIENTS.mkdir(parents=True, exist_ok=True)
    with (CLIENTS / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = folder / "made"
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)  # what a run that was killed has left
            _install(name, folder, python, requirements)
            made.touch()
    return python


def _install(name: str, folder: Path, python: Path, requirements: Sequence[str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=INSTALL_TIMEOUT_S)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "2"]
    try:
        result = subprocess.run(
            [*pip, *requirements], capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{name} was not installed within {INSTALL_TIMEOUT_S} s")
    if result.returncode == 0:
        return
    if any(word in result.stderr for word in _UNREACHABLE):
        pytest.skip(f"{name} is installed from PyPI, which cannot be reached")
    pytest.fail(f"{name} cannot be installed: {result.stderr.strip()}")
