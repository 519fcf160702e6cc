"""Registration in ZooKeeper without one: nobody waits for it. What it does with one is in tests/conformance."""

import asyncio
import socket
import time

import pytest

from millstream.server.config import ServerConfig
from millstream.server.server import Server
from millstream.server.zookeeper import Registration, ZooKeeper
from millstream.sessions.session import Endpoint
from tests.unit.broker.simulated_broker import SimulatedBroker


def closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def test_a_server_starts_and_stops_without_it(tmp_path: object) -> None:
    async def run() -> float:
        settings = [f"zookeeper.connect=127.0.0.1:{closed_port()}"]
        server = Server(ServerConfig.of(data_dir=f"{tmp_path}/data", listen=["any=127.0.0.1:0"], settings=settings))
        began = time.monotonic()
        await server.start()
        started = time.monotonic() - began
        await asyncio.sleep(0.2)
        await server.stop()
        return started

    assert asyncio.run(run()) < 3


def test_what_is_wanted_follows_the_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = SimulatedBroker()
    simulated.create("orders", partitions=3)
    wanted: list[Registration] = []
    hosts = f"127.0.0.1:{closed_port()}"
    zookeeper = ZooKeeper(hosts, 7, Endpoint("::1", 9070), simulated.broker.topics, simulated.runtime)
    monkeypatch.setattr(zookeeper._worker, "want", wanted.append)
    simulated.create("later")
    simulated.create("..")  # a topic to others, and no name in Kafka 0.7
    simulated.pass_ms(1500)
    simulated.pass_ms(5000)
    assert wanted == [Registration(7, Endpoint("::1", 9070), {"orders": 3, "later": 1})]
    asyncio.run(zookeeper.close())
