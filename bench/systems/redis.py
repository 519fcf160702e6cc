"""redis-server with streams and an append-only file, from PATH (Debian: redis-server)."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import ClassVar

from bench.drivers.driver import ClientDriver, Driver, Endpoint
from bench.drivers.optional import installed
from bench.drivers.redis_client import RedisClient
from bench.drivers.redis_raw import RedisRaw
from bench.systems.system import Command, NotFound, System, free_port

__all__ = ["RedisEverySecond", "RedisFsync"]


def _binary() -> str:
    found = shutil.which("redis-server")
    if found is None:
        raise NotFound("redis-server is not on PATH (Debian: apt-get install redis-server)")
    return found


class _Redis(System):
    fsync: ClassVar[str]

    def version(self) -> str:
        """Return the version that the binary reports."""
        printed = subprocess.run([_binary(), "--version"], capture_output=True, text=True, check=True, timeout=10)
        found = re.search(r"v=(\S+)", printed.stdout)
        return found[1] if found else "unknown"

    def command(self, directory: Path) -> Command:
        """Return the server command: an append-only file, no snapshots."""
        port = free_port()
        words = [_binary(), "--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory), "--daemonize", "no"]
        words += [
            "--appendonly",
            "yes",
            "--appendfsync",
            self.fsync,
            "--save",
            "",
            "--auto-aof-rewrite-percentage",
            "0",
        ]
        return Command(words=words, ready="Ready to accept connections", port=port)

    def raw(self, endpoint: Endpoint) -> Driver:
        """Return the driver of pre-encoded commands."""
        return RedisRaw(endpoint)

    def client(self, endpoint: Endpoint) -> ClientDriver | None:
        """Return the driver over redis-py, if that is installed."""
        library = installed("redis")
        return None if library is None else RedisClient(library, endpoint)

    def failures(self) -> tuple[type[Exception], ...]:
        """Return what redis-py raises."""
        library = installed("redis")
        return () if library is None else (library.RedisError,)


class RedisEverySecond(_Redis):
    """Acknowledges what the operating system has."""

    name = "redis"
    promise = "written; fsync every second"
    fsync = "everysec"


class RedisFsync(_Redis):
    """Acknowledges what the disk has."""

    name = "redis-fsync"
    promise = "fsync returned"
    fsync = "always"
