"""Every request of Kafka 0.7 and who serves it: the one table, from which the documentation is written too."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from millstream.sessions.kafka07 import fetch, offsets, produce
from millstream.sessions.kafka07.call import Call
from millstream.sessions.session import Answer
from millstream.wire.kafka07.requests import (
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    RequestType,
)

__all__ = ["HANDLERS", "Handler"]


@dataclass(frozen=True, slots=True)
class Handler:
    """How one type of request is served.

    Args:
        type: its number on the wire.
        handle: serves a decoded request; returns its answer, None for none.
        answered: whether it has an answer at all.
    """

    type: RequestType
    handle: Callable[[Call, Any], Answer]
    answered: bool = True


HANDLERS: Final[Mapping[type, Handler]] = {
    ProduceRequest: Handler(RequestType.PRODUCE, produce.handle, answered=False),
    FetchRequest: Handler(RequestType.FETCH, fetch.handle),
    MultiFetchRequest: Handler(RequestType.MULTIFETCH, fetch.handle_multi),
    MultiProduceRequest: Handler(RequestType.MULTIPRODUCE, produce.handle_multi, answered=False),
    OffsetsRequest: Handler(RequestType.OFFSETS, offsets.handle),
}
