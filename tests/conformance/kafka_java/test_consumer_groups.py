"""Consumer groups of the Java client of Apache Kafka 4 (KIP-848)."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.conftest import IMPATIENT_GROUPS
from tests.support.java_scenarios import SCENARIO_TIMEOUT_S, Play, Start
from tests.support.server_process import ServerProcess, lasting_listener
from tests.support.server_process import start as start_server

pytestmark = pytest.mark.timeout(400)
KILLS = 3
KILL_EVERY_S = 1.5


@pytest.mark.parametrize(
    "scenario",
    [
        "members",
        "static-members",
        "patterns",
        "resume",
        "transactional-offsets",
        "group-admin",
        "migration",
    ],
)
def test_consumer_groups(
    impatient_broker: ServerProcess, play: Play, unique: Callable[[str], str], scenario: str
) -> None:
    play(impatient_broker, scenario, unique(scenario))


def test_members_go_on_while_the_server_is_killed(tmp_path: Path, start: Start, unique: Callable[[str], str]) -> None:
    listen = lasting_listener()
    server = start_server(str(tmp_path / "data"), listen, IMPATIENT_GROUPS)
    try:
        process = start(server, "group-through-restarts", unique("restarts"))
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(KILLS):
            time.sleep(KILL_EVERY_S)
            server.kill()
            server = start_server(server.data_dir, listen, IMPATIENT_GROUPS)
        _, errors = process.communicate(timeout=SCENARIO_TIMEOUT_S)
        assert process.returncode == 0, errors[-4000:]
    finally:
        if server.process.poll() is None:
            server.stop()
    assert "Traceback" not in server.log()
