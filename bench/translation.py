"""python -m bench.translation: who reads what others wrote, pair by pair, as a share of reading one's own protocol.

Records of 100 B are written by a client of each protocol in batches of one size, and read by one of each: once when
nobody has read them before, and then by ten clients in turns. All over bare sockets, which take as little time as can
be.

The figures are records/s of the server's own processor time (user and system), so that what else the machine does
distorts them little: what one core can serve if it does nothing else. The share is of what the same client reads that
its own protocol wrote, in batches of the same size.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.drivers.driver import Endpoint
from bench.drivers.iggy_raw import IggyRaw
from bench.drivers.kafka07_raw import Kafka07Raw, message_set
from bench.drivers.kafka_raw import KafkaRaw
from bench.drivers.pulsar_raw import PulsarRaw
from bench.drivers.readers import READERS, STREAM, Reader
from bench.load import Budget, Load, Shape
from bench.loops import print_loops
from bench.systems.millstream import MillstreamOs
from bench.systems.system import Command, Server

__all__ = ["Pair", "main", "measure", "print_table"]

_RECORD_BYTES: Final = 100
_BATCHES: Final = (1, 10, 150, 1000, 9000)
"""Records of a batch: of clients that do not batch, or hardly; 16 KB, what most clients send; 100 KB; and the
megabyte that is the largest by default."""
_BESIDE_BATCHES: Final = (1, 1000)
_IN_FLIGHT_RECORDS: Final = 64
"""Records that writers have unanswered, or four batches."""
_TOGETHER: Final = 10
_PASSES: Final = 5
_RESULTS: Final = Path(__file__).parent / "results"
_PROTOCOLS: Final = tuple(READERS)


class Pair(NamedTuple):
    """What one protocol wrote, read by another.

    Args:
        writer, reader: the protocols.
        batch_records: records in a batch as it was written.
        first, together: records/s of the server's processor time: of the first reader, and of ten in turns.
        elapsed: records/s of the first reader by the clock.
    """

    writer: str
    reader: str
    batch_records: int
    first: float
    together: float
    elapsed: float


class MillstreamAny(MillstreamOs):
    """Ours, with one port for all protocols; batches of 1 MB are allowed, with what their format adds."""

    def command(self, directory: Path) -> Command:
        words = [sys.executable, "-m", "millstream.cli.main", "serve", "--data-dir", str(directory)]
        words += ["--listen", "any=127.0.0.1:0", "--set", "durability=os", "--set", "message.max.bytes=2000000"]
        return Command(words=words, ready="ready any=", port=0)

    def port(self, ready_line: str) -> int:
        return int(ready_line.split("any=")[1].split()[0].rpartition(":")[2])


class _Written(NamedTuple):
    topic: str
    records: int
    batches: int


def _write(endpoint: Endpoint, writer: str, topic: str, batch_records: int, records: int) -> _Written:
    """Fill a topic."""
    batches = max(records // batch_records, 1)
    records = batches * batch_records
    load = Load(_RECORD_BYTES, Shape("", batch_records, 0, max(4, _IN_FLIGHT_RECORDS // batch_records)))
    budget = Budget(60.0, records * _RECORD_BYTES)
    iggy = IggyRaw(endpoint)
    iggy.create(topic)
    match writer:
        case "kafka":
            KafkaRaw(endpoint).produce([f"{STREAM}.{topic}"], load, budget)
        case "kafka07":
            old = Kafka07Raw(endpoint.host, endpoint.port)
            messages = message_set(load.value, batch_records * (_RECORD_BYTES + 10))
            old.produce(f"{STREAM}.{topic}", messages, batches)
            old.close()
        case "pulsar":
            PulsarRaw(endpoint).produce(f"persistent://public/{STREAM}/{topic}", _RECORD_BYTES, batch_records, budget)
        case "iggy":
            iggy.produce(topic, load, budget)
    iggy.close()
    return _Written(topic, records, batches)


def _read(
    endpoint: Endpoint, cpu_seconds: Callable[[], float], reader: str, written: _Written, count: int
) -> tuple[float, float]:
    """Let readers go through a topic in turns; gives the server's processor time, and the seconds."""
    readers: list[Reader] = [READERS[reader](endpoint, *written) for _ in range(count)]
    began, used = time.perf_counter(), cpu_seconds()
    left = list(readers)
    while left:
        left = [one for one in left if not one.step()]
    times = cpu_seconds() - used, time.perf_counter() - began
    for one in readers:
        one.close()
    return times


