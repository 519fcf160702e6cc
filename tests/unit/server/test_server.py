"""A server on real sockets: its start, what it tells clients, its limits, and its end."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest

from millstream.server.config import ServerConfig
from millstream.server.errors import ListenerFailed
from millstream.server.server import Server
from millstream.storage.errors import DataDirectoryInUse, DataDirectoryUnusable
from millstream.storage.metadata import MetadataFailed
from millstream.wire.kafka.api import Api
from millstream.wire.kafka.messages.fetch import FETCH
from millstream.wire.kafka.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from tests.unit.sessions.kafka.conversation import fetch_request


class PeerClosed(Exception):
    """The server has ended the connection."""


class Client:
    """A Kafka client that sends one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def receive(self, api: Api, version: int) -> Any:
        try:
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return api.decode_response(version, memoryview(await self.reader.readexactly(size)))[1]
        except asyncio.IncompleteReadError:
            raise PeerClosed from None

    def send(self, api: Api, request: object, version: int) -> None:
        self.writer.writelines(api.encode_request(version, 1, "test", request))

    async def ask(self, api: Api, request: object, version: int) -> Any:
        self.send(api, request, version)
        return await asyncio.wait_for(self.receive(api, version), 10)

    async def metadata(self, *names: str) -> Any:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
        return await self.ask(METADATA, request, 9)


@contextlib.asynccontextmanager
async def connected(address: str) -> AsyncIterator[Client]:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


def config(path: Path, *settings: str, listen: str = "kafka=127.0.0.1:0") -> ServerConfig:
    return ServerConfig.of(data_dir=str(path / "data"), listen=[listen], settings=["durability=os", *settings])


@contextlib.asynccontextmanager
async def serving(path: Path, *settings: str, listen: str = "kafka=127.0.0.1:0") -> AsyncIterator[Server]:
    server = Server(config(path, *settings, listen=listen))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


def test_a_server_serves_and_serves_again_on_the_same_directory(tmp_path: Path) -> None:
    async def test() -> None:
        for _ in range(2):
            async with serving(tmp_path) as server, connected(server.addresses()["kafka"]) as client:
                [broker] = (await client.metadata("orders")).brokers
                assert f"{broker.host}:{broker.port}" == server.addresses()["kafka"]
                assert server.addresses_line() == f"kafka={broker.host}:{broker.port}"
            async with serving(tmp_path) as server, connected(server.addresses()["kafka"]) as client:
                everything = await client.ask(METADATA, MetadataRequest(topics=None), 9)
                assert [topic.name for topic in everything.topics] == ["orders"]

    run(test())


@pytest.mark.parametrize(
    ("listen", "told"),
    [
        ("kafka=0.0.0.0:0", "127.0.0.1"),
        ("kafka=127.0.0.1:0", "127.0.0.1"),
        ("kafka=localhost:0", "localhost"),
    ],
)
def test_clients_are_told_an_address_that_reaches_the_server(tmp_path: Path, listen: str, told: str) -> None:
    async def test() -> None:
        async with serving(tmp_path, listen=listen) as server:
            port = server.addresses()["kafka"].rpartition(":")[2]
            async with connected(f"127.0.0.1:{port}") as client:
                [broker] = (await client.metadata()).brokers
                assert (broker.host, broker.port) == (told, int(port))

    run(test())


def test_clients_are_told_what_is_advertised(tmp_path: Path) -> None:
    async def test() -> None:
        advertised = "advertised.listeners=kafka=outside.example:1234"
        async with serving(tmp_path, advertised) as server, connected(server.addresses()["kafka"]) as client:
            [broker] = (await client.metadata()).brokers
            assert (broker.host, broker.port) == ("outside.example", 1234)

    run(test())


def test_an_address_that_is_taken_leaves_nothing_running(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path / "one") as first:
            second = Server(config(tmp_path / "two", listen=f"kafka={first.addresses()['kafka']}"))
            with pytest.raises(ListenerFailed, match="cannot listen on 127"):
                await second.start()
        async with serving(tmp_path / "two"):
            pass

    run(test())


def test_a_directory_that_is_in_use_or_useless(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path):
            with pytest.raises(DataDirectoryInUse, match="another server is using"):
                await Server(config(tmp_path)).start()
        (tmp_path / "file").write_text("")
        with pytest.raises(DataDirectoryUnusable):
            await Server(config(tmp_path / "file")).start()
        (tmp_path / "data" / "metadata.sqlite").write_text("not a database, and longer than its header would be" * 9)
        with pytest.raises(MetadataFailed):
            await Server(config(tmp_path)).start()
        (tmp_path / "data" / "metadata.sqlite").unlink()
        async with serving(tmp_path):
            pass

    run(test())


def test_rubbish_ends_one_connection_and_no_other(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as server, connected(server.addresses()["kafka"]) as good:
            for rubbish in (b"SSH-2.0-OpenSSH_10.0\r\n", bytes(100), b"\xff" * 100, struct.pack(">i", 2**31 - 1)):
                async with connected(server.addresses()["kafka"]) as bad:
                    bad.writer.write(rubbish)
                    assert await asyncio.wait_for(bad.reader.read(), 10) == b""
            await good.metadata()

    run(test())


def test_the_largest_request_is_a_setting(tmp_path: Path) -> None:
    async def test() -> None:
        limit = "socket.request.max.bytes=200"
        async with serving(tmp_path, limit) as server, connected(server.addresses()["kafka"]) as client:
            await client.metadata("a" * 100)
            with pytest.raises(PeerClosed):
                await client.metadata("a" * 200)

    run(test())


def test_an_idle_connection_is_closed_and_one_that_waits_is_not(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, "connections.max.idle.ms=50") as server:
            address = server.addresses()["kafka"]
            async with connected(address) as idle, connected(address) as waiting:
                await waiting.metadata("orders")
                waiting.send(FETCH, fetch_request(max_wait_ms=400), 12)
                assert await asyncio.wait_for(idle.reader.read(), 10) == b""
                response = await asyncio.wait_for(waiting.receive(FETCH, 12), 10)
                assert response.responses[0].topic == "orders"

    run(test())


def test_a_stop_answers_who_waits_and_ends_all_connections(tmp_path: Path) -> None:
    async def test() -> None:
        server = Server(config(tmp_path))
        await server.start()
        async with connected(server.addresses()["kafka"]) as client:
            await client.metadata("orders")
            client.send(FETCH, fetch_request(max_wait_ms=600_000), 12)
            await asyncio.sleep(0.05)
            await asyncio.wait_for(server.stop(), 10)
            response = await asyncio.wait_for(client.receive(FETCH, 12), 10)
            assert response.responses[0].partitions[0].error_code == 0
            assert await asyncio.wait_for(client.reader.read(), 10) == b""

    run(test())
