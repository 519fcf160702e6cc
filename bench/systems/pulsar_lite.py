"""pulsar-lite, a broker for Pulsar's binary protocol in Rust: https://pypi.org/project/pulsar-lite/.

The binary is taken from $BENCH_PULSAR_LITE, from the wheel `pulsar-lite` if it is installed here, or from PATH.
"""

import importlib.resources
import os
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Final

from bench.drivers.driver import ClientDriver, Driver, Endpoint
from bench.drivers.optional import installed
from bench.systems.system import Command, NotFound, System, free_port

__all__ = ["PulsarLite"]

_VARIABLE: Final = "BENCH_PULSAR_LITE"
_WHEEL: Final = "pulsar_lite"


def _binary() -> tuple[str, str]:
    """Return the program and where it comes from."""
    named = os.environ.get(_VARIABLE)
    if named:
        if not os.access(named, os.X_OK):
            raise NotFound(f"{_VARIABLE}={named} is not a program")
        return named, f"${_VARIABLE}"
    if installed(_WHEEL) is not None:
        bundled = Path(str(importlib.resources.files(_WHEEL))) / "bin" / "pulsar-lite"
        if os.access(bundled, os.X_OK):
            return str(bundled), f"wheel pulsar-lite {version('pulsar-lite')}"
    found = shutil.which("pulsar-lite")
    if found is None:
        raise NotFound(f"pip install pulsar-lite, or set {_VARIABLE}=/path/to/pulsar-lite")
    return found, "PATH"


class PulsarLite(System):
    """With its default settings: RocksDB, and a log of entries beside it."""

    name = "pulsar-lite"
    promise = "written"
    families: ClassVar[frozenset[str]] = frozenset({"pulsar"})

    def version(self) -> str:
        """Return where the binary comes from: it does not tell its version."""
        return _binary()[1]

    def command(self, directory: Path) -> Command:
        """Return the server command."""
        port = free_port()
        words = [_binary()[0], "--addr", f"127.0.0.1:{port}", "--db-path", str(directory / "db")]
        return Command(words=[*words, "--log-level", "info"], ready="Server listening on", port=port)

    def raw(self, endpoint: Endpoint) -> Driver:
        """It speaks Pulsar only."""
        raise NotFound("it speaks Pulsar only")

    def client(self, endpoint: Endpoint) -> ClientDriver | None:
        """It speaks Pulsar only."""
        return None
