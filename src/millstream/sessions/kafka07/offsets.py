"""OFFSETS: addresses from which to fetch, before a time.

Candidates are the first address of each segment, as old as the last record in it, and the end, as old as now. From
the newest that is not later than the time they are told downwards.

Source: kafka.log.Log.getOffsetsBefore of the 0.7 branch.
"""

from typing import Final

from millstream.broker.address_index import AddressIndex
from millstream.broker.partition import Partition
from millstream.model.errors import MillstreamError
from millstream.model.frame import read_frame_header
from millstream.model.pending import Pending
from millstream.sessions.kafka07.call import Call
from millstream.sessions.kafka07.errors import Unanswerable
from millstream.sessions.kafka07.fetch import find_partition
from millstream.sessions.session import Answer, Buffer
from millstream.wire.kafka07.requests import EARLIEST, LATEST, OffsetsRequest
from millstream.wire.kafka07.responses import encode_offsets

__all__ = ["handle"]

_TIME_MAX_MS: Final = 2**62
"""Later than any time of a record; a client that packs its time wrongly asks for times like this."""


def handle(call: Call, request: OffsetsRequest) -> Answer:
    """Tell addresses.

    Raises:
        Unanswerable: the partition does not exist, or the count is negative: there is no code for either.
    """
    if request.max_count < 0:
        raise Unanswerable(f"{request.max_count} addresses are asked for")
    try:
        partition = find_partition(call, request.topic, request.partition)
        if partition is None:
            return encode_offsets([0] if request.time_ms in (LATEST, EARLIEST) else [])
        index = call.shared.addresses.index(partition)
    except (MillstreamError, OSError) as error:
        raise Unanswerable(str(error)) from None
    if not isinstance(index, Pending):
        return _answer(call, request, partition, index)

    def refuse(error: MillstreamError) -> list[Buffer]:
        call.peer.end(str(error))
        return []

    return index.settle(lambda index: _answer(call, request, partition, index), refuse)


def _answer(call: Call, request: OffsetsRequest, partition: Partition, index: AddressIndex) -> list[Buffer]:
    ages = _candidates(call, partition, index, request.time_ms)
    return encode_offsets(ages[: request.max_count])


def _candidates(call: Call, partition: Partition, index: AddressIndex, time_ms: int) -> list[int]:
    """The addresses that are not later than a time, descending."""
    segments = index.segments()
    if time_ms == EARLIEST:
        return [segments[0][1]]
    addresses = [address for _, address in segments]
    if index.end_address > addresses[-1]:
        addresses.append(index.end_address)
    if time_ms != LATEST:
        addresses = addresses[: _count_before(call, partition, segments, time_ms)]
    return sorted(set(addresses), reverse=True)


def _count_before(call: Call, partition: Partition, segments: list[tuple[int, int]], time_ms: int) -> int:
    """How many candidates, the oldest first, are not later than a time."""
    if time_ms >= call.broker.runtime.now_ms():
        return len(segments) + 1
    log = partition.log
    later = log.frame_for_time(min(max(time_ms, -1), _TIME_MAX_MS) + 1)
    if later is None:
        return len(segments) if log.end_offset > log.start_offset else 0
    offset = read_frame_header(later).base_offset
    stops = [*(start for start, _ in segments[1:]), log.end_offset]
    return sum(1 for stop in stops if stop <= offset)
