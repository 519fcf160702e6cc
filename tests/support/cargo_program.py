"""Clients from crates.io: the program in a folder of the tests, built once with what its lock file names."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["BUILD_TIMEOUT_S", "cargo_program"]

BUILD = Path(__file__).resolve().parents[2] / "build"
BUILD_TIMEOUT_S = 900
"""The first build fetches and compiles some hundred crates; those after it take seconds."""
_TOO_OLD = "requires rustc"
"""How Cargo says that it is older than a crate wants it."""


def cargo_program(folder: Path) -> Path:
    """The program of a folder, built if need be; tests that run side by side share it.

    Args:
        folder: has `Cargo.toml`, `Cargo.lock` and `src`. Without Cargo, C compiler or network the test is skipped.
    """
    if shutil.which("cargo") is None or shutil.which("cc") is None:
        pytest.skip("the Rust client needs Cargo and a C compiler, which are not on this machine")
    files = [folder / "Cargo.toml", folder / "Cargo.lock", *sorted((folder / "src").glob("*.rs"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
    cache = BUILD / folder.name
    built = cache / f"scenarios-{digest}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            _build(folder, cache / "target")
            shutil.copy(cache / "target" / "debug" / "scenarios", built)
    return built


def _build(folder: Path, target: Path) -> None:
    fetched = _cargo(folder, "fetch", "--locked")
    if fetched.returncode:
        # The lock file names what exists, so that it is the network, or a Cargo that is too old for the file.
        pytest.skip(f"the crates of the Rust client cannot be fetched: {fetched.stderr.strip()[-200:]}")
    result = _cargo(folder, "build", "--locked", "--quiet", "--target-dir", str(target))
    if result.returncode and _TOO_OLD in result.stderr:
        pytest.skip(f"the Rust client needs a newer Rust: {result.stderr.strip()[-200:]}")
    assert result.returncode == 0, result.stderr[-3000:]


def _cargo(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["cargo", *words],
        cwd=folder,
        env={**os.environ, **_openssl()},
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )


def _openssl() -> dict[str, str]:
    """What makes a crate take the OpenSSL of the machine, where there is one, and not build its own."""
    if shutil.which("pkg-config") is None:
        return {}
    found = subprocess.run(["pkg-config", "--exists", "openssl"], check=False)
    return {} if found.returncode else {"OPENSSL_NO_VENDOR": "1"}
