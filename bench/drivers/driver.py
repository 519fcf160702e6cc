"""What a line asks of a driver."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.drivers.pacing import PacedSender
from bench.load import Budget, Load, Work

__all__ = ["ClientDriver", "Driver", "Endpoint"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens, and how safe its acknowledgements are to be.

    Args:
        host, port: the listener.
        acks: what a Kafka producer asks for; peers with other protocols are configured instead.
    """

    host: str
    port: int
    acks: int = 1


class Driver(Protocol):
    """Writes and reads topics (streams, in the words of NATS and Redis) as fast as the server lets it."""

    def create(self, topic: str) -> None:
        """Create a topic with one partition."""
        ...

    def drop(self, topic: str) -> None:
        """Delete a topic."""
        ...

    def produce(self, topics: Sequence[str], load: Load, budget: Budget) -> Work:
        """Write to each topic over a connection of its own, all at once, until the budget is used up.

        Every record counted was acknowledged without an error.
        """
        ...

    def consume(self, topic: str, load: Load, records: int, budget: Budget) -> Work:
        """Read a topic of `records` records from its beginning, again and again, until the budget is used up."""
        ...


class ClientDriver(Driver, Protocol):
    """A driver over a client library that applications use."""

    def round_trip(self, topic: str) -> None:
        """Connect, create the topic, write one record and read it back."""
        ...

    def deliveries(self, topic: str, sender: PacedSender) -> list[float]:
        """Send by a schedule to a consumer that waits.

        Returns:
            For each record the seconds from when it was due to be sent to when the consumer had it.
        """
        ...
