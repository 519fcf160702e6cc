"""What a client of Kafka 0.7 finds in ZooKeeper, and that it leads it here."""

import time
from collections.abc import Callable
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.conformance.kafka07_raw.connection import OldConnection
from tests.conformance.kafka07_zookeeper.conftest import ZooKeeperProcess
from tests.support.server_process import ServerProcess, serving, start
from tests.unit.wire.kafka07.sets import message_set

WAIT_S = 40.0


def soon(look: Callable[[], object], expected: object) -> None:
    """Wait until ZooKeeper shows something."""
    deadline_s = time.monotonic() + WAIT_S
    while (found := look()) != expected:
        assert time.monotonic() < deadline_s, f"{found!r} instead of {expected!r}"
        time.sleep(0.05)


def value(client: KazooClient, path: str) -> bytes | None:
    try:
        content, _ = client.get(path)
    except NoNodeError:
        return None
    return bytes(content)


def address_of_broker(client: KazooClient, broker_id: int) -> str | None:
    """HOST:PORT of a broker, read as clients read it."""
    content = value(client, f"/brokers/ids/{broker_id}")
    if content is None:
        return None
    creator, host, port = content.decode().split(":")
    assert creator.startswith(f"{host}-")
    return f"{host}:{port}"


def run(directory: Path, zookeeper: str) -> ServerProcess:
    settings = [f"zookeeper.connect={zookeeper}", "kafka07.broker.id=3", "num.partitions=2"]
    return start(str(directory / "broker"), "kafka07=127.0.0.1:0", settings)


def test_brokers_and_topics(zookeeper: ZooKeeperProcess, looker: KazooClient, tmp_path: Path) -> None:
    server = run(tmp_path, zookeeper.address)
    soon(lambda: address_of_broker(looker, 3), server.addresses["kafka07"])
    connection = OldConnection(address_of_broker(looker, 3) or "")
    connection.produce("found", message_set(b"x"))
    soon(lambda: value(looker, "/brokers/topics/found/3"), b"2")
    assert looker.exists("/brokers/topics/found/3").ephemeralOwner
    assert not looker.exists("/brokers/topics/found").ephemeralOwner
    connection.close()
    assert server.stop() == 0
    assert value(looker, "/brokers/ids/3") is None, "a stop takes it back at once"
    assert value(looker, "/brokers/topics/found/3") is None
    assert server.process.stdout is not None
    server.process.stdout.close()


def test_below_a_path(zookeeper: ZooKeeperProcess, looker: KazooClient, tmp_path: Path) -> None:
    server = run(tmp_path, f"{zookeeper.address}/kafka/old")
    soon(lambda: value(looker, "/kafka/old/brokers/ids/3") is not None, True)
    assert server.stop() == 0
    assert server.process.stdout is not None
    server.process.stdout.close()


def check_registered(zookeeper: str, server: str) -> None:
    """Wait until a client finds the broker and its topic."""
    client = KazooClient(zookeeper, timeout=20)
    client.start(30)
    soon(lambda: address_of_broker(client, 3), server)
    soon(lambda: value(client, "/brokers/topics/patient/3"), b"2")
    client.stop()
    client.close()


def test_zookeeper_comes_later_and_goes_in_between(zookeeper: ZooKeeperProcess, tmp_path: Path) -> None:
    zookeeper.stop()
    server = run(tmp_path, zookeeper.address)
    connection = OldConnection(server.addresses["kafka07"])
    connection.produce("patient", message_set(b"x"))
    assert connection.read_until("patient", 10) == message_set(b"x"), "served without ZooKeeper"
    for _ in range(2):
        zookeeper.start()
        check_registered(zookeeper.address, server.addresses["kafka07"])
        zookeeper.stop()
    connection.close()
    assert server.stop() == 0
    assert server.process.stdout is not None
    server.process.stdout.close()


def test_a_broker_that_was_killed_comes_back(
    zookeeper: ZooKeeperProcess, looker: KazooClient, tmp_path: Path
) -> None:
    first = run(tmp_path, zookeeper.address)
    soon(lambda: address_of_broker(looker, 3), first.addresses["kafka07"])
    first.kill()
    second = run(tmp_path, zookeeper.address)
    soon(lambda: address_of_broker(looker, 3), second.addresses["kafka07"])
    assert second.stop() == 0
    for server in (first, second):
        assert server.process.stdout is not None
        server.process.stdout.close()


def test_off_by_default(looker: KazooClient, tmp_path: Path) -> None:
    with serving(str(tmp_path / "broker"), "kafka07=127.0.0.1:0"):
        time.sleep(1.5)
        assert not looker.exists("/brokers")
