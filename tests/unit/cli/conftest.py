"""What the tests of the command share."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest


@dataclass(frozen=True, slots=True)
class Received:
    """A record as a consumer hands it out: the methods of a confluent_kafka.Message that the command uses."""

    value_: bytes | None = b"value"
    key_: bytes | None = None
    headers_: list[tuple[str, bytes | None]] = field(default_factory=list)
    timestamp_: tuple[int, int] = (1, 1_769_860_800_123)
    partition_: int = 3
    offset_: int = 7

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return self.partition_

    def offset(self) -> int:
        return self.offset_

    def key(self) -> bytes | None:
        return self.key_

    def value(self) -> bytes | None:
        return self.value_

    def timestamp(self) -> tuple[int, int]:
        return self.timestamp_

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self.headers_ or None

    def error(self) -> None:
        return None


@pytest.fixture(scope="session")
def received() -> Callable[..., Received]:
    """Make a record; the arguments are the fields of Received."""
    return Received
