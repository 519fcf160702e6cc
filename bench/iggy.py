"""python -m bench.iggy: Iggy beside our Kafka path in one run, and a poller that lags far behind.

Batches of 1, 100 and 1000 messages of 1 KB. First over bare sockets with requests encoded beforehand, which measures
the server: one request at a time, and several unanswered. Then with the clients that applications use, one batch at a
time, which measures mostly them: apache-iggy 0.9.0 beside aiokafka, whose use with coroutines is the same, and beside
librdkafka, which works in C and in threads of its own. The protocols take turns in every case; beside the rates
stands the processor time that a batch takes the server.
"""

import argparse
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from bench.drivers.aiokafka_client import AiokafkaClient
from bench.drivers.driver import Endpoint
from bench.drivers.iggy_client import IggyClient
from bench.drivers.iggy_raw import IggyRaw
from bench.drivers.kafka_frames import fetch_request, produce_request, read_fetch_answer, record_batch
from bench.drivers.kafka_raw import KafkaRaw
from bench.drivers.pipeline import DriverError, connect
from bench.load import Budget, Load, Shape, Work
from bench.systems.millstream import MillstreamFsync, MillstreamOs, listener_port
from bench.systems.system import Command, NotFound, Server

__all__ = ["main"]

_RECORD_BYTES: Final = 1000
_COUNTS: Final = (1, 100, 1000)
_IN_FLIGHT: Final = {1: 64, 100: 32, 1000: 4}
_LAG_BATCH: Final = 1000
_BYTES_LIMIT: Final = 300_000_000
_KIB: Final = 1024

Times = list[float]
"""Seconds that each call took."""


class _BothOs(MillstreamOs):
    """Ours, with one port for Kafka and one for Iggy."""

    def command(self, directory: Path) -> Command:
        words = [sys.executable, "-m", "millstream.cli.main", "serve", "--data-dir", str(directory)]
        words += ["--listen", "kafka=127.0.0.1:0", "--listen", "iggy=127.0.0.1:0"]
        words += ["--set", f"durability={self.durability}", "--set", "message.max.bytes=4000000"]
        return Command(words=words, ready="ready kafka=", port=0)

    def port(self, ready_line: str) -> int:
        self.iggy_port = listener_port("iggy", ready_line)
        return super().port(ready_line)


class _BothFsync(_BothOs, MillstreamFsync):
    """The same, where an answer waits for the disk."""

    name = MillstreamFsync.name
    durability = MillstreamFsync.durability


