"""A real ZooKeeper, of the Debian package `zookeeper`."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

START_SCRIPT = Path("/usr/share/zookeeper/bin/zkServer.sh")
READY_TIMEOUT_S = 60.0


@dataclass
class ZooKeeperProcess:
    """A running ZooKeeper; `address` is its HOST:PORT."""

    address: str
    directory: Path
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start it, on the data of an earlier life, and wait until it answers."""
        port = self.address.rpartition(":")[2]
        config = self.directory / "zoo.cfg"
        config.write_text(
            f"tickTime=200\nminSessionTimeout=400\ndataDir={self.directory}/data\n"
            f"clientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n"
        )
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                ["/bin/bash", str(START_SCRIPT), "start-foreground", str(config)],
                stdout=log,
                stderr=log,
                env={**os.environ, "ZOO_LOG_DIR": str(self.directory), "ZOOCFGDIR": str(self.directory)},
            )
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline_s:
            assert self.process.poll() is None, (self.directory / "log").read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(port)), 1):
                return
            time.sleep(0.1)
        raise AssertionError("ZooKeeper does not answer")

    def stop(self) -> None:
        """Stop it."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeperProcess]:
    """A ZooKeeper without anything in it."""
    if not START_SCRIPT.exists() or shutil.which("java") is None:
        pytest.skip("registration needs the Debian package zookeeper, which is not installed here")
    running = ZooKeeperProcess(f"127.0.0.1:{_free_port()}", tmp_path)
    (tmp_path / "data").mkdir()
    running.start()
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def looker(zookeeper: ZooKeeperProcess) -> Iterator[KazooClient]:
    """A client that looks brokers up, as those of the time did."""
    client = KazooClient(zookeeper.address, timeout=20)
    client.start(30)
    yield client
    client.stop()
    client.close()
