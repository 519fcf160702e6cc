"""python -m bench.kafka07: Kafka 0.7 beside our Kafka path in one run, and fetches at random addresses of 1 GB.

Both take turns in every case. Kafka's produces are pipelined 4 deep; fetches of both ask for 1 MiB. Each is measured
twice: in MB/s, and in processor time of the server per MB, which the other work of a shared machine moves less.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from bench.drivers.driver import Endpoint
from bench.drivers.kafka07_raw import Kafka07Raw, message_set
from bench.drivers.kafka_frames import record_batch
from bench.drivers.kafka_raw import KafkaRaw
from bench.drivers.pipeline import DriverError
from bench.load import Budget, Load, Shape
from bench.systems.millstream import MillstreamOs
from bench.systems.system import Command, Server

__all__ = ["main"]

_SIZES: Final = (64_000, 256_000, 1_000_000)
_RECORD_BYTES: Final = (100, 1000)
_FETCH_BYTES: Final = 1 << 20
_RANDOM_FETCHES: Final = 1000
_RANDOM_SIZES: Final = (64, 300 * 1024)
_SET_BYTES: Final = 16_000


class _MillstreamAny(MillstreamOs):
    """Ours, with one port for all protocols; batches of 1 MB are allowed, with what their format adds."""

    def command(self, directory: Path) -> Command:
        words = [sys.executable, "-m", "millstream.cli.main", "serve", "--data-dir", str(directory)]
        words += ["--listen", "any=127.0.0.1:0", "--set", "durability=os", "--set", "message.max.bytes=2000000"]
        return Command(words=words, ready="ready any=", port=0)

    def port(self, ready_line: str) -> int:
        return int(ready_line.split("any=")[1].split()[0].rpartition(":")[2])


class _Rate(NamedTuple):
    """What one measurement gave.

    Args:
        mb_s: MB/s of values.
        cpu_ms: of the server per MB of values.
    """

    mb_s: float
    cpu_ms: float


class _Case:
    """One size of record and of set: each measurement fills a topic of its own, and reads it."""

    def __init__(self, server: Server, record_bytes: int, size_bytes: int, total_bytes: int) -> None:
        self._server = server
        self._old = Kafka07Raw(server.endpoint.host, server.endpoint.port)
        self._new = KafkaRaw(Endpoint(server.endpoint.host, server.endpoint.port))
        self._load = Load(record_bytes, Shape("set", 0, size_bytes, 4))
        self._messages = message_set(self._load.value, size_bytes)
        self._count = total_bytes // size_bytes

    def kafka07(self, topic: str) -> list[_Rate]:
        """Values written, and read, in the format of 0.7."""
        self._new.create(topic)
        values = len(self._messages) * self._load.record_bytes // (self._load.record_bytes + 10) * self._count
        produced = self._rate(lambda: self._old.produce(topic, self._messages, self._count), values)
        end = self._old.end(topic)
        self._read(topic, end)  # once without a clock, as Kafka's driver does to find the time that it waits best
        fetched = self._rate(lambda: self._read(topic, end), values)
        self._new.drop(topic)
        return [produced, fetched]

    def _read(self, topic: str, end: int) -> None:
        position = 0
        while position < end:
            position += self._old.fetch(topic, position, _FETCH_BYTES)

    def kafka(self, topic: str) -> list[_Rate]:
        """The same through Kafka's protocol of today."""
        self._new.create(topic)
        size = self._load.batch_records * self._load.record_bytes * self._count
        records = size // self._load.record_bytes
        produced = self._rate(lambda: self._new.produce([topic], self._load, Budget(60.0, size)), size)
        self._new.consume(topic, self._load, records, Budget(60.0, 1))
        fetched = self._rate(lambda: self._new.consume(topic, self._load, records, Budget(60.0, size)), size)
        self._new.drop(topic)
        return [produced, fetched]

    def _rate(self, work: Callable[[], object], size: int) -> _Rate:
        began, used = time.perf_counter(), self._server.cpu_seconds()
        work()
        return _Rate(size / (time.perf_counter() - began) / 1e6, (self._server.cpu_seconds() - used) * 1e9 / size)

    def close(self) -> None:
        """Close the connection that is kept."""
        self._old.close()


