"""The Java client of Apache Pulsar: scenarios in `java/`, built once with what Maven brings."""

import contextlib
import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.server_process import ServerProcess, serving

HERE = Path(__file__).parent
CACHE = Path(__file__).resolve().parents[3] / "build" / "pulsar_java"
ANY = "any=127.0.0.1:0"
BUILD_TIMEOUT_S = 300
SCENARIO_TIMEOUT_S = 90
_UNREACHABLE = (
    "Unknown host",
    "Connection refused",
    "Connect timed out",
    "Network is unreachable",
    "Connection reset",
)
"""How Maven says that there is no network, as opposed to a package that does not exist."""

Start = Callable[..., "subprocess.Popen[str]"]
Play = Callable[..., str]


def _class_path() -> str:
    """The class path of the scenarios, built if need be; tests that run side by side share it."""
    if shutil.which("java") is None or shutil.which("javac") is None or shutil.which("mvn") is None:
        pytest.skip("the Java client needs a JDK (17 or newer) and Maven, which are not on this machine")
    sources = sorted((HERE / "java").glob("*.java"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in [HERE / "pom.xml", *sources])).hexdigest()[:12]
    libraries = CACHE / f"libraries-{hashlib.sha256((HERE / 'pom.xml').read_bytes()).hexdigest()[:12]}"
    classes = CACHE / f"classes-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (libraries / "made").exists():
            _fetch(libraries)
            (libraries / "made").touch()
        if not (classes / "made").exists():
            command = ["javac", "-cp", f"{libraries}/*", "-d", str(classes), *map(str, sources)]
            subprocess.run(command, check=True, timeout=BUILD_TIMEOUT_S)
            (classes / "made").touch()
    return f"{classes}:{libraries}/*"


def _fetch(libraries: Path) -> None:
    shutil.rmtree(libraries, ignore_errors=True)  # what a run that was killed has left
    command = ["mvn", "-B", "-q", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
    result = subprocess.run(
        [*command, f"-DoutputDirectory={libraries}"],
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    if result.returncode:
        if any(word in result.stdout for word in _UNREACHABLE):
            pytest.skip("the Java client comes from Maven Central, which cannot be reached")
        pytest.fail(f"the Java client cannot be fetched: {result.stdout[-2000:]}")


@pytest.fixture(scope="session")
def class_path() -> str:
    """Where the scenarios and the client are."""
    return _class_path()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with one port for all protocols. Nothing in it may go wrong unseen."""
    with serving(str(tmp_path_factory.mktemp("java") / "data"), ANY) as one:
        yield one
        assert "internal error" not in one.log()
        assert "Traceback" not in one.log()


@pytest.fixture
def start(class_path: str) -> Iterator[Start]:
    """Starts a scenario against a server: `start(server, scenario, stem)`; what still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def begin(server: ServerProcess, scenario: str, stem: str) -> "subprocess.Popen[str]":
        command = ["java", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", class_path]
        process = subprocess.Popen(
            [*command, "Main", f"pulsar://{server.addresses['any']}", scenario, stem],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


@pytest.fixture
def play(start: Start) -> Play:
    """Runs a scenario to its end, and gives what it printed; what it throws is a failure."""

    def run(server: ServerProcess, scenario: str, stem: str) -> str:
        process = start(server, scenario, stem)
        out, errors = process.communicate(timeout=SCENARIO_TIMEOUT_S)
        assert process.returncode == 0, errors[-4000:]
        return out

    return run
