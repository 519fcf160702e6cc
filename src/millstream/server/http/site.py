"""What the routes work on."""

import asyncio
from dataclasses import dataclass
from typing import TypeVar

from fastapi import Request

from millstream.broker.broker import Broker
from millstream.model.pending import Pending
from millstream.server.places import Places

__all__ = ["Site", "outcome", "site_of"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Site:
    """What the routes work on.

    Args:
        broker: the broker.
        places: where clients of each protocol are told to connect.
    """

    broker: Broker
    places: Places


def site_of(request: Request) -> Site:
    """The site of a request, as a dependency of a route."""
    site: Site = request.app.state.site
    return site


async def outcome(pending: Pending[T]) -> T:
    """Wait for a pending answer; raises the error it failed with."""
    if not pending.done:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        pending.when_done(lambda _: None if future.done() else future.set_result(None))
        await future
    return pending.result()