def _throughput(server: Server, repetitions: int, total_bytes: int) -> None:
    sides = f"{'0.7':>7}{'kafka':>7}{'ratio':>7}"
    print(f"{'':<20}{'MB/s of values':^42}  {'server ms per MB':^42}")
    print(f"{'':<20}{'produce':^21}{'fetch':^21}  {'produce':^21}{'fetch':^21}")
    print(f"{'':<20}{sides}{sides}  {sides}{sides}")
    for record_bytes in _RECORD_BYTES:
        for size_bytes in _SIZES:
            case = _Case(server, record_bytes, size_bytes, total_bytes)
            turns = [(case.kafka07(f"a{n}"), case.kafka(f"b{n}")) for n in range(repetitions)]
            case.close()
            cells = f"{f'{record_bytes} B in {size_bytes // 1000} KB':<20}"
            for what in (0, 1):
                old, new = (statistics.median(turn[side][what].mb_s for turn in turns) for side in (0, 1))
                cells += f"{old:7.0f}{new:7.0f}{old / new:7.2f}"
            cells += "  "
            for what in (0, 1):
                old, new = (statistics.median(turn[side][what].cpu_ms for turn in turns) for side in (0, 1))
                cells += f"{old:7.2f}{new:7.2f}{new / old:7.2f}"
            print(cells, flush=True)


def _random_fetches(server: Server, total_bytes: int) -> None:
    print(f"\nFETCH at a random address of {total_bytes / 1e9:.1f} GB, ms    first use  size     p50    p99    max")
    new = KafkaRaw(Endpoint(server.endpoint.host, server.endpoint.port))
    old = Kafka07Raw(server.endpoint.host, server.endpoint.port)
    load = Load(100, Shape("set", 0, _SET_BYTES, 16))
    for writer in ("0.7", "kafka"):
        topic = f"large-{writer}"
        new.create(topic)
        if writer == "0.7":
            messages = message_set(load.value, _SET_BYTES)
            old.produce(topic, messages, total_bytes // len(messages))
        else:
            batches = total_bytes // len(record_batch(load.values()))
            new.produce([topic], load, Budget(600.0, batches * load.batch_records * load.record_bytes))
        began = time.perf_counter()
        end = old.end(topic)
        first_ms = (time.perf_counter() - began) * 1000
        rng = random.Random(writer)
        for size in _RANDOM_SIZES:
            places = [rng.randrange(end) for _ in range(_RANDOM_FETCHES)]
            times = sorted(_fetch_seconds(old, topic, place, size) for place in places)
            p50, p99, worst = (times[int(len(times) * share)] * 1000 for share in (0.5, 0.99, 0.9999))
            print(f"written by {writer:<34}{first_ms:9.0f}{size:8d}{p50:8.2f}{p99:7.2f}{worst:7.2f}", flush=True)
    old.close()


def _fetch_seconds(old: Kafka07Raw, topic: str, address: int, size: int) -> float:
    began = time.perf_counter()
    if old.fetch(topic, address, size) <= 0:
        raise DriverError(f"a fetch at the valid address {address} gave nothing")
    return time.perf_counter() - began


def main() -> int:
    """Run what the command line asks for and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.kafka07", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3, help="of every measurement (default 3)")
    parser.add_argument("--megabytes", type=int, default=60, help="written for each measurement (default 60)")
    parser.add_argument("--large-megabytes", type=int, default=1000, help="of the partition that is read at random")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        server = Server(_MillstreamAny(), Path(temporary))
        try:
            _throughput(server, arguments.repetitions, arguments.megabytes * 1_000_000)
            _random_fetches(server, arguments.large_megabytes * 1_000_000)
        finally:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
