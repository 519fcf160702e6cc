"""FETCH and MULTIFETCH: answered at once with what there is, from any byte on.

The bytes begin exactly where they were asked for, also in the middle of a message, and end with the last byte that
fits, also in the middle of one: clients drop the piece and ask again from there.
"""

from collections.abc import Callable, Sequence
from typing import Final

from millstream.broker.address_index import AddressIndex
from millstream.broker.partition import Partition
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather
from millstream.sessions.kafka07.call import Call
from millstream.sessions.kafka07.error_table import code_of
from millstream.sessions.kafka07.errors import WrongPartition
from millstream.sessions.session import Answer, Buffer
from millstream.wire.kafka07.error_codes import ErrorCode
from millstream.wire.kafka07.requests import FetchRequest, MultiFetchRequest
from millstream.wire.kafka07.responses import Fetched, encode_fetch, encode_multifetch

__all__ = ["find_partition", "handle", "handle_multi"]

_ANSWER_BYTES_MAX: Final = 55 * 1024 * 1024
"""Bytes of messages in one answer at most, as for Kafka's fetches: what a client asks for is not its to size. The
original's answers end with their segment, so clients go on wherever an answer stopped."""
_PIECES_MAX: Final = 128
"""Pieces of an answer up to which they are written as they are; more are joined: each costs more than its copy."""


def handle(call: Call, request: FetchRequest) -> Answer:
    """Read bytes of one partition."""
    return _answered(call, [request], lambda parts: encode_fetch(parts[0]))


def handle_multi(call: Call, request: MultiFetchRequest) -> Answer:
    """Read bytes of several partitions, each with an error of its own."""
    return _answered(call, request.fetches, encode_multifetch)


def find_partition(call: Call, topic_name: str, index: int) -> Partition | None:
    """The partition of a request that makes no topics; None if there is no such topic.

    Raises:
        WrongPartition: the topic has no such partition, or would not have it.
    """
    topic = call.broker.topics.by_flat_name(topic_name)
    count = len(topic.partitions) if topic is not None else call.broker.settings.partitions
    if not 0 <= index < count:
        raise WrongPartition(f"the topic {topic_name} has no partition {index}")
    return topic.partitions[index] if topic is not None else None


def _answered(
    call: Call, requests: Sequence[FetchRequest], encode: Callable[[Sequence[Fetched]], list[Buffer]]
) -> Answer:
    """Read at once, or when all the indexes that are wanted are there."""
    waiting: list[Pending[AddressIndex]] = []
    found = [_index(call, request, waiting) for request in requests]

    def answer(_: object) -> list[Buffer]:
        room_bytes = min(_ANSWER_BYTES_MAX, call.peer.room_bytes())
        parts: list[Fetched] = []
        for request, index in zip(requests, found, strict=True):
            parts.append(_read(request, index, room_bytes))
            room_bytes -= parts[-1].size
        return encode(parts)

    if not waiting:
        return answer(None)
    return gather(waiting).then(answer)


def _index(
    call: Call, request: FetchRequest, waiting: list[Pending[AddressIndex]]
) -> Pending[AddressIndex] | AddressIndex | None:
    """The index of a fetch, or why there is none; what is pending goes to those that are waited for as well."""
    try:
        partition = find_partition(call, request.topic, request.partition)
        index = None if partition is None else call.shared.addresses.index(partition)
    except (MillstreamError, OSError) as error:
        refused: Pending[AddressIndex] = Pending()
        refused.fail(error)
        return refused
    if isinstance(index, Pending):
        waiting.append(index)
    return index


def _read(request: FetchRequest, index: Pending[AddressIndex] | AddressIndex | None, room_bytes: int) -> Fetched:
    if index is None:
        return Fetched(ErrorCode.NONE)
    try:
        if isinstance(index, Pending):
            index = index.result()
        size = min(request.max_size, room_bytes)
        pieces = index.read(request.offset, max(size, 0))
    except (MillstreamError, OSError) as error:
        return Fetched(code_of(error))
    return Fetched(ErrorCode.NONE, pieces if len(pieces) <= _PIECES_MAX else [b"".join(pieces)])
