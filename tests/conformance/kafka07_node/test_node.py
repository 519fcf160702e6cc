"""npm's prozess 0.7.0 and kafka 0.2.3, which read nothing but magic 1 and magic 0: what they write, and others do."""

from collections.abc import Iterator

import pytest

from tests.conformance.kafka07_node.conftest import Run
from tests.conformance.raw.log_client import LogClient
from tests.support.server_process import ServerProcess, serving

MAGIC = {"kafka": 0, "prozess": 1}
"""Of the messages that each reads. kafka takes all to have magic 0; prozess counts a byte too many for those."""


@pytest.fixture(scope="module", params=sorted(MAGIC))
def module(request: pytest.FixtureRequest) -> str:
    """The client."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def server(module: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that gives what others wrote in the magic that the client reads."""
    data_dir = str(tmp_path_factory.mktemp(module) / "data")
    with serving(data_dir, "any=127.0.0.1:0", [f"kafka07.magic={MAGIC[module]}"]) as server:
        yield server
        assert "internal error" not in server.log()


def test_round_trip(run: Run, server: ServerProcess, module: str) -> None:
    run(server.addresses["any"], module, "roundTrip", topic=f"{module}-own")


def test_what_a_client_of_today_wrote(run: Run, server: ServerProcess, module: str) -> None:
    modern = LogClient(server.addresses["any"])
    topic = f"{module}-others"
    modern.create_topic(topic)
    payloads = [f"{number} " * (number + 1) for number in range(100)]
    for first in range(0, 100, 10):
        modern.append(topic, *(payload.encode() for payload in payloads[first : first + 10]))
    modern.close()
    run(server.addresses["any"], module, "readOthers", topic=topic, payloads=payloads)
