"""The Java client of Apache Kafka 4: scenarios in `java/`, built once with what Maven brings."""

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.maven_classes import class_path_of
from tests.support.server_process import ServerProcess

SCENARIO_TIMEOUT_S = 90

Start = Callable[..., "subprocess.Popen[str]"]
Play = Callable[..., str]


@pytest.fixture(scope="session")
def class_path() -> str:
    """Where the scenarios and the client are."""
    return class_path_of(Path(__file__).parent)


@pytest.fixture
def start(class_path: str) -> Iterator[Start]:
    """Starts a scenario against a server: `start(server, scenario, stem)`; what still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def begin(server: ServerProcess, scenario: str, stem: str) -> "subprocess.Popen[str]":
        command = ["java", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", class_path]
        process = subprocess.Popen(
            [*command, "Main", server.kafka, scenario, stem],
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
