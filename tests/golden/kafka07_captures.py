"""What real clients of Kafka 0.7 sent, and were answered, in `kafka07/*.toml`: whole frames with their lengths.

A file names the client, what a partition held before (`stored`), and one or more exchanges: the request, what it
means, and the answer if it has one. `payloads` are those of all whole messages in either, unpacked.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CAPTURES", "Capture", "Exchange", "Stored"]


@dataclass(frozen=True)
class Stored:
    """Messages that a partition holds before."""

    topic: str
    partition: int
    messages: bytes


@dataclass(frozen=True)
class Exchange:
    """A request and its answer, None if it has none, and what they mean."""

    request: bytes
    answer: bytes | None
    meaning: dict[str, Any]


@dataclass(frozen=True)
class Capture:
    """One file."""

    name: str
    stored: list[Stored]
    exchanges: list[Exchange]


def _load(path: Path) -> Capture:
    content = tomllib.loads(path.read_text())
    stored = [
        Stored(one["topic"], one["partition"], bytes.fromhex(one["messages"])) for one in content.get("stored", [])
    ]
    exchanges = [
        Exchange(
            bytes.fromhex(one.pop("request")),
            bytes.fromhex(one.pop("answer")) if "answer" in one else None,
            one,
        )
        for one in content["exchange"]
    ]
    return Capture(path.stem, stored, exchanges)


CAPTURES = [_load(path) for path in sorted((Path(__file__).parent / "kafka07").glob("*.toml"))]
