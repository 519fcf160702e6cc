"""Packages from Maven Central, fetched once and kept."""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

__all__ = ["packages_of"]

_FETCH_TIMEOUT_S: Final = 300
_UNREACHABLE: Final = (
    "Unknown host",
    "Connection refused",
    "Connect timed out",
    "Network is unreachable",
    "Connection reset",
)
"""How Maven says that there is no network, as opposed to a package that does not exist."""


def packages_of(pom: Path, cache: Path, *words: str) -> Path:
    """A directory with the packages that a pom names and all that they need; tests that run side by side share it.

    Args:
        pom: names them.
        cache: where such directories are kept.
        words: more of Maven's command line, which picks among them.

    Without Java, Maven or a network the test is skipped.
    """
    if shutil.which("java") is None or shutil.which("mvn") is None:
        pytest.skip("what this test drives comes through Maven, and needs Java: they are not on this machine")
    digest = hashlib.sha256(b"\0".join([pom.read_bytes(), *map(str.encode, words)])).hexdigest()[:12]
    libraries = cache / f"libraries-{digest}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{libraries.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (libraries / "made").exists():
            shutil.rmtree(libraries, ignore_errors=True)  # what a run that was killed has left
            _fetch(pom, libraries, words)
            (libraries / "made").touch()
    return libraries


def _fetch(pom: Path, libraries: Path, words: tuple[str, ...]) -> None:
    command = ["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={libraries}"]
    result = subprocess.run([*command, *words], capture_output=True, text=True, timeout=_FETCH_TIMEOUT_S, check=False)
    if result.returncode:
        if any(word in result.stdout for word in _UNREACHABLE):
            pytest.skip("what this test drives comes from Maven Central, which cannot be reached")
        pytest.fail(f"Maven cannot fetch {pom}: {result.stdout[-2000:]}")
