"""The walk over a batch: the compiled module, its Python source and the reference agree."""

import struct
from array import array
from collections.abc import Callable

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.wire.iggy import message_walk
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.incoming import BATCH_HEADER_BYTES, Stamp, batch_checksum, take
from millstream.wire.iggy.kinds import Partitioning
from millstream.wire.iggy.limits import HEADERS_BYTES_MAX, payload_bytes_max
from millstream.wire.iggy.messages.batches import SendMessages
from tests.support.twins import twin

Walk = Callable[..., int]


SIGNS = [b"\0\0\0\x80", b"\0\0\0\xff", b"\xd0\xff\xff\xff"]
IN_PYTHON: Walk = twin("wire.iggy.message_walk").walk
BOTH = pytest.mark.parametrize("walk", [message_walk.walk, IN_PYTHON], ids=["installed", "python"])


def message(index: int, payload: bytes = b"x", headers: bytes = b"", reserved: int = 0) -> bytes:
    summed = bytes(16) + struct.pack("<IIIIQ", index, 0, len(headers), len(payload), reserved) + payload + headers
    return struct.pack("<Q", xxhash.xxh3_64_intdigest(summed)) + summed


def batch(*messages: bytes) -> memoryview:
    blob = b"".join(messages)
    checksums = b"".join(one[:8] for one in messages)
    size = BATCH_HEADER_BYTES + len(blob)
    head = struct.pack("<QQQQQQI204x", 0, 0, 0, 7, size, batch_checksum(0, 0, 0, 7, size, checksums), len(messages))
    return memoryview(bytearray(head + blob))


def walked(walk: Walk, content: memoryview, count: int) -> tuple[int, list[int], bytes]:
    starts, checksums = array("q", bytes(8 * (count + 1))), bytearray(8 * count)
    limits = payload_bytes_max(Dialect.D), HEADERS_BYTES_MAX
    found = walk(content, BATCH_HEADER_BYTES, count, *limits, memoryview(starts), memoryview(checksums))
    return found, starts.tolist(), bytes(checksums)


@BOTH
def test_where_messages_begin(walk: Walk) -> None:
    messages = [message(0, b"one"), message(1, b"x" * 1000), message(2, b"three")]
    found, starts, checksums = walked(walk, batch(*messages), 3)
    assert found == 0
    assert starts == [256, 256 + 51, 256 + 51 + 1048, 256 + 51 + 1048 + 53]
    assert checksums == b"".join(one[:8] for one in messages)


@BOTH
def test_messages_with_headers_are_counted(walk: Walk) -> None:
    assert walked(walk, batch(message(0), message(1, b"x", b"h" * 300)), 2)[0] == 1


@BOTH
@pytest.mark.parametrize(
    ("messages", "count"),
    [
        ([message(0)], 2),
        ([message(0), message(1)], 1),
        ([message(0), message(2)], 2),
        ([message(0, b"")], 1),
        ([message(0, reserved=1 << 63)], 1),
        ([message(0)[:-1]], 1),
        ([message(0)[:47]], 1),
        ([message(0)[:36] + b"\xff\xff\xff\xff" + message(0)[40:]], 1),
        ([message(0)[:32] + b"\xff\xff\xff\xff" + message(0)[36:]], 1),
        ([message(2**32 - 1)], 1),
        # As C's int these would be less than 0, and lead to before the batch.
        *(([message(0)[:at] + sign + message(0)[at + 4 :]], 1) for at in (32, 36) for sign in SIGNS),
    ],
)
def test_anything_wrong_is_noticed(walk: Walk, messages: list[bytes], count: int) -> None:
    content = bytes(BATCH_HEADER_BYTES) + b"".join(messages)
    assert walked(walk, memoryview(content), count)[0] == -1


@settings(max_examples=500)
@given(st.binary(max_size=400), st.integers(1, 6))
def test_both_agree_on_whatever_comes(content: bytes, count: int) -> None:
    frame = memoryview(bytes(BATCH_HEADER_BYTES) + content)
    assert walked(message_walk.walk, frame, count) == walked(IN_PYTHON, frame, count)


@settings(max_examples=500)
@given(st.integers(0, 12 * 60 + 255), st.integers(0, 255))
def test_a_changed_byte_is_refused_or_makes_no_difference(at: int, value: int) -> None:
    """Whichever way the batch is read, the outcome is the same."""
    whole = batch(*(message(index, b"payload %d" % index) for index in range(12)))
    whole[at % len(whole)] = value
    outcomes: list[object] = []
    for compiled in (True, False):
        content = memoryview(bytearray(whole))
        request = SendMessages(stream=0, topic=0, partitioning=Partitioning(0), count=12, messages=content)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(message_walk, "COMPILED", compiled)
            try:
                taken = take(request, Dialect.D, Stamp(1, 2, 3), lambda size: bytes(size))
                outcomes.append((taken.starts, bytes(taken.messages)))
            except Refused as refused:
                outcomes.append((refused.code, str(refused)))
    assert outcomes[0] == outcomes[1]
