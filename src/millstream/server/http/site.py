"""What the routes work on."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Protocol, TypeVar

from fastapi import Request

from millstream.broker.broker import Broker
from millstream.broker.topics import Topic
from millstream.model.pending import Pending
from millstream.server.http.rates import Rates
from millstream.server.places import Places
from millstream.sessions.iggy.call import IggyShared
from millstream.sessions.pulsar.authentication import Tokens

__all__ = ["Compaction", "CompactionStatus", "Site", "outcome", "site_of"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CompactionStatus:
    """How the compaction of a partition stands.

    Args:
        status: NOT_RUN, RUNNING, SUCCESS or ERROR.
        last_error: what went wrong, for ERROR.
    """

    status: str
    last_error: str = ""


class Compaction(Protocol):
    """What compacts topics."""

    def start(self, topic: Topic, index: int) -> None:
        """Begin to compact a partition. Raises BrokerError if that is under way already."""

    def status(self, topic: Topic, index: int) -> CompactionStatus:
        """How it stands."""


@dataclass(frozen=True, slots=True)
class Site:
    """What the routes work on.

    Args:
        broker: the broker.
        places: where clients of each protocol are told to connect.
        connections: gives the number of connections by listener, for metrics; None if nobody counts them.
        compaction: what compacts topics; None if nothing does.
        rates: of what comes in, as far as they were asked for.
        iggy: gives what the Iggy protocol's connections share; None if the server does not speak it.
        tokens: checks who asks for Pulsar's calls; None lets everyone in.
    """

    broker: Broker
    places: Places
    connections: Callable[[], Mapping[str, int]] | None = None
    compaction: Compaction | None = None
    rates: Rates = field(default_factory=Rates)
    iggy: Callable[[], IggyShared] | None = None
    tokens: Tokens | None = None

    @property
    def version(self) -> str:
        """The version of the server."""
        return version("millstream")


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
