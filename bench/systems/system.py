"""A system under test: how to find it, start it, reach it and stop it."""

import os
import signal
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, ClassVar, Final

from bench.drivers.driver import ClientDriver, Driver, Endpoint

__all__ = ["Command", "NotFound", "Server", "System", "free_port"]

_READY_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 20.0
_TAIL_BYTES: Final = 2_000


class NotFound(Exception):
    """The system cannot be run here; the message says why."""


@dataclass(frozen=True, slots=True)
class Command:
    """How to start a server.

    Args:
        words: the program and its arguments.
        ready: text found in the line of output that says it can serve.
        port: where it will listen, or 0 if the ready line tells.
        environment: variables set besides those of this process.
    """

    words: Sequence[str]
    ready: str
    port: int
    environment: Mapping[str, str] = field(default_factory=dict)


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class System(ABC):
    """One row of `bench.systems.SYSTEMS`.

    Args of the class:
        name: as given to --peer and printed.
        promise: when a record is acknowledged, in a few words.
        can_read: whether what was written can be read back.
        families: which lines are for it: "log", for which each system has its own protocol, or "pulsar".
    """

    name: ClassVar[str]
    promise: ClassVar[str]
    can_read: ClassVar[bool] = True
    families: ClassVar[frozenset[str]] = frozenset({"log"})

    @abstractmethod
    def version(self) -> str:
        """Return the version found.

        Raises:
            NotFound: it is not installed.
        """

    @abstractmethod
    def command(self, directory: Path) -> Command:
        """Return how to start it with its data in an empty directory."""

    def port(self, ready_line: str) -> int:
        """Return the port that the ready line names, for a `Command` that does not know it."""
        raise NotImplementedError(f"{self.name} does not tell its port: {ready_line}")

    def pulsar(self, endpoint: Endpoint, ready_line: str) -> Endpoint:
        """Return where it speaks Pulsar, for a system of that family."""
        return endpoint

    @abstractmethod
    def raw(self, endpoint: Endpoint) -> Driver:
        """Return the driver of pre-encoded requests."""

    @abstractmethod
    def client(self, endpoint: Endpoint) -> ClientDriver | None:
        """Return the driver over a client library, or None if that is not installed."""

    def failures(self) -> tuple[type[Exception], ...]:
        """Return the exceptions by which its client library reports that the server failed."""
        return ()

    def acks(self) -> int:
        """Return what a Kafka producer asks for."""
        return 1


class Server:
    """A running system.

    Args:
        system: which.
        directory: empty; takes its data and its log.

    Raises:
        NotFound: it is not installed, ended at once, or was not ready within 30 s.
    """

    def __init__(self, system: System, directory: Path) -> None:
        self.system = system
        self._log_path = directory / "server.log"
        data_directory = directory / "data"
        data_directory.mkdir()
        command = system.command(data_directory)
        self._ready = threading.Event()
        self._ready_line = ""
        self.started_at = time.perf_counter()
        try:
            self._process = subprocess.Popen(
                list(command.words),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, **command.environment},
                cwd=directory,
                bufsize=0,
            )
        except OSError as error:
            raise NotFound(f"{command.words[0]}: {error.strerror}") from error
        output = self._process.stdout
        assert output is not None
        self._drain = threading.Thread(target=self._follow, args=(output, command.ready), daemon=True)
        self._drain.start()
        self._ready.wait(_READY_SECONDS)
        if not self._ready_line:
            self.stop()
            raise NotFound(f"did not get ready: {self.log_tail()}")
        port = command.port or system.port(self._ready_line)
        self.endpoint = Endpoint("127.0.0.1", port, system.acks())

    @property
    def pulsar_endpoint(self) -> Endpoint:
        """Where it speaks Pulsar."""
        return self.system.pulsar(self.endpoint, self._ready_line)

    @property
    def ready_seconds(self) -> float:
        """Seconds from exec to the line that says it can serve."""
        return self._ready_at - self.started_at

    def resident_bytes(self) -> int:
        """Resident memory of the process now."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise ProcessLookupError(f"{self.system.name} has ended: {self.log_tail()}")

    def cpu_seconds(self) -> float:
        """Seconds that its threads have run so far. What else runs on the machine hardly moves them."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def log_tail(self) -> str:
        """Return the last line that it printed."""
        self._drain.join(1)
        text = self._log_path.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").strip()
        return text.splitlines()[-1] if text else "no output"

    def stop(self) -> int:
        """Ask it to end, and return its exit status; killed, and negative, if it does not within 20 s."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _follow(self, output: BinaryIO, ready: str) -> None:
        """Copy the output to the log, so that the pipe never fills, and watch for the ready line."""
        with self._log_path.open("wb", buffering=0) as log:
            for line in output:
                if not self._ready_line and ready in (text := line.decode(errors="replace")):
                    self._ready_at = time.perf_counter()
                    self._ready_line = text
                    self._ready.set()
                log.write(line)
        # The process has closed its output: whoever waits need not wait longer.
        self._ready.set()
