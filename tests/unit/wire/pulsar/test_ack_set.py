from hypothesis import given
from hypothesis import strategies as st

from millstream.wire.pulsar.ack_set import decode_ack_set, encode_ack_set, open_messages
from millstream.wire.pulsar.entry import Entry
from millstream.wire.pulsar.pulsar_pb2 import MessageMetadata


def batch_of(count: int, taken_out: list[int]) -> Entry:
    metadata = MessageMetadata(num_messages_in_batch=count, compacted_batch_indexes=taken_out)
    return Entry(metadata, memoryview(b""))


def test_words_are_those_of_the_client() -> None:
    # A batch of 5 of which 1 and 3 are acknowledged, as the C++ client says it.
    assert encode_ack_set(0b10101) == [21]
    assert decode_ack_set([21], 5) == 0b10101
    assert encode_ack_set((1 << 64) - 1) == [-1]
    assert encode_ack_set(1 << 64) == [0, 1]
    assert encode_ack_set(0) == []


@given(st.integers(0, 2**300 - 1))
def test_round_trip(bits: int) -> None:
    assert decode_ack_set(encode_ack_set(bits), 300) == bits


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), st.integers(1, 200))
def test_words_of_a_peer_never_reach_beyond_the_batch(words: list[int], count: int) -> None:
    assert 0 <= decode_ack_set(words, count) < 1 << count


def test_open_messages() -> None:
    assert open_messages(Entry(MessageMetadata(), memoryview(b""))) == 1
    assert open_messages(batch_of(10, [])) == 0b11_1111_1111
    assert open_messages(batch_of(10, [0, 9]), acknowledged=[4]) == 0b01_1110_1110


def test_indexes_that_are_none_do_not_count() -> None:
    assert open_messages(batch_of(3, [-1, 3, 2**31 - 1, -(2**31)]), acknowledged=[5]) == 0b111
