"""Idempotent producers: duplicates, gaps, epochs and the end of the sequence numbers."""

import pytest

from millstream.model.frame import FrameHeader, read_frame_header
from millstream.storage.errors import OutOfOrderSequence, StaleProducerEpoch
from millstream.storage.producers import REMEMBERED_BATCHES, ProducerStates
from tests.support.batches import batch

LAST = 2**31 - 1


def header(sequence: int, count: int = 1, *, producer_id: int = 7, epoch: int = 0) -> FrameHeader:
    return read_frame_header(batch(count=count, producer_id=producer_id, epoch=epoch, sequence=sequence))


def written(states: ProducerStates, *headers: FrameHeader) -> ProducerStates:
    for n, each in enumerate(headers):
        assert states.check(each) is None
        states.record(each, 100 + n, now_ms=1000 + n)
    return states


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert ProducerStates().check(header(0)) is None
    assert ProducerStates().check(header(4711)) is None


def test_each_remembered_batch_is_known_again_and_none_before() -> None:
    batches = [header(3 * n, 3) for n in range(REMEMBERED_BATCHES + 2)]
    states = written(ProducerStates(), *batches)
    for n, each in enumerate(batches):
        if n < 2:
            with pytest.raises(OutOfOrderSequence):
                states.check(each)
        else:
            found = states.check(each)
            assert found is not None
            assert found.base_offset == 100 + n


def test_a_batch_that_overlaps_is_no_duplicate() -> None:
    states = written(ProducerStates(), header(0, 3), header(3, 3))
    for wrong in (header(0, 2), header(0, 6), header(1, 2), header(3, 1), header(3, 4), header(5, 1), header(5, 2)):
        with pytest.raises(OutOfOrderSequence):
            states.check(wrong)


def test_every_gap_is_refused() -> None:
    states = written(ProducerStates(), header(0, 3))
    for sequence in (1, 2, 4, 5, 100, LAST):
        with pytest.raises(OutOfOrderSequence):
            states.check(header(sequence))
    assert states.check(header(3)) is None


def test_a_check_alone_changes_nothing() -> None:
    states = written(ProducerStates(), header(0, 3))
    before = states.encode()
    states.check(header(3))
    states.check(header(0, 3))
    assert states.encode() == before


def test_a_new_epoch_begins_with_sequence_0() -> None:
    states = written(ProducerStates(), header(0, 3))
    with pytest.raises(OutOfOrderSequence):
        states.check(header(3, epoch=1))
    written(states, header(0, epoch=1), header(1, epoch=1))
    with pytest.raises(StaleProducerEpoch):
        states.check(header(3))
    with pytest.raises(StaleProducerEpoch):
        states.check(header(0, 3))


def test_a_batch_of_an_earlier_epoch_is_no_duplicate_in_the_new_one() -> None:
    states = written(ProducerStates(), header(0, 1), header(1, 1), header(0, 1, epoch=1))
    with pytest.raises(OutOfOrderSequence):
        states.check(header(2, epoch=1))
    assert states.check(header(1, epoch=1)) is None


@pytest.mark.parametrize("count", [1, 2, 5])
def test_sequences_begin_again_behind_the_largest(count: int) -> None:
    states = ProducerStates()
    first = LAST - 2  # 2^31 - 3: the batches below wrap inside of one, at its end, or between two
    sequence = first
    batches = []
    for _ in range(REMEMBERED_BATCHES):
        batches.append(header(sequence, count))
        sequence = (sequence + count) % 2**31
    written(states, *batches)
    for n, each in enumerate(batches):
        found = states.check(each)
        assert found is not None
        assert found.base_offset == 100 + n
    with pytest.raises(OutOfOrderSequence):
        states.check(header((sequence + 1) % 2**31))
    assert states.check(header(sequence)) is None


def test_producers_do_not_disturb_each_other() -> None:
    states = written(ProducerStates(), header(0, producer_id=1), header(0, producer_id=2), header(1, producer_id=1))
    assert states.check(header(1, producer_id=2)) is None
    assert len(states) == 2


def test_encode_and_decode_behave_alike() -> None:
    states = written(
        ProducerStates(),
        *[header(2 * n, 2, producer_id=2**63 - 1, epoch=2**15 - 1) for n in range(7)],
        header(LAST, 2, producer_id=0),
    )
    again = ProducerStates.decode(states.encode())
    assert again.encode() == states.encode()
    found = again.check(header(LAST, 2, producer_id=0))
    assert found is not None
    assert found.last_sequence == 0
    written(again, header(14, 2, producer_id=2**63 - 1, epoch=2**15 - 1))
    assert len(ProducerStates.decode(b"")) == 0


def test_idle_producers_are_forgotten() -> None:
    states = written(ProducerStates(), header(0, producer_id=1), header(0, producer_id=2))  # at 1000 and 1001
    states.expire(1001)
    assert len(states) == 1
    assert states.check(header(9, producer_id=1)) is None
    with pytest.raises(OutOfOrderSequence):
        states.check(header(9, producer_id=2))
