"""Scenarios in Java against a real server, each a process with an address, its name and a stem for topics."""

import contextlib
import subprocess
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from tests.support.server_process import ServerProcess

__all__ = ["SCENARIO_TIMEOUT_S", "JavaScenarios", "Play", "Start"]

SCENARIO_TIMEOUT_S: Final = 90.0

Start = Callable[[ServerProcess, str, str], "subprocess.Popen[str]"]
Play = Callable[[ServerProcess, str, str], str]


class JavaScenarios:
    """Starts scenarios; as a context, what still runs at the end is killed.

    Args:
        class_path: from `class_path_of`; its `Main` is what runs.
        address: gives what the client is told of a server.
        heap_mb: of each process.
    """

    def __init__(self, class_path: str, address: Callable[[ServerProcess], str], heap_mb: int) -> None:
        self._command = [
            "java",
            f"-Xmx{heap_mb}m",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            "-cp",
            class_path,
        ]
        self._address = address
        self._running: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        for process in self._running:
            if process.poll() is None:
                process.kill()
                process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def start(self, server: ServerProcess, scenario: str, stem: str) -> "subprocess.Popen[str]":
        """Start a scenario against a server."""
        process = subprocess.Popen(
            [*self._command, "Main", self._address(server), scenario, stem],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._running.append(process)
        return process

    def play(self, server: ServerProcess, scenario: str, stem: str) -> str:
        """Run a scenario to its end, and give what it printed; what it throws is a failure."""
        process = self.start(server, scenario, stem)
        out, errors = process.communicate(timeout=SCENARIO_TIMEOUT_S)
        assert process.returncode == 0, errors[-4000:]
        return out
