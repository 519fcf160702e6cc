"""python -m bench.connections: what recognising the protocol of a connection costs, beside a pinned listener.

One server has both listeners, which take turns in every case: setting up a connection and asking one question, in
connections a second and in processor time of the server; produces over a connection that is set up, in MB/s; and the
resident memory of clients that connect and say nothing, each listener in a fresh server.
"""

import argparse
import contextlib
import re
import socket
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from bench.drivers.driver import Endpoint
from bench.drivers.kafka_raw import KafkaRaw
from bench.load import SHAPES, Budget, Load
from bench.systems.millstream import MillstreamOs
from bench.systems.system import Command, Server

__all__ = ["main"]

_RECORD_BYTES: Final = 100
_API_VERSIONS: Final = struct.pack(">hhih", 18, 0, 1, -1)
_QUESTION: Final = struct.pack(">i", len(_API_VERSIONS)) + _API_VERSIONS
_SETTLE_S: Final = 0.5


class _Both(MillstreamOs):
    """Ours, with a listener that is pinned and one that recognises."""

    def command(self, directory: Path) -> Command:
        words = [sys.executable, "-m", "millstream.cli.main", "serve", "--data-dir", str(directory)]
        words += ["--log-level", "warning", "--listen", "kafka=127.0.0.1:0", "--listen", "iggy=127.0.0.1:0"]
        words += ["--set", "durability=os", "--set", "listener.pinned=kafka", "--set", "message.max.bytes=2000000"]
        return Command(words=words, ready="ready kafka=", port=0)

    def port(self, ready_line: str) -> int:
        names = {"kafka": "pinned", "iggy": "recognised"}
        self.ports = {names[name]: int(port) for name, port in re.findall(r"(\w+)=[^ ]*:(\d+)", ready_line)}
        return self.ports["pinned"]


@contextlib.contextmanager
def _serving(directory: Path) -> Iterator[tuple[Server, dict[str, int]]]:
    """A server, and the port of each listener: that which is pinned, and that which recognises."""
    system = _Both()
    directory.mkdir()
    server = Server(system, directory)
    try:
        yield server, system.ports
    finally:
        server.stop()


def _ask(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.sendall(_QUESTION)
        if not peer.recv(65536):
            raise ConnectionError("the server has closed the connection")


def _set_up(server: Server, port: int, count: int) -> tuple[float, float]:
    """Connections a second, and processor time of the server for each, in microseconds."""
    began, used = time.perf_counter(), server.cpu_seconds()
    for _ in range(count):
        _ask(port)
    return count / (time.perf_counter() - began), (server.cpu_seconds() - used) * 1e6 / count


def _produce(server: Server, port: int, load: Load, size: int) -> tuple[float, float]:
    """MB/s of values, and processor time of the server for each MB, in milliseconds."""
    driver = KafkaRaw(Endpoint("127.0.0.1", port))
    driver.create("bench")
    began, used = time.perf_counter(), server.cpu_seconds()
    work = driver.produce(["bench"], load, Budget(60.0, size))
    rate = work.size_bytes / (time.perf_counter() - began) / 1e6
    cpu_ms = (server.cpu_seconds() - used) * 1e9 / work.size_bytes
    driver.drop("bench")
    return rate, cpu_ms


def _compare(
    what: str, units: str, ports: dict[str, int], measure: Callable[[int], tuple[float, float]], n: int
) -> None:
    turns = [{name: measure(port) for name, port in ports.items()} for _ in range(n)]
    cells = f"{what:<28}{units:<28}"
    for index in (0, 1):
        pinned, recognised = (
            statistics.median(turn[name][index] for turn in turns) for name in ("pinned", "recognised")
        )
        cells += f"{pinned:11.1f}{recognised:11.1f}{recognised / pinned:7.2f}"
    print(cells, flush=True)


def _silent(directory: str, count: int) -> None:
    """Bytes that a connection takes whose client says nothing."""
    taken = {}
    for name in ("pinned", "recognised"):
        with _serving(Path(directory) / name) as (server, ports):
            port = ports[name]
            _ask(port)
            time.sleep(_SETTLE_S)
            before = server.resident_bytes()
            peers = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
            time.sleep(_SETTLE_S)
            taken[name] = (server.resident_bytes() - before) / count
            for peer in peers:
                peer.close()
    pinned, recognised = taken["pinned"], taken["recognised"]
    print(f"{'a silent client':<28}{'resident bytes':<28}{pinned:11.0f}{recognised:11.0f}{recognised / pinned:7.2f}")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m bench.connections", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5, metavar="N")
    parser.add_argument("--connections", type=int, default=1000, metavar="N")
    parser.add_argument("--mb", type=int, default=100, metavar="N", help="values in each produce case; default 100")
    asked = parser.parse_args()
    print(f"{'':<56}{'pinned':>11}{'recognised':>11}{'ratio':>7}{'pinned':>11}{'recognised':>11}{'ratio':>7}")
    with tempfile.TemporaryDirectory(prefix="bench-connections-") as directory:
        with _serving(Path(directory) / "rates") as (server, ports):
            for port in ports.values():
                _set_up(server, port, asked.connections)
            units = "connections/s; server us each"
            _compare("set up", units, ports, lambda port: _set_up(server, port, asked.connections), asked.repetitions)
            for shape in (SHAPES[0], SHAPES[2], SHAPES[4]):
                load = Load(_RECORD_BYTES, shape)
                size = asked.mb * 1_000_000 // (20 if shape is SHAPES[0] else 1)
                measure = partial(_produce, server, load=load, size=size)
                _compare(f"produce, {shape.name}", "MB/s; server ms per MB", ports, measure, asked.repetitions)
        _silent(directory, asked.connections)


if __name__ == "__main__":
    main()
