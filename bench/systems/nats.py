"""nats-server with JetStream on files, from PATH (Debian: nats-server)."""

import shutil
import subprocess
from pathlib import Path

from bench.drivers.driver import ClientDriver, Driver, Endpoint
from bench.drivers.nats_client import NatsClient
from bench.drivers.nats_raw import NatsRaw
from bench.drivers.optional import installed
from bench.systems.system import Command, NotFound, System, free_port

__all__ = ["Nats"]


def _binary() -> str:
    found = shutil.which("nats-server")
    if found is None:
        raise NotFound("nats-server is not on PATH (Debian: apt-get install nats-server)")
    return found


class Nats(System):
    """JetStream's file store with its default settings."""

    name = "nats"
    promise = "written; fsync every 2 min"

    def version(self) -> str:
        """Return the version that the binary reports."""
        printed = subprocess.run([_binary(), "--version"], capture_output=True, text=True, check=True, timeout=10)
        return printed.stdout.strip().removeprefix("nats-server: v")

    def command(self, directory: Path) -> Command:
        """Return the server command."""
        port = free_port()
        words = [_binary(), "--addr", "127.0.0.1", "--port", str(port), "--jetstream", "--store_dir", str(directory)]
        return Command(words=words, ready="Server is ready", port=port)

    def raw(self, endpoint: Endpoint) -> Driver:
        """Return the driver of pre-encoded publishes."""
        return NatsRaw(endpoint)

    def client(self, endpoint: Endpoint) -> ClientDriver | None:
        """Return the driver over nats-py, if that is installed."""
        library = installed("nats")
        return None if library is None else NatsClient(library, endpoint)

    def failures(self) -> tuple[type[Exception], ...]:
        """Return what nats-py raises."""
        errors = installed("nats.errors")
        return () if errors is None else (errors.Error,)
