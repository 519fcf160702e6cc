"""Transactions of the Java client: it is the one that has the epoch of a producer grow with each (KIP-890)."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.java_scenarios import SCENARIO_TIMEOUT_S, Play, Start
from tests.support.server_process import ServerProcess, lasting_listener
from tests.support.server_process import start as start_server

pytestmark = pytest.mark.timeout(400)
KILLS = 5
KILL_EVERY_S = 0.7


@pytest.mark.parametrize(
    "scenario",
    [
        "features",
        "commit-and-abort",
        "epochs-grow",
        "many",
        "idempotent",
        "offsets",
        "fencing",
        "timeout",
        "admin",
    ],
)
def test_transactions(broker: ServerProcess, play: Play, unique: Callable[[str], str], scenario: str) -> None:
    play(broker, scenario, unique(scenario))


def test_what_was_answered_survives_kill_9(tmp_path: Path, play: Play, unique: Callable[[str], str]) -> None:
    data_dir, stem = str(tmp_path / "data"), unique("crash")
    first = start_server(data_dir)
    try:
        play(first, "leave-open", stem)
    finally:
        first.kill()
    second = start_server(data_dir)
    try:
        play(second, "take-over", stem)
    finally:
        assert second.stop() == 0
    assert "Traceback" not in second.log()


def test_a_producer_goes_on_while_the_server_is_killed(
    tmp_path: Path, start: Start, unique: Callable[[str], str]
) -> None:
    """Every transaction that was answered is there once, whole, and nothing else is."""
    listen = lasting_listener()
    server = start_server(str(tmp_path / "data"), listen)
    try:
        process = start(server, "through-restarts", unique("restarts"))
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(KILLS):
            time.sleep(KILL_EVERY_S)
            server.kill()
            server = start_server(server.data_dir, listen)
        out, errors = process.communicate(timeout=SCENARIO_TIMEOUT_S)
        assert process.returncode == 0, errors[-4000:]
        assert out.count("committed") == 40
    finally:
        if server.process.poll() is None:
            server.stop()
    assert "Traceback" not in server.log()