class _Kafka:
    """One Kafka request at a time, as `IggyRaw` has it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.raw = KafkaRaw(endpoint)
        self._acks = endpoint.acks
        self._socket: socket.socket = connect(endpoint.host, endpoint.port)
        self._buffer = memoryview(bytearray(4 << 20))

    def produce(self, topic: str, load: Load) -> Callable[[], None]:
        """What sends one batch and waits for its answer."""
        batch = record_batch(load.values())
        request = produce_request(topic, batch, acks=self._acks, correlation_id=0)
        error_at = 4 + 1 + 1 + 1 + len(topic) + 1 + 4

        def send() -> None:
            answer = self._ask(request)
            if any(answer[error_at : error_at + 2]):
                raise DriverError("produce was refused")

        return send

    def fetch(self, topic: str, load: Load) -> Callable[[int], None]:
        """What reads the batch at an offset."""
        size = len(record_batch(load.values()))

        def read(offset: int) -> None:
            request = fetch_request(topic, offset, max_bytes=size, wait_ms=0, correlation_id=0)
            if len(read_fetch_answer(self._ask(request), topic).records) < size:
                raise DriverError(f"fetch: no whole batch at {offset}")

        return read

    def _ask(self, request: bytes) -> memoryview:
        self._socket.sendall(request)
        have = size = 0
        while not size or have < size:
            count = self._socket.recv_into(self._buffer[have:])
            if not count:
                raise DriverError("the server closed the connection")
            have += count
            if not size and have >= 4:
                size = 4 + int.from_bytes(self._buffer[:4], "big")
        return self._buffer[4:size]


def _timed(call: Callable[[], None], seconds: float) -> Times:
    times: Times = []
    deadline = time.perf_counter() + seconds
    while (began := time.perf_counter()) < deadline:
        call()
        times.append(time.perf_counter() - began)
    return times


def _walk(read: Callable[[int], object], load: Load, total: int, seconds: float) -> Times:
    """Read batch after batch of a topic, again and again."""
    offset = 0

    def step() -> None:
        nonlocal offset
        read(offset)
        offset = (offset + load.batch_records) % total

    return _timed(step, seconds)


class _Row:
    """One side of a case: what its repetitions gave.

    Args:
        server: whose processor time is taken too, as that hardly depends on what else the machine does.
        count: messages of a batch.
    """

    def __init__(self, server: Server, count: int) -> None:
        self._server = server
        self._count = count
        self._rates: list[float] = []
        self._cpu_us: list[float] = []
        self._times: Times = []

    def time(self, run: Callable[[], Times]) -> Times:
        """Do one repetition of calls that take a batch each, and return what it returns."""
        used = self._server.cpu_seconds()
        times = run()
        self._add(len(times), sum(times), self._server.cpu_seconds() - used)
        self._times += times
        return times

    def work(self, run: Callable[[], Work]) -> None:
        """Do one repetition of batches of which none has a time of its own."""
        used = self._server.cpu_seconds()
        work = run()
        self._add(work.records / self._count, work.seconds, self._server.cpu_seconds() - used)

    def _add(self, batches: float, seconds: float, cpu_seconds: float) -> None:
        self._rates.append(batches * self._count / seconds)
        self._cpu_us.append(cpu_seconds * 1e6 / batches)

    @property
    def rate(self) -> float:
        """Median messages/s."""
        return statistics.median(self._rates)

    @property
    def cpu_us(self) -> float:
        """Median processor time of the server for a batch, in microseconds."""
        return statistics.median(self._cpu_us)

    def _percentile(self, share: float) -> float:
        """Of the times of all repetitions, in ms."""
        ordered = sorted(self._times)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000

    def cells(self) -> str:
        """Its figures."""
        times = f"{self._percentile(0.5):9.3f}{self._percentile(0.99):9.3f}" if self._times else " " * 18
        return f"{self.rate:11,.0f}{times}{self.cpu_us:9.1f}"


def _print_rows(what: str, count: int, iggy: _Row, kafka: _Row) -> None:
    ratios = f"{kafka.rate / iggy.rate:8.2f}{iggy.cpu_us / kafka.cpu_us:8.2f}"
    print(f"{what:<30}{count:>6}{iggy.cells()}{kafka.cells()}{ratios}", flush=True)


_TITLE: Final = (
    f"{'':<30}{'batch':>6}{'iggy: /s':>11}{'p50 ms':>9}{'p99 ms':>9}{'cpu us':>9}"
    f"{'kafka: /s':>11}{'p50 ms':>9}{'p99 ms':>9}{'cpu us':>9}{'slower':>8}{'cpu':>8}"
)
"""Of the ratios, those above 1 say that Iggy's side is slower, or that it takes more of the server's processor."""


def _raw(server: Server, iggy: IggyRaw, kafka: _Kafka, repetitions: int, seconds: float) -> None:
    """What the server does, over bare sockets."""
    budget = Budget(seconds, _BYTES_LIMIT)
    for count in _COUNTS:
        load = Load(_RECORD_BYTES, Shape("batch", count, 0, _IN_FLIGHT[count]))
        cases = "sent one by one", f"sent, {_IN_FLIGHT[count]} unanswered", "polled one by one"
        (sent, kafka_sent), (piped, kafka_piped), (polled, kafka_polled) = rows = [
            (_Row(server, count), _Row(server, count)) for _ in cases
        ]
        total = 50 * count
        for number in range(repetitions):
            one, other = f"i{count}-{number}", f"k{count}-{number}"
            iggy.create(one)
            kafka.raw.create(other)
            with closing(iggy.sending(one, load)) as sending:
                sent.time(partial(_timed, sending.send, seconds))
            kafka_sent.time(partial(_timed, kafka.produce(other, load), seconds))
            piped.work(partial(iggy.produce, one, load, budget))
            kafka_piped.work(partial(kafka.raw.produce, [other], load, budget))
            polled.time(partial(_walk, iggy.polling(one, count), load, total, seconds))
            kafka_polled.time(partial(_walk, kafka.fetch(other, load), load, total, seconds))
            kafka.raw.drop(other)
        for what, (mine, theirs) in zip(cases, rows, strict=True):
            _print_rows(what, count, mine, theirs)


def _clients(server: Server, iggy: IggyClient, repetitions: int, seconds: float) -> None:
    """What applications get: each batch is sent and waited for."""
    value = Load(_RECORD_BYTES, Shape("", 1, 0, 1)).value
    kafka = AiokafkaClient(server.endpoint)
    for count in _COUNTS:
        sent, polled, aio_sent, aio_polled, rd_sent = (_Row(server, count) for _ in range(5))
        for number in range(repetitions):
            topic = f"c{count}-{number}"
            iggy.create(topic)
            times = sent.time(partial(iggy.send, topic, value, count, seconds))
            polled.time(partial(iggy.poll, topic, count, len(times) * count, seconds))
            rd_sent.time(partial(_librdkafka, server.endpoint, f"l{topic}", value, count, seconds))
            times = aio_sent.time(partial(kafka.send, f"a{topic}", value, count, seconds))
            aio_polled.time(partial(kafka.poll, f"a{topic}", count, len(times) * count, seconds))
        _print_rows("apache-iggy | aiokafka send", count, sent, aio_sent)
        _print_rows("apache-iggy | librdkafka send", count, sent, rd_sent)
        _print_rows("apache-iggy | aiokafka poll", count, polled, aio_polled)
    kafka.close()


def _librdkafka(endpoint: Endpoint, topic: str, value: bytes, count: int, seconds: float) -> Times:
    config = {
        "bootstrap.servers": f"{endpoint.host}:{endpoint.port}",
        "acks": endpoint.acks,
        "linger.ms": 0 if count == 1 else 5,
        "batch.num.messages": count,
        "batch.size": 2_000_000,
        "message.max.bytes": 2_000_000,
    }
    producer = Producer(config)
    producer.list_topics(topic, timeout=20)
    messages = [{"value": value} for _ in range(count)]

    def send() -> None:
        producer.produce_batch(topic, messages, partition=0)
        if producer.flush(20):
            raise DriverError("librdkafka did not deliver")

    send()
    return _timed(send, seconds)


def _lag(server: Server, iggy: IggyRaw, messages: int) -> None:
    """Memory while a poller is so many messages behind a producer, and while it catches up."""
    load = Load(_RECORD_BYTES, Shape("batch", _LAG_BATCH, 0, 4))
    iggy.create("lag")
    resident = [server.resident_bytes()]
    began = time.perf_counter()
    for part in range(10):
        iggy.produce("lag", load, Budget(600.0, messages * _RECORD_BYTES // 10))
        iggy.poll("lag", part * _LAG_BATCH, _LAG_BATCH)
        resident.append(server.resident_bytes())
    written = time.perf_counter() - began
    began = time.perf_counter()
    for offset in range(0, messages, _LAG_BATCH):
        iggy.poll("lag", offset, _LAG_BATCH)
        if not offset % (messages // 10):
            resident.append(server.resident_bytes())
    polled = time.perf_counter() - began
    print(
        f"\na poller {messages:,} messages behind: {resident[0] / _KIB**2:.0f} MiB before, "
        f"{max(resident[1:11]) / _KIB**2:.0f} at most while {messages / written:,.0f}/s were written, "
        f"{max(resident[11:]) / _KIB**2:.0f} while it caught up at {messages / polled:,.0f}/s"
    )


def main() -> int:
    """Run what the command line asks for and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.iggy", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3, help="of every measurement (default 3)")
    parser.add_argument("--seconds", type=float, default=0.3, help="of every measurement (default 0.3)")
    parser.add_argument("--lag-messages", type=int, default=1_000_000, help="that a poller is behind; 0 for no lag")
    parser.add_argument("--durability", choices=("os", "fsync"), default="os", help="of what is acknowledged")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        system = _BothFsync() if arguments.durability == "fsync" else _BothOs()
        server = Server(system, Path(temporary))
        try:
            endpoint = Endpoint("127.0.0.1", system.iggy_port)
            iggy = IggyRaw(endpoint)
            print(_TITLE)
            _raw(server, iggy, _Kafka(server.endpoint), arguments.repetitions, arguments.seconds)
            try:
                client = IggyClient(endpoint)
            except ModuleNotFoundError as missing:
                print(f"no clients measured: {missing}")
            else:
                _clients(server, client, arguments.repetitions, arguments.seconds)
            if arguments.lag_messages:
                _lag(server, iggy, arguments.lag_messages)
        except NotFound as error:
            print(error)
            return 1
        finally:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
