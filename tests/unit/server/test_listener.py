"""A listener's look for idle connections, on connections that only remember."""

import asyncio

from millstream.server.config import Address
from millstream.server.listener import Listener
from millstream.server.places import Places

IDLE_MS = 20


class Connection:
    """A connection whose peer takes nothing, so that closing it does not end it."""

    def __init__(self, *, waiting: int = 0) -> None:
        self.address, self.protocol = "10.0.0.1:5555", "kafka"
        self.last_request_s = 0.0
        self.waiting = waiting
        self.closing = self.aborted = False

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        assert self.closing
        self.aborted = True

    def stop_serving(self) -> None:
        pass


def test_a_peer_that_takes_nothing_is_cut_off_at_the_second_look() -> None:
    async def test() -> None:
        address = Address("127.0.0.1", 0)
        listener = Listener("kafka", address, lambda _: asyncio.Protocol, Places({}), idle_ms=IDLE_MS)
        idle, waiting = Connection(), Connection(waiting=1)
        for connection in (idle, waiting):
            listener.opened(connection)
        await listener.start()
        assert (idle.closing, idle.aborted) == (True, False)
        async with asyncio.timeout(10):
            while not idle.aborted:
                await asyncio.sleep(IDLE_MS / 1000)
        assert not waiting.closing
        listener.stop_accepting()

    asyncio.run(test())
