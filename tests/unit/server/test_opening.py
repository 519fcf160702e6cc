"""Connections that have not said yet what they speak, on real sockets: who is waited for, and who is refused."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from millstream.server.config import ServerConfig
from millstream.server.server import Server
from millstream.wire.kafka.messages.api_versions import API_VERSIONS, ApiVersionsRequest

QUESTION = b"".join(API_VERSIONS.encode_request(0, 7, "test", ApiVersionsRequest()))
NAMES = ("kafka", "kafka07", "pulsar", "iggy", "http", "any")
EVERY = tuple(f"{name}=127.0.0.1:0" for name in NAMES)
SOON = "listener.recognition.timeout.ms=100"
PATIENCE_S = 10.0


@contextlib.asynccontextmanager
async def serving(path: Path, *settings: str, listen: tuple[str, ...] = EVERY) -> AsyncIterator[Server]:
    config = ServerConfig.of(data_dir=str(path / "data"), listen=listen, settings=["durability=os", *settings])
    server = Server(config)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


class Peer:
    """A client that says what a test tells it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def say(self, data: bytes) -> None:
        self._writer.write(data)

    async def answer(self) -> bytes:
        """The body of the next answer, of a protocol that puts a big-endian size in front."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._reader.readexactly(int.from_bytes(await self._reader.readexactly(4), "big"))

    async def is_answered(self) -> bool:
        """Whether the question is answered as a Kafka client is."""
        return (await self.answer())[:4] == b"\0\0\0\7"

    async def rest(self) -> bytes:
        """What comes until the server ends the connection."""
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ConnectionResetError):
                return await self._reader.read()
        return b""


@contextlib.asynccontextmanager
async def connected(server: Server, listener: str) -> AsyncIterator[Peer]:
    host, _, port = server.addresses()[listener].rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield Peer(reader, writer)
    finally:
        writer.close()


def run(test: Coroutine[Any, Any, None], *, plain: bool = False) -> None:
    """Run a test on the loop of the server process; or on asyncio's own, which programs may bring."""
    with asyncio.Runner(loop_factory=None if plain else uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(test, 30))


def test_one_client_on_every_listener(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as server:
            for name in NAMES:
                async with connected(server, name) as peer:
                    for byte in QUESTION:  # byte by byte, and then at once
                        peer.say(bytes([byte]))
                        await asyncio.sleep(0.001)
                    peer.say(QUESTION * 2)
                    assert [await peer.is_answered() for _ in range(3)] == [True] * 3

    run(test())


def test_who_says_nothing_is_waited_for_where_the_listener_has_a_protocol(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, SOON) as server, connected(server, "kafka") as peer:
            await asyncio.sleep(0.3)
            peer.say(QUESTION)
            assert await peer.is_answered()

    run(test())


def test_who_says_nothing_has_no_session_and_ends_with_the_idle(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with serving(tmp_path, "connections.max.idle.ms=50") as server, connected(server, "kafka") as peer:
            assert await peer.rest() == b""

    with caplog.at_level(logging.INFO, "millstream"):
        run(test())
    assert "connection opened" not in caplog.text
    assert "connection idle" in caplog.text


def test_who_says_nothing_is_refused_where_it_could_be_anything(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with serving(tmp_path, SOON) as server, connected(server, "any") as peer:
            assert await peer.rest() == b""

    run(test())
    assert "it said too little to be recognised" in caplog.text


def test_who_says_too_little_is_taken_for_the_listeners_own(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, SOON) as server:
            for name, served in (("kafka", True), ("any", False)):
                async with connected(server, name) as peer:
                    peer.say(QUESTION[:7])
                    await asyncio.sleep(0.3)
                    peer.say(QUESTION[7:])
                    if served:
                        assert await peer.is_answered()
                    else:
                        assert await peer.rest() == b""

    run(test())


def test_what_is_of_no_protocol(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with serving(tmp_path) as server:
            async with connected(server, "any") as peer:
                peer.say(b"SSH-2.0-OpenSSH_10.0\r\n")
                assert await peer.rest() == b""
            async with connected(server, "http") as peer:
                peer.say(b"BREW /pot HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                assert (await peer.rest()).startswith(b"HTTP/1.1 40")
            for name in NAMES[:4]:
                async with connected(server, name) as peer:
                    peer.say(b"SSH-2.0-OpenSSH_10.0\r\n")
                    assert await peer.rest() == b""

    run(test())
    assert "it begins like no protocol that is spoken here: 53 53 48 2d" in caplog.text


def test_a_pinned_listener_takes_its_own_only(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, "listener.pinned=kafka, iggy") as server:
            async with connected(server, "iggy") as peer:
                peer.say(QUESTION)
                assert await peer.rest() == b""
            for name in ("kafka", "pulsar"):
                async with connected(server, name) as peer:
                    peer.say(QUESTION)
                    assert await peer.is_answered()

    run(test())


def test_a_stop_ends_who_has_said_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with contextlib.AsyncExitStack() as peers:
            async with serving(tmp_path) as server:
                silent = await peers.enter_async_context(connected(server, "kafka"))
                begun = await peers.enter_async_context(connected(server, "any"))
                begun.say(QUESTION[:5])
                await asyncio.sleep(0.05)
            assert (await silent.rest(), await begun.rest()) == (b"", b"")

    run(test())


def test_nobody_is_recognised_once_the_server_stops(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with contextlib.AsyncExitStack() as peers:
            async with serving(tmp_path, "listener.recognition.timeout.ms=1") as server:
                late = await peers.enter_async_context(connected(server, "kafka"))
                await asyncio.sleep(0.05)
                for listener in server._listeners.values():
                    listener.stop_accepting()
                late.say(QUESTION)
                await asyncio.sleep(0.05)
            assert await late.rest() == b""

    with caplog.at_level(logging.INFO, "millstream"):
        run(test())
    assert "connection opened" not in caplog.text


def test_connections_are_counted_whatever_they_have_said(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as server, connected(server, "kafka"), connected(server, "kafka") as peer:
            peer.say(QUESTION)
            assert await peer.is_answered()
            assert server.connection_counts()["kafka"] == 2

    run(test())
