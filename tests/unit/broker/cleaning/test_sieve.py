"""What stays of frames: properties of every log, and single cases."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.broker.cleaning.key_offsets import KeyOffsets
from millstream.broker.cleaning.sieve import Sieve
from millstream.model.frame import FrameHeader, Magic, empty_frame, frame_crc, read_frame_header, set_base_offset
from millstream.storage.producers import ProducerStates
from millstream.wire.compression import Codec
from tests.support.steps import keyed, taken
from tests.unit.broker.cleaning.keyed_topic import READERS, Pair, headers_of, keyed_batch, records_of

NOW_MS = 1_700_000_000_000
RETENTION_MS = 1000

keys = st.sampled_from([None, b"a", b"b", b"c", b"x" * 40])
values = st.sampled_from([None, b"", b"v", b"w" * 300])
batches = st.tuples(
    st.lists(st.tuples(keys, values), min_size=1, max_size=5),
    st.sampled_from(list(Codec)),
    st.integers(-1, 2),  # producer
    st.booleans(),  # aborted
)


def log_of(written: Sequence[tuple[list[Pair], Codec, int, bool]]) -> tuple[list[bytes], set[int]]:
    """Frames with dense offsets, and the base offsets of those that were aborted."""
    frames, aborted, offset = [], set(), 0
    sequences = dict.fromkeys(range(3), 0)
    for place, (pairs, codec, producer, is_aborted) in enumerate(written):
        fields = (producer, 0, sequences[producer]) if producer >= 0 else (-1, -1, -1)
        frame = keyed_batch(pairs, NOW_MS + 10 * (place % 7), codec, fields)
        set_base_offset(memoryview(frame), offset)
        if producer >= 0:
            sequences[producer] += len(pairs)
        if is_aborted:
            aborted.add(offset)
        offset += len(pairs)
        frames.append(bytes(frame))
    return frames, aborted


def producers_of(frames: Sequence[bytes]) -> ProducerStates:
    states = ProducerStates()
    for header in headers_of(frames):
        if header.producer_id >= 0:
            states.record(header, header.base_offset, header.max_timestamp)
    return states


def sequences_of(states: ProducerStates) -> list[tuple[int, int, list[tuple[int, int, int]]]]:
    """All that is known of producers, but for times."""
    return [
        (producer_id, producer.epoch, [one[:3] for one in producer.batches])
        for producer_id, producer in sorted(states._producers.items())
    ]


def cleaned(
    frames: Sequence[bytes], aborted: set[int], end_offset: int, now_ms: int | None = NOW_MS, start_offset: int = 0
) -> tuple[list[bytes], Sieve]:
    """What stays of the frames of one file, all of it dirty."""
    latest = KeyOffsets(1_000_000)
    states = producers_of(frames)
    pairs = [(read_frame_header(frame), memoryview(frame)) for frame in frames]
    for header, frame in pairs:
        if header.base_offset < end_offset and header.base_offset not in aborted and header.record_count:
            latest.note(header.base_offset, keyed(READERS[header.magic], frame))
    left: list[bytes] = []
    sieve = Sieve(
        latest,
        READERS,
        is_aborted=aborted.__contains__,
        is_remembered=lambda header: states.remembers(header.producer_id, header.base_offset),
        start_offset=start_offset,
        end_offset=end_offset,
        now_ms=now_ms,
        horizon_ms=NOW_MS + RETENTION_MS,
        give=lambda frame: left.append(bytes(frame)),
    )
    taken(sieve.sift(pairs))
    sieve.finish()
    return left, sieve


@given(st.lists(batches, min_size=1, max_size=12), st.data())
def test_what_stays(written: list[tuple[list[Pair], Codec, int, bool]], data: st.DataObject) -> None:
    frames, aborted = log_of(written)
    headers = headers_of(frames)
    end = data.draw(st.sampled_from([header.base_offset for header in headers] + [headers[-1].last_offset + 1]))
    left, sieve = cleaned(frames, aborted, end)

    expected = 0
    for header, frame in zip(headers_of(left), left, strict=True):
        assert header.base_offset == expected, "offsets stay dense"
        assert header.size == len(frame)
        assert header.crc == frame_crc(memoryview(frame))
        expected = header.last_offset + 1
    assert expected == headers[-1].last_offset + 1

    behind = [frame for frame, header in zip(frames, headers, strict=True) if header.base_offset >= end]
    assert left[len(left) - len(behind) :] == behind, "what is not to be cleaned is as it was"

    shown = [frame for frame, header in zip(frames, headers, strict=True) if header.base_offset not in aborted]
    before = [record for record in records_of(shown) if record.offset < end]
    last = {record.key: record.offset for record in before}
    wanted = [record for record in before if record.key is None or last[record.key] == record.offset]
    assert [record for record in records_of(left) if record.offset < end] == wanted

    assert sequences_of(producers_of(left)) == sequences_of(producers_of(frames))
    for header, records in (
        (header, records_of([frame])) for header, frame in zip(headers_of(left), left, strict=True)
    ):
        if records and header.base_offset < end:
            assert header.record_count == len(records)
            if len(records) <= header.last_offset_delta:
                assert header.max_timestamp == max(record.timestamp_ms for record in records)

    again, second = cleaned(left, aborted, end)
    assert again == left, "cleaning twice is cleaning once"
    assert not second.changed
    assert sieve.changed == (left != frames)
    assert second.earliest_horizon_ms == sieve.earliest_horizon_ms

    later, _ = cleaned(left, aborted, end, NOW_MS + RETENTION_MS)
    alive = [one for one in wanted if one.key is None or one.value is not None]
    assert [record for record in records_of(later) if record.offset < end] == alive, "tombstones go in time"


def test_tombstones_stay_until_their_horizon_and_as_long_as_they_are_needed() -> None:
    frames, _ = log_of([([(b"a", None), (b"b", b"v")], Codec.NONE, -1, False)])
    left, sieve = cleaned(frames, set(), 2)
    assert sieve.earliest_horizon_ms == NOW_MS + RETENTION_MS
    (header,) = headers_of(left)
    assert header.delete_horizon_ms == NOW_MS + RETENTION_MS
    assert records_of(left) == records_of(frames), "times are what they were"
    for now_ms in (None, NOW_MS + RETENTION_MS - 1):
        assert cleaned(left, set(), 2, now_ms)[0] == left
    gone, sieve = cleaned(left, set(), 2, NOW_MS + RETENTION_MS)
    assert [(one.offset, one.key) for one in records_of(gone)] == [(1, b"b")]
    assert sieve.earliest_horizon_ms is None


def test_a_tombstone_with_a_time_that_no_horizon_reaches_stays() -> None:
    frame = keyed_batch([(b"a", None)], -(2**63))
    left, sieve = cleaned([bytes(frame)], set(), 1)
    assert left == [bytes(frame)]
    assert sieve.earliest_horizon_ms is None


def test_empty_frames_become_one_as_long_as_it_can_say_so() -> None:
    offsets = [0, 5, 10, 2**31 - 2, 2**31 + 10]
    frames = [empty_frame(first, last - 1) for first, last in pairwise(offsets)]
    left, _ = cleaned(frames, set(), 2**40)
    assert [(one.base_offset, one.last_offset) for one in headers_of(left)] == [
        (0, 2**31 - 3),
        (2**31 - 2, 2**31 + 9),
    ]


def test_an_empty_frame_keeps_what_is_known_of_a_producer_and_lets_go_of_what_is_not() -> None:
    frames, _ = log_of([([(b"a", b"v")], Codec.NONE, 1, False) for _ in range(8)])
    left, _ = cleaned(frames, set(), 8)
    headers = headers_of(left)
    assert [(one.base_offset, one.last_offset, one.base_sequence) for one in headers] == [
        (0, 2, -1),
        (3, 3, 3),
        (4, 4, 4),
        (5, 5, 5),
        (6, 6, 6),
        (7, 7, 7),
    ]
    assert [one.record_count for one in headers] == [0, 0, 0, 0, 0, 1]


def test_what_was_deleted_goes() -> None:
    frames, _ = log_of([([(b"a", b"v")], Codec.NONE, -1, False), ([(b"b", b"v")], Codec.NONE, -1, False)])
    left, _ = cleaned(frames, set(), 2, start_offset=1)
    assert [one.key for one in records_of(left)] == [b"b"]


@pytest.mark.parametrize("magic", [Magic.KAFKA_V2, Magic.PULSAR_ENTRY, Magic.IGGY_BATCH, Magic.KAFKA07_SET])
def test_what_nobody_can_read_stays(magic: int) -> None:
    frame = bytearray(keyed_batch([(b"a", b"v")]))
    frame[16] = magic
    frame[61:] = b"\xff" * len(frame[61:])
    view = memoryview(frame)
    header: FrameHeader = read_frame_header(view)
    frame[17:21] = frame_crc(view).to_bytes(4, "big")
    left, sieve = cleaned([bytes(frame)], set(), 1)
    assert left == [bytes(frame)]
    assert header.record_count == 1
    assert not sieve.changed
