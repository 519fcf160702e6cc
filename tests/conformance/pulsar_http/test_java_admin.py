"""Apache Pulsar's own Java admin client, `pulsar-client-admin`, through all that it shares with this server."""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.client_venv import CLIENTS

SOURCES = Path(__file__).parent / "java"
INSTALL_TIMEOUT_S = 100
_NOT_REACHED = (
    "UnknownHostException",
    "Unknown host",
    "Connection refused",
    "Connect timed out",
    "Network is unreachable",
)


def jars() -> Path:
    """The client's jars from Maven Central, fetched once and kept. Without Java, Maven or a network: a skip."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"the Java admin client needs {program}, which is not installed here")
    pom = SOURCES / "pom.xml"
    folder = CLIENTS / f"pulsar-java-admin-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    CLIENTS.mkdir(parents=True, exist_ok=True)
    with (CLIENTS / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            shutil.rmtree(folder, ignore_errors=True)  # what a run that was killed has left
            fetch(pom, folder)
            (folder / "made").touch()
    return folder


def fetch(pom: Path, folder: Path) -> None:
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"the Java admin client was not fetched within {INSTALL_TIMEOUT_S} s")
    if run.returncode:
        if any(word in run.stdout + run.stderr for word in _NOT_REACHED):
            pytest.skip("the Java admin client comes from Maven Central, which cannot be reached")
        pytest.fail(f"the Java admin client cannot be fetched: {run.stdout[-2000:]}")


def test_every_answer_is_what_the_client_expects(address: str) -> None:
    command = ["java", "-cp", f"{jars()}/*", str(SOURCES / "Admin.java"), address]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
