"""Transactions of the Java client: nothing half done, whatever happens."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.pulsar_java.conftest import ANY
from tests.support.java_scenarios import Play, Start
from tests.support.server_process import ServerProcess, serving, start

pytestmark = pytest.mark.timeout(400)


@pytest.mark.parametrize(
    "scenario",
    ["commit", "abort", "timeout", "transform-exclusive", "transform-shared", "cumulative", "conflict"],
)
def test_transactions(server: ServerProcess, play: Play, unique: Callable[[str], str], scenario: str) -> None:
    play(server, scenario, unique(scenario))


def test_a_transaction_over_partitions(server: ServerProcess, play: Play, unique: Callable[[str], str]) -> None:
    stem = unique("partitions")
    admin = AdminClient({"bootstrap.servers": server.addresses["any"]})
    admin.create_topics([NewTopic(f"{stem}-t", 3)])[f"{stem}-t"].result(20)
    play(server, "partitions", stem)


def test_kafka_consumers_see_what_pulsar_consumers_see(
    server: ServerProcess, play: Play, unique: Callable[[str], str]
) -> None:
    stem = unique("abort")
    play(server, "abort", stem)
    consumer = Consumer(
        {
            "bootstrap.servers": server.addresses["any"],
            "group.id": stem,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([f"{stem}-t"])
    values = []
    while (message := consumer.poll(20)) is not None and message.error() is None:
        values.append(message.value())
    consumer.close()
    assert values == [b"stays"]


def test_what_was_answered_survives_kill_9(tmp_path: Path, play: Play, unique: Callable[[str], str]) -> None:
    """A committed transaction stays, an open one is aborted by its time, and hides what is behind it until then."""
    data_dir, stem = str(tmp_path / "data"), unique("crash")
    first = start(data_dir, ANY)
    try:
        assert "left open" in play(first, "leave-open", stem)
    finally:
        first.kill()
        assert first.process.stdout is not None
        first.process.stdout.close()
    with serving(data_dir, ANY) as second:
        play(second, "after-crash", stem)
        assert "Traceback" not in second.log()


def test_they_can_be_switched_off(tmp_path: Path, start: Start, unique: Callable[[str], str]) -> None:
    with serving(str(tmp_path / "data"), ANY, ["pulsar.transactions.enable=false"]) as off:
        process = start(off, "commit", unique("off"))
        _, errors = process.communicate(timeout=90)
        assert process.returncode == 1
        assert "switched off" in errors
