"""kill -9 of a real server under Pulsar load, again and again: no receipt is forgotten, and nothing is doubled.

Also of what consumers have acknowledged: none of it comes back, but what they have not comes.

MILLSTREAM_KILL_ROUNDS sets how many kills there are for each setting; without it, as many as fit into some seconds.
MILLSTREAM_KILL_SEED sets when they come.
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pulsar
import pytest

from tests.support.server_process import ServerProcess, start
from tests.support.waiting import eventually

SEED = int(os.environ.get("MILLSTREAM_KILL_SEED", "1"))
ROUNDS = int(os.environ.get("MILLSTREAM_KILL_ROUNDS", "0"))
SECONDS = 5.0
ANY = "any=127.0.0.1:0"
NO_PLACE = -1
PAUSE_S = 0.0005
"""Between two messages of one producer: some thousand a second."""
DRAINED_MS = 700
SETTLED_S = 1.0
"""Acknowledgements without receipts go out in groups, and are stored in groups; those that a kill took with it are
made again, as their messages come again."""


class Producing:
    """A producer that sends numbers from 0 on, on a thread, and remembers which got receipts, and for where."""

    def __init__(self, client: Any, topic: str, **settings: Any) -> None:
        settings.setdefault("max_pending_messages", 2000)
        self._producer = client.create_producer(
            topic, send_timeout_millis=0, block_if_queue_full=True, producer_name=f"of-{topic}", **settings
        )
        self.receipts: dict[int, int] = {}
        self.failures: list[Any] = []
        self.sent = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._producer.send_async(b"%d" % self.sent, self._noter(self.sent))
            self.sent += 1
            time.sleep(PAUSE_S)

    def _noter(self, number: int) -> Callable[[Any, Any], None]:
        def note(result: Any, message_id: Any) -> None:
            if result == pulsar.Result.Ok:
                self.receipts[number] = message_id.entry_id()
            else:
                self.failures.append(result)

        return note

    def finish(self) -> None:
        """Stop sending, and wait until everything is answered."""
        self._stop.set()
        self._thread.join()
        eventually(lambda: len(self.receipts) + len(self.failures) == self.sent)


class Consuming:
    """A consumer on a thread that acknowledges two of three messages."""

    def __init__(self, client: Any, topic: str, kind: Any) -> None:
        self._consumer = client.subscribe(
            topic,
            "s",
            consumer_type=kind,
            initial_position=pulsar.InitialPosition.Earliest,
            batch_index_ack_enabled=True,
            receiver_queue_size=200,
        )
        self.seen: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                message = self._consumer.receive(100)
            except pulsar.Timeout:
                continue
            number = int(message.data())
            self.seen.add(number)
            if number % 3:
                self._consumer.acknowledge(message)

    def finish(self) -> None:
        """Stop."""
        self._stop.set()
        self._thread.join()
        self._consumer.close()


def kill_again_and_again(server: ServerProcess, settings: list[str]) -> tuple[ServerProcess, int]:
    """Kill and restart on the same port; gives the last server and how often."""
    random = Random(SEED)
    listen = f"any={server.addresses['any']}"
    kills, end_s = 0, time.monotonic() + SECONDS
    while kills < ROUNDS if ROUNDS else time.monotonic() < end_s:
        time.sleep(random.choice((0.1, 0.4, 0.8)) * (0.5 + random.random()))
        server.kill()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server = start(server.data_dir, listen, settings)
        kills += 1
    return server, kills


def read_all(client: Any, topic: str) -> list[tuple[int, int]]:
    """Everything in a topic: the number, and the entry that it is in."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found: list[tuple[int, int]] = []
    while reader.has_message_available():
        message = reader.read_next(20_000)
        found.append((int(message.data()), message.message_id().entry_id()))
    reader.close()
    return found


def connect(server: ServerProcess) -> Any:
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    return pulsar.Client(f"pulsar://{server.addresses['any']}", logger=logger, operation_timeout_seconds=30)


@pytest.mark.timeout(90 + 3 * ROUNDS)
@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_receipts_and_acknowledgements_survive(tmp_path: Path, durability: str) -> None:
    settings = [f"durability={durability}", "pulsar.deduplication.enable=true"]
    server = start(str(tmp_path / "data"), ANY, settings)
    client = connect(server)
    try:
        shared, exclusive = pulsar.ConsumerType.Shared, pulsar.ConsumerType.Exclusive
        batched = {"batching_enabled": True, "batching_max_messages": 20, "batching_max_publish_delay_ms": 5}
        producing = {
            "single": Producing(client, "single", batching_enabled=False),
            "batched": Producing(client, "batched", **batched),
        }
        consuming = {
            "single": Consuming(client, "single", shared),
            "batched": Consuming(client, "batched", exclusive),
        }
        server, kills = kill_again_and_again(server, settings)
        for one in producing.values():
            one.finish()
        for topic, load in producing.items():
            eventually(lambda load=load, topic=topic: consuming[topic].seen >= set(range(load.sent)))  # type: ignore[misc]  # mypy cannot infer lambdas with defaults
        time.sleep(SETTLED_S)
        for each in consuming.values():
            each.finish()
        server.kill()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server = start(server.data_dir, f"any={server.addresses['any']}", settings)
        for topic, load in producing.items():
            print(f"{topic}, {durability}: seed {SEED}, {kills} kills, {load.sent} messages")
            check_log(client, topic, load)
            check_cursor(client, topic, load.sent)
        client.close()
        assert server.stop() == 0
    finally:
        if server.process.poll() is None:
            server.kill()
        assert server.process.stdout is not None
        server.process.stdout.close()
    assert "Traceback" not in server.log()
    assert "damage" not in server.log()


def check_log(client: Any, topic: str, load: Producing) -> None:
    """Every message is there once, in order, and where its receipt said."""
    assert load.failures == []
    found = read_all(client, topic)
    assert [number for number, _ in found] == list(range(load.sent))
    places = dict(found)
    told = {number: place for number, place in load.receipts.items() if place != NO_PLACE}
    assert {number: places[number] for number in told} == told
    assert len(told) > load.sent / 4, "most receipts say where"


def check_cursor(client: Any, topic: str, sent: int) -> None:
    """What was not acknowledged comes, all of it, and nothing of what was, although that had no receipts."""
    consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared, batch_index_ack_enabled=True)
    left: list[int] = []
    while True:
        try:
            left.append(int(consumer.receive(DRAINED_MS).data()))
        except pulsar.Timeout:
            break
    consumer.close()
    assert sorted(left) == list(range(0, sent, 3))
