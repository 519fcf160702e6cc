"""Java clients from Maven Central: the packages that a pom.xml names, and scenarios compiled against them, kept."""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.maven import packages_of

__all__ = ["class_path_of"]

_BUILD: Final = Path(__file__).resolve().parents[2] / "build"
_COMPILE_TIMEOUT_S: Final = 300


def class_path_of(folder: Path) -> str:
    """The class path of scenarios, built if need be; tests that run side by side share it.

    Args:
        folder: has `pom.xml`, and the scenarios under `java`. Without a JDK, Maven or a network the test is skipped.
    """
    if shutil.which("javac") is None:
        pytest.skip("the Java client needs a JDK (17 or newer), which is not on this machine")
    cache = _BUILD / folder.name
    libraries = packages_of(folder / "pom.xml", cache)
    sources = sorted((folder / "java").glob("*.java"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in [folder / "pom.xml", *sources])).hexdigest()[:12]
    classes = cache / f"classes-{digest}"
    with (cache / "classes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (classes / "made").exists():
            command = ["javac", "-cp", f"{libraries}/*", "-d", str(classes), *map(str, sources)]
            subprocess.run(command, check=True, timeout=_COMPILE_TIMEOUT_S)
            (classes / "made").touch()
    return f"{classes}:{libraries}/*"
