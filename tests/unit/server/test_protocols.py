"""Loading the protocols once the server is ready."""

import asyncio
from typing import Any, cast

import pytest

from millstream.server import protocols
from millstream.server.config import ServerConfig
from millstream.server.places import Places
from millstream.server.protocols import Protocols


def test_a_protocol_that_cannot_be_loaded_keeps_no_other_from_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = []

    def fail(_: object, __: object) -> Any:
        raise ImportError("no such module")

    def succeed(_: object, __: object) -> Any:
        loaded.append("good")
        return object()

    monkeypatch.setattr(protocols, "PROTOCOLS", {"bad": fail, "good": succeed})

    async def test() -> None:
        found = Protocols(cast(Any, None), Places({}), ServerConfig())
        found.load()
        while not loaded:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert found.service("good") is found.service("good")

    asyncio.run(asyncio.wait_for(test(), 10))
    assert loaded == ["good"]
    assert caplog.text.count("the protocol bad cannot be loaded") == 1
