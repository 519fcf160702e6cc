"""Damaged Kafka 0.7 requests: the only outcomes are an answer, silence, or a connection that is closed.

Whatever is stored on the way can be read again, to the byte, and by clients of today.
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.model.pending import Pending
from millstream.wire.compression import Codec
from millstream.wire.errors import WireError
from millstream.wire.kafka07.messages import InflationBudget, count_messages, payloads
from millstream.wire.kafka07.requests import (
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    Request,
    encode_request,
)
from millstream.wire.kafka07.responses import decode_fetch, decode_multifetch, decode_offsets
from millstream.wire.translation import read_records
from tests.golden.kafka07_captures import CAPTURES
from tests.support.batches import read_all
from tests.unit.sessions.kafka07.conversation import Conversation
from tests.unit.wire.kafka07.sets import message_set, wrapper

SET = message_set(b"a", b"bc") + wrapper([b"d", b"e"]) + wrapper([b"f"], Codec.SNAPPY, magic=1) + message_set(b"g")
REQUESTS: list[Request] = [
    ProduceRequest("orders", 0, SET),
    ProduceRequest("orders", -1, message_set(*(b"%d" % n for n in range(50)), magic=1)),
    FetchRequest("orders", 0, 0, 1000),
    MultiFetchRequest([FetchRequest("orders", 0, 0, 60), FetchRequest("other", 0, 5, 60)]),
    MultiProduceRequest([ProduceRequest("orders", 0, SET), ProduceRequest("other", 0, SET)]),
    OffsetsRequest("orders", 0, -1, 10),
]
FRAMES = [encode_request(request)[4:] for request in REQUESTS]
FRAMES += [exchange.request[4:] for capture in CAPTURES for exchange in capture.exchanges]
ANSWERS = [exchange.answer[4:] for capture in CAPTURES for exchange in capture.exchanges if exchange.answer]
HOSTILE = ("7fffffff", "ffffffff", "80000000", "fffffffe", "0000", "7fff", "ffff", "00000000", "0100", "1f8b08")

places = st.floats(0, 1, exclude_max=True)
edits = st.lists(
    st.tuples(
        st.sampled_from(("flip", "cut", "insert", "replace", "drop")),
        places,
        st.one_of(st.sampled_from([bytes.fromhex(text) for text in HOSTILE]), st.binary(min_size=1, max_size=8)),
        places,
    ),
    min_size=1,
    max_size=3,
)


def damaged(frame: bytes, edit: tuple[str, float, bytes, float]) -> bytes:
    """Apply one edit; places are parts of the length, so that they mean something in any frame."""
    how, place, fragment, other = edit
    at = int(place * len(frame))
    match how:
        case "flip" if at < len(frame):
            return frame[:at] + bytes([frame[at] ^ (1 << int(other * 8))]) + frame[at + 1 :]
        case "cut":
            return frame[:at]
        case "insert":
            return frame[:at] + fragment + frame[at:]
        case "replace":
            return frame[:at] + fragment + frame[at + len(fragment) :]
        case "drop":
            return frame[:at] + frame[at + 1 + int(other * 8) :]
    return frame


def check_log(client: Conversation) -> None:
    """See that all that is stored makes sense to every reader."""
    for topic in client.broker.topics:
        for partition in topic.partitions:
            frames = read_all(partition.log)
            offsets = [record.offset for frame in frames for record in read_records(memoryview(frame))]
            assert offsets == list(range(partition.log.end_offset))
            if topic.name.flat in ("orders", "other"):
                stored = b"".join(frame[61:] for frame in frames)
                assert client.fetch(name=topic.name.flat) == (0, stored)


@pytest.mark.parametrize("number", range(len(FRAMES)))
def test_damaged_requests(number: int) -> None:
    client = Conversation()
    client.create("orders")
    client.create("other")

    @settings(max_examples=80, derandomize=True, deadline=None, database=None)
    @given(edits)
    def check(changes: list[tuple[str, float, bytes, float]]) -> None:
        frame = FRAMES[number]
        for change in changes:
            frame = damaged(frame, change)
        try:
            answer = client.session.handle(memoryview(bytearray(frame)))
        except WireError:
            client.connect()
            return
        client.runtime.run()
        assert answer is None or not isinstance(answer, Pending) or answer.done
        assert client.peer.held == 0
        if client.peer.ended:
            client.connect()

    check()
    check_log(client)


@settings(max_examples=500, derandomize=True, deadline=None, database=None)
@given(st.one_of(st.just(SET), st.binary(max_size=60)), edits)
def test_damaged_message_sets(body: bytes, changes: list[tuple[str, float, bytes, float]]) -> None:
    for change in changes:
        body = damaged(body, change)
    try:
        count = count_messages(memoryview(body), InflationBudget(100_000))
    except WireError:
        return
    assert len(list(payloads(memoryview(body)))) == count


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(st.sampled_from(ANSWERS), edits)
def test_damaged_answers(answer: bytes, changes: list[tuple[str, float, bytes, float]]) -> None:
    for change in changes:
        answer = damaged(answer, change)
    for decode in (decode_fetch, decode_multifetch, decode_offsets):
        try:
            decode(memoryview(answer))
        except WireError:
            continue


def test_random_bytes_as_a_stream() -> None:
    client = Conversation()
    random = Random(7)
    for _ in range(3000):
        data = memoryview(bytearray(random.randbytes(random.randrange(1, 40))))
        try:
            size = client.session.measure(data)
            if size and size <= len(data):
                client.session.handle(data[4:size])
                client.runtime.run()
        except WireError:
            client.connect()
