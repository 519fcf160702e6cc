"""Verifying frames: the compiled loop, its Python source and the way without it give the same answers."""

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.model.frame import set_base_offset
from millstream.model.numbers import numbers
from millstream.storage import frame_walk, scan
from tests.support.batches import batch
from tests.support.twins import twin

IN_PYTHON = twin("storage.frame_walk")


def log(sizes: list[int], offset: int) -> bytearray:
    out = bytearray()
    for size in sizes:
        made = batch(b"x" * size, 1 + size % 3)
        set_base_offset(memoryview(made), offset)
        offset += 1 + size % 3
        out += made
    return out


@given(
    st.lists(st.integers(0, 90), max_size=6),
    st.sampled_from([0, 1000, 2**62]),
    st.integers(-1, 12),
    st.integers(0, 600),
    st.none() | st.tuples(st.integers(0, 900), st.integers(0, 7)),
    st.integers(0, 100),
)
@settings(derandomize=True, deadline=None, database=None, max_examples=400)
def test_all_ways_find_the_same(
    sizes: list[int], offset: int, wanted: int, most: int, flip: tuple[int, int] | None, cut: int
) -> None:
    content = log(sizes, offset)
    if flip is not None and content:
        content[flip[0] % len(content)] ^= 1 << flip[1]
    data = memoryview(bytes(content[: len(content) - cut] if cut < 50 else content))
    found = []
    for module in (frame_walk, IN_PYTHON):
        walked = numbers(frame_walk.WALKED)
        reason = module.walk(data, data, offset, offset + wanted, most, walked)
        start, stop, next_offset, needed = walked.tolist()
        found.append(scan.Taken(start, stop, stop, next_offset, list(scan.Stop)[reason], needed))
    assert found[0] == found[1] == scan.take_frames(data, offset, offset + wanted, most)
    assert found[0] == scan._take_frames(data, offset, offset + wanted, most)


def test_one_reason_for_each() -> None:
    assert [list(scan.Stop)[n] for n in (frame_walk.LIMIT, frame_walk.SHORT, frame_walk.DAMAGED)] == list(scan.Stop)
