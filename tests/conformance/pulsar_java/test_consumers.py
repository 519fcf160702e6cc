"""What the Java client has that others have not, or do otherwise."""

import http.client
import json
import time
from collections.abc import Callable

import pytest

from tests.support.java_scenarios import Play, Start
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.timeout(400)


@pytest.mark.parametrize(
    "scenario",
    [
        "json",
        "avro",
        "key-shared",
        "batch-index",
        "chunking",
        "dead-letters",
        "pattern",
        "reader",
        "table-view",
        "non-persistent",
    ],
)
def test_consumers(server: ServerProcess, play: Play, unique: Callable[[str], str], scenario: str) -> None:
    play(server, scenario, unique(scenario))


def administer(server: ServerProcess, method: str, path: str) -> str:
    """An HTTP request to the server."""
    connection = http.client.HTTPConnection(server.addresses["any"], timeout=20)
    connection.request(method, path)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    assert response.status < 300, body
    return body


def test_the_end_of_a_terminated_topic(server: ServerProcess, start: Start, unique: Callable[[str], str]) -> None:
    stem = unique("end")
    process = start(server, "end-of-topic", stem)
    assert process.stdout is not None
    assert process.stdout.readline() == "connected\n"
    produce(server, f"{stem}-t", [("k", b"last")])
    administer(server, "POST", f"/admin/v2/persistent/public/default/{stem}-t/terminate")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors[-3000:]


def produce(server: ServerProcess, topic: str, messages: list[tuple[str, bytes]]) -> None:
    """Send keyed messages in batches, through the C++ client."""
    pulsar = pytest.importorskip("pulsar", reason="messages are sent by the C++ client, which is not installed")
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(f"pulsar://{server.addresses['any']}", logger=logger)
    producer = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=50)
    for key, value in messages:
        producer.send_async(value, lambda *_: None, partition_key=key)
    producer.flush()
    client.close()


def test_compaction(server: ServerProcess, play: Play, unique: Callable[[str], str]) -> None:
    stem = unique("compaction")
    messages = [(f"k{n % 5}", b"v%d" % n) for n in range(50)]
    produce(server, f"{stem}-t", messages)
    produce(server, f"{stem}-t", [("k1", b""), ("k2", b"late")])
    path = f"/admin/v2/persistent/public/default/{stem}-t/compaction"
    administer(server, "PUT", path)
    for _ in range(200):
        status = json.loads(administer(server, "GET", path))
        if status["status"] != "RUNNING":
            break
        time.sleep(0.05)
    assert status == {"status": "SUCCESS", "lastError": ""}
    assert "count 4 {k0=v45, k2=late, k3=v48, k4=v49}\ntable 4\n" in play(server, "compacted", stem)
    produce(server, f"{stem}-t", [("k1", b"back")])
    assert "count 5 {k0=v45, k1=back, k2=late, k3=v48, k4=v49}\ntable 5\n" in play(server, "compacted-again", stem)
