"""The crate `iggy` 0.0.60, whose every command is the documented protocol's, and 0.0.61, which has two more."""

import itertools
import subprocess
from pathlib import Path

import confluent_kafka
import pytest

from tests.support.cargo_program import BUILD_TIMEOUT_S
from tests.support.server_process import ServerProcess

SCENARIO_TIMEOUT_S = 90
SCENARIOS = ["system", "streams", "topics", "messages", "offsets", "groups", "background", "updates"]
_streams = itertools.count(100, 10)
"""Numbers of streams, which clients of this dialect choose; a scenario may use those behind its own too."""
pytestmark = pytest.mark.timeout(BUILD_TIMEOUT_S + SCENARIO_TIMEOUT_S + 60)


def play(server: ServerProcess, program: Path, scenario: str, stream: int) -> None:
    """Run a scenario to its end; what it does not find as it should be is a failure."""
    command = [str(program), server.addresses["any"], scenario, str(stream)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=SCENARIO_TIMEOUT_S, check=False)
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_command(server: ServerProcess, program: Path, scenario: str) -> None:
    play(server, program, scenario, next(_streams))


def test_kafka_clients_share_a_topic(server: ServerProcess, program: Path) -> None:
    """What the client wrote a Kafka client reads, and the other way round."""
    stream = next(_streams)
    servers = {"bootstrap.servers": server.addresses["any"]}
    play(server, program, "write", stream)
    topic = f"rust-{stream}.t1"
    producer = confluent_kafka.Producer(servers)
    producer.produce(topic, "of Kafka", headers={"k": "v"}, partition=0)
    assert producer.flush(20) == 0
    reader = confluent_kafka.Consumer({**servers, "group.id": topic, "check.crcs": True})
    reader.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    values, headers = [], []
    for offset in range(3):
        message = reader.poll(20)
        assert message is not None
        assert message.error() is None, message.error()
        assert message.offset() == offset
        values.append(message.value())
        headers.append([name for name, _ in message.headers() or []])
    reader.close()
    assert values == [b"plain", b"with a header", b"of Kafka"]
    assert "name" in headers[1]
    play(server, program, "read", stream)
