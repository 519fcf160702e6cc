"""Refusals that only Kafka 0.7 knows.

MillstreamError
└── Kafka07Refusal
    ├── WrongPartition      a partition that the topic does not have
    └── Unanswerable        a request without an answer that cannot be done: its connection ends
"""

from millstream.model.errors import MillstreamError
from millstream.wire.errors import WireError

__all__ = ["Kafka07Refusal", "Unanswerable", "WrongPartition"]


class Kafka07Refusal(MillstreamError):
    """Base of the errors of this package."""


class WrongPartition(Kafka07Refusal):
    """A partition that the topic does not have."""


class Unanswerable(Kafka07Refusal, WireError):
    """A request cannot be done, and has no answer to say so; as with the original, the connection ends."""