def measure(
    endpoint: Endpoint,
    cpu_seconds: Callable[[], float],
    batch_records: int,
    records: int,
    repetitions: int,
    writers: Sequence[str] = _PROTOCOLS,
    *,
    name: str = "",
) -> list[Pair]:
    """Measure every pair, in batches of one size; the median of some repetitions, each with topics of its own.

    Args:
        endpoint: a port on which the server speaks all protocols.
        cpu_seconds: tells how much processor time the server has used.
        batch_records: of one batch.
        records: of a topic.
        repetitions: of every measurement.
        writers: whose topics are read.
        name: begins the names of the topics.
    """
    samples: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for turn in range(repetitions):
        for writer in writers:
            for reader in _PROTOCOLS:
                topic = f"{name}{writer}-{reader}-{batch_records}-{turn}"
                written = _write(endpoint, writer, topic, batch_records, records)
                cpu, elapsed = _read(endpoint, cpu_seconds, reader, written, 1)
                cpu_together, _ = _read(endpoint, cpu_seconds, reader, written, _TOGETHER)
                rates = written.records / cpu, _TOGETHER * written.records / cpu_together, written.records / elapsed
                samples.setdefault((writer, reader), []).append(rates)
    return [
        Pair(writer, reader, batch_records, *(statistics.median(column) for column in zip(*rates, strict=True)))
        for (writer, reader), rates in samples.items()
    ]


def print_table(pairs: Sequence[Pair]) -> None:
    """Print the pairs of one size of batch."""
    own = {pair.writer: pair for pair in pairs if pair.writer == pair.reader}
    for pair in pairs:
        same = own.get(pair.reader)
        share, share_together = (
            (f"{pair.first / same.first:7.2f}", f"{pair.together / same.together:7.2f}") if same else ("", "")
        )
        name = f"{pair.batch_records:5d} records  {pair.writer} -> {pair.reader}"
        print(
            f"{name:<34}{pair.first:13,.0f}{share}{pair.together:13,.0f}{share_together}{pair.elapsed:13,.0f}",
            flush=True,
        )


def _beside(server: Server, batch_records: int, records: int, repetitions: int) -> None:
    """Print what clients read of their own protocol where others read the same topic, as a share of without them."""
    print(f"\n{f'own protocol, in batches of {batch_records}':<34}{'alone':>13}{'beside':>13}{'share':>7}")
    for protocol in _PROTOCOLS:
        rates: tuple[list[float], list[float]] = [], []
        for turn in range(repetitions):
            for beside in (False, True):
                topic = f"beside-{protocol}-{batch_records}-{turn}-{beside}"
                written = _write(server.endpoint, protocol, topic, batch_records, records)
                names = [name for name in _PROTOCOLS if name != protocol] if beside else []
                others = [READERS[name](server.endpoint, *written) for name in names]
                for other in others:
                    while not other.step():
                        pass
                passes = [
                    _read(server.endpoint, server.cpu_seconds, protocol, written, _TOGETHER)[0]
                    for _ in range(_PASSES)
                ]
                rates[beside].append(_TOGETHER * written.records / statistics.median(passes))
                for other in others:
                    other.close()
        alone, together = map(statistics.median, rates)
        print(f"{protocol:<34}{alone:13,.0f}{together:13,.0f}{together / alone:7.2f}", flush=True)


def main() -> int:
    """Run what the command line asks for and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.translation", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3, help="of every measurement (default 3)")
    parser.add_argument("--records", type=int, default=200_000, help="of each topic (default 200000)")
    parser.add_argument("--batch", type=int, action="append", help=f"records of a batch (default {_BATCHES})")
    parser.add_argument("--writer", action="append", choices=_PROTOCOLS, help="only what these wrote")
    parser.add_argument("--output", type=Path, default=_RESULTS, help="where the results go (default: bench/results)")
    arguments = parser.parse_args()
    found: list[Pair] = []
    print_loops()
    print(
        f"\n{'records/s of processor time':<34}{'first':>13}{'share':>7}{'ten':>13}{'share':>7}{'by the clock':>13}"
    )
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        server = Server(MillstreamAny(), Path(temporary))
        try:
            for batch_records in arguments.batch or _BATCHES:
                sizes = batch_records, arguments.records, arguments.repetitions
                pairs = measure(server.endpoint, server.cpu_seconds, *sizes, arguments.writer or _PROTOCOLS)
                print_table(pairs)
                found += pairs
            for batch_records in _BESIDE_BATCHES:
                _beside(server, batch_records, arguments.records, arguments.repetitions)
        finally:
            server.stop()
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / f"translation-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps([pair._asdict() for pair in found], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
