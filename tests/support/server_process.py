"""A real server in a process of its own."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

READY_TIMEOUT_S = 30.0
_PORTS_BELOW = 8_000
_PORT_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"


@dataclass
class ServerProcess:
    """A running `millstream serve`.

    Args:
        process: the process.
        data_dir: its data directory.
        addresses: HOST:PORT by the listener's name.
    """

    process: "subprocess.Popen[str]"
    data_dir: str
    addresses: dict[str, str]
    log_path: str
    _killed: bool = field(default=False)

    @property
    def kafka(self) -> str:
        """Where Kafka clients connect."""
        return self.addresses["kafka"]

    def log(self) -> str:
        """What it has logged."""
        with open(self.log_path) as file:
            return file.read()

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self._killed = True
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM, and the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


def lasting_listener() -> str:
    """A listener for a server that is to come back to its address, after a kill or a stop.

    Its port is none of those that the system gives to whoever asks for any: while the server is away, another one
    would be given it, and answer in its name that it has no such topic.
    """
    with open(_PORT_RANGE) as file:
        first = int(file.read().split()[0])
    while True:
        port = random.randrange(first - _PORTS_BELOW, first)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return f"kafka=127.0.0.1:{port}"


def command(data_dir: str, listen: str = "kafka=127.0.0.1:0", settings: Sequence[str] = ()) -> list[str]:
    """The command line of a server; several listeners stand side by side, with spaces between."""
    listens = [word for one in listen.split() for word in ("--listen", one)]
    sets = [word for setting in settings for word in ("--set", setting)]
    return [sys.executable, "-m", "millstream.cli.main", "serve", "--data-dir", data_dir, *listens, *sets]


def start(
    data_dir: str, listen: str = "kafka=127.0.0.1:0", settings: Sequence[str] = (), files_max: int = 0
) -> ServerProcess:
    """Start a server and wait until it can serve.

    Args:
        data_dir: its data directory.
        listen: as for `command`.
        settings: KEY=VALUE, each.
        files_max: how many files it may have open; 0 for as many as this process may.
    """
    limited = ["prlimit", f"--nofile={files_max}:{files_max}"] if files_max else []
    log_path = data_dir.rstrip("/") + ".log"
    with open(log_path, "a") as log:
        process = subprocess.Popen(
            [*limited, *command(data_dir, listen, settings)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    watchdog = threading.Timer(READY_TIMEOUT_S, process.kill)
    watchdog.start()
    assert process.stdout is not None
    line = process.stdout.readline()
    watchdog.cancel()
    if not line.startswith("ready "):
        process.wait()
        with open(log_path) as log:
            raise AssertionError(f"the server did not start: {line!r}\n{log.read()}")
    addresses = dict(word.split("=", 1) for word in line.split()[1:])
    return ServerProcess(process, data_dir, addresses, log_path)


@contextlib.contextmanager
def serving(
    data_dir: str, listen: str = "kafka=127.0.0.1:0", settings: Sequence[str] = ()
) -> Iterator[ServerProcess]:
    """A server for as long as the block lasts; a stop that is not clean is an error."""
    server = start(data_dir, listen, settings)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            status = server.stop()
            assert status == 0, f"the server ended with status {status}\n{server.log()}"
        if server.process.stdout is not None:
            server.process.stdout.close()
