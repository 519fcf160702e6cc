"""kill -9 of a real server under load, again and again: nothing that was acknowledged is lost or doubled.

MILLSTREAM_KILL_ROUNDS sets how many kills there are; without it, as many as fit into some seconds.
MILLSTREAM_KILL_SEED sets when they come.
"""

import os
import signal
import subprocess
import time
from pathlib import Path
from random import Random

import pytest

from tests.support.history import ANOMALIES, History
from tests.support.kafka_load import Load, create_topic, read_topic
from tests.support.server_process import ServerProcess, command, lasting_listener, serving, start

SEED = int(os.environ.get("MILLSTREAM_KILL_SEED", "1"))
ROUNDS = int(os.environ.get("MILLSTREAM_KILL_ROUNDS", "0"))
SECONDS = 12.0
RATE = 2000
NONE = dict.fromkeys(ANOMALIES, 0)
# Small segments, so that kills meet the sealing of segments too.
SEGMENTS = {"segment.bytes": "65536"}


def kill_again_and_again(data_dir: str, server: ServerProcess) -> tuple[ServerProcess, list[float]]:
    """Kill and restart on the same port; returns the last server, and how long each took to serve again, in s."""
    random = Random(SEED)
    listen = f"kafka={server.kafka}"
    restarts: list[float] = []
    end = time.monotonic() + SECONDS
    while len(restarts) < ROUNDS if ROUNDS else time.monotonic() < end:
        # Some kills come at once, while clients come back; most come under load.
        time.sleep(random.choice((0.02, 0.1, 0.3, 0.5)) * random.random())
        server.kill()
        began = time.monotonic()
        server = start(data_dir, listen)
        restarts.append(time.monotonic() - began)
    return server, restarts


def report(title: str, history: History, restarts: list[float]) -> None:
    """Print what a run has found."""
    restarts_ms = sorted(round(1000 * seconds) for seconds in restarts)
    print(
        f"{title}: seed {SEED}, {len(restarts)} kills, {history.acknowledged} acknowledged, "
        f"restart p50 {restarts_ms[len(restarts_ms) // 2]} ms, max {restarts_ms[-1]} ms, {history.anomalies()}"
    )


@pytest.mark.timeout(90 + 3 * ROUNDS)
def test_kill_under_load(tmp_path: Path) -> None:
    """An idempotent producer with acks=all and a plain one with acks=1, at the same time."""
    data_dir = str(tmp_path / "data")
    server = start(data_dir, lasting_listener())
    exactly, plain = History(), History()
    try:
        for topic, partitions in (("exactly", 3), ("plain", 1)):
            create_topic(server.kafka, topic, partitions, SEGMENTS)
        idempotent = {"enable.idempotence": True, "acks": "all", "message.timeout.ms": 0}
        once = {"enable.idempotence": False, "acks": "1", "message.timeout.ms": 0}
        with (
            Load(server.kafka, "exactly", 3, exactly, RATE, idempotent) as exactly_load,
            Load(server.kafka, "plain", 1, plain, RATE, once) as plain_load,
        ):
            server, restarts = kill_again_and_again(data_dir, server)
            left = (exactly_load.finish(), plain_load.finish())
        assert left == (0, 0), "all are answered in the end"
        assert (exactly_load.errors, plain_load.errors) == ([], [])
        ends = read_topic(server.kafka, "exactly", 3, exactly, "reader of exactly")
        read_topic(server.kafka, "plain", 1, plain, "reader of plain")
        report("idempotent, acks=all", exactly, restarts)
        report("plain, acks=1", plain, restarts)
        assert exactly.anomalies() == NONE
        assert sum(ends) == exactly.acknowledged, "offsets are dense"
        # What a plain producer sends again may be there twice, and out of order; but nothing may be missing.
        forgiven = {"duplicate", "nonmonotonic-send"}
        assert {name: n for name, n in plain.anomalies().items() if name not in forgiven and n} == {}
        check_clean_restart(data_dir, server, exactly)
    finally:
        if server.process.poll() is None:
            server.kill()
        assert server.process.stdout is not None
        server.process.stdout.close()
    assert "Traceback" not in server.log()
    assert "damage" not in server.log()


def check_clean_restart(data_dir: str, server: ServerProcess, history: History) -> None:
    """After SIGTERM everything is there once more."""
    assert server.stop() == 0
    with serving(data_dir) as again:
        read_topic(again.kafka, "exactly", 3, history, "reader after a clean stop")
    assert history.anomalies() == NONE
    assert len(history.polls["reader after a clean stop"]) == history.acknowledged


def test_a_stop_under_load_loses_nothing(tmp_path: Path) -> None:
    """SIGTERM while requests are under way: exit status 0, and what was acknowledged is there."""
    data_dir = str(tmp_path / "data")
    history = History()
    listen = lasting_listener()
    server = start(data_dir, listen)
    create_topic(server.kafka, "t", 2, SEGMENTS)
    settings = {"enable.idempotence": True, "acks": "all", "message.timeout.ms": 0}
    with Load(server.kafka, "t", 2, history, RATE, settings) as load:
        for _ in range(3):
            time.sleep(0.3)
            assert server.stop() == 0
            server = start(data_dir, listen)
        assert load.finish() == 0
    assert load.errors == []
    read_topic(server.kafka, "t", 2, history, "reader")
    assert history.anomalies() == NONE
    assert server.stop() == 0
    assert "torn tail" not in server.log()


def test_a_second_server_on_the_same_directory_says_so_and_ends(tmp_path: Path) -> None:
    data_dir = str(tmp_path / "data")
    with serving(data_dir) as first:
        second = subprocess.run(command(data_dir), capture_output=True, text=True, timeout=30, check=False)
        assert second.returncode == 1
        assert second.stdout == ""
        assert second.stderr.splitlines() == [
            f"error: another server is using {data_dir}; give this one a --data-dir of its own"
        ]
        create_topic(first.kafka, "still-served", 1, {})
    with serving(data_dir) as third:
        create_topic(third.kafka, "and-free-afterwards", 1, {})


def test_a_killed_server_leaves_its_directory_free(tmp_path: Path) -> None:
    data_dir = str(tmp_path / "data")
    server = start(data_dir)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    with serving(data_dir) as again:
        assert again.kafka
