"""Frames of other encodings as polls carry them: any part of one has the messages that the whole has there."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.model.record import Record
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.incoming import layout_of
from millstream.wire.iggy.polled import message_of
from millstream.wire.iggy.polled_frame import PolledFrame, poll_messages
from tests.unit.sessions.iggy.conversation import polled

DIALECTS = (Dialect.A, Dialect.C1, Dialect.C3, Dialect.D)
times = st.sampled_from([1000, 1000, 2000, 3000])
gaps = st.sampled_from([1, 1, 1, 3])


def frame_of(made: list[tuple[int, int]], dialect: Dialect) -> PolledFrame:
    """A frame of messages, given their times and how much their offsets are more than those before them."""
    offset, messages = 90, []
    for time_ms, gap in made:
        offset += gap
        record = Record(offset=offset, timestamp_ms=time_ms, key=None, value=b"%d" % offset)
        messages.append(message_of(record, b"seed"))
    return poll_messages(messages, layout_of(dialect), 3)


@given(st.lists(st.tuples(times, gaps), min_size=1, max_size=9), st.integers(85, 110), st.integers(1, 10))
@settings(derandomize=True, max_examples=150, deadline=None, database=None)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_any_part(dialect: Dialect, made: list[tuple[int, int]], first_offset: int, count: int) -> None:
    frame = frame_of(made, dialect)
    whole = polled(dialect, bytes(frame.content))
    wanted = [one for one in whole if int(one["offset"]) >= first_offset][:count]
    part = frame.part(first_offset, count)
    if not wanted:
        assert part is None
        return
    assert part is not None
    assert polled(dialect, b"".join(part.buffers)) == wanted
    assert (part.count, part.last_offset) == (len(wanted), wanted[-1]["offset"])


def test_all_of_a_frame_is_handed_out_as_it_stands() -> None:
    frame = frame_of([(1000, 1), (1000, 1), (2000, 1)], Dialect.D)
    part = frame.part(0, 10)
    assert part is not None
    assert [bytes(one) for one in part.buffers] == [bytes(frame.content)]
    assert frame.size_bytes >= len(frame.content)
