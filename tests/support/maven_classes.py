"""Java clients from Maven Central: the packages that a pom.xml names, and scenarios compiled against them, kept."""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["class_path_of"]

BUILD = Path(__file__).resolve().parents[2] / "build"
BUILD_TIMEOUT_S = 300
_UNREACHABLE = (
    "Unknown host",
    "Connection refused",
    "Connect timed out",
    "Network is unreachable",
    "Connection reset",
)
"""How Maven says that there is no network, as opposed to a package that does not exist."""


def class_path_of(folder: Path) -> str:
    """The class path of scenarios, built if need be; tests that run side by side share it.

    Args:
        folder: has `pom.xml`, and the scenarios under `java`. Without a JDK, Maven or a network the test is skipped.
    """
    if shutil.which("java") is None or shutil.which("javac") is None or shutil.which("mvn") is None:
        pytest.skip("the Java client needs a JDK (17 or newer) and Maven, which are not on this machine")
    pom, cache = folder / "pom.xml", BUILD / folder.name
    sources = sorted((folder / "java").glob("*.java"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in [pom, *sources])).hexdigest()[:12]
    libraries = cache / f"libraries-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    classes = cache / f"classes-{digest}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (libraries / "made").exists():
            _fetch(pom, libraries)
            (libraries / "made").touch()
        if not (classes / "made").exists():
            command = ["javac", "-cp", f"{libraries}/*", "-d", str(classes), *map(str, sources)]
            subprocess.run(command, check=True, timeout=BUILD_TIMEOUT_S)
            (classes / "made").touch()
    return f"{classes}:{libraries}/*"


def _fetch(pom: Path, libraries: Path) -> None:
    shutil.rmtree(libraries, ignore_errors=True)  # what a run that was killed has left
    command = ["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={libraries}"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    if result.returncode:
        if any(word in result.stdout for word in _UNREACHABLE):
            pytest.skip("the Java client comes from Maven Central, which cannot be reached")
        pytest.fail(f"the Java client cannot be fetched: {result.stdout[-2000:]}")
