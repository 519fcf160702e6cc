"""Requests of Kafka 0.7: both directions, whole, cut off anywhere, and with more behind them."""

import pytest

from millstream.wire.kafka07.errors import MalformedRequest
from millstream.wire.kafka07.requests import (
    EARLIEST,
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    Request,
    decode_request,
    encode_request,
)

REQUESTS: list[Request] = [
    ProduceRequest("orders", 3, b"messages"),
    ProduceRequest("orders", -1, b""),
    FetchRequest("órdenes", 0, 2**62, 300 * 1024),
    FetchRequest("orders", -7, -1, -1),
    MultiFetchRequest([FetchRequest("a", 0, 1, 2), FetchRequest("b", 3, 4, 5)]),
    MultiFetchRequest([]),
    MultiProduceRequest([ProduceRequest("a", 0, b"one"), ProduceRequest("b", 1, b"")]),
    OffsetsRequest("orders", 0, EARLIEST, 10),
]
each = pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)


def decoded(frame: bytes) -> Request:
    return decode_request(memoryview(frame))


def body_of(request: Request) -> bytes:
    frame = encode_request(request)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return frame[4:]


@each
def test_round_trip(request_: Request) -> None:
    assert decoded(body_of(request_)) == request_


@each
def test_cut_off_anywhere(request_: Request) -> None:
    body = body_of(request_)
    for size in range(len(body)):
        with pytest.raises(MalformedRequest):
            decoded(body[:size])


@each
def test_what_stands_behind_a_request_is_passed_over(request_: Request) -> None:
    assert decoded(body_of(request_) + b"\xff" * 9) == request_


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param("", id="nothing"),
        pytest.param("0005 0001 61 00000000", id="no such type"),
        pytest.param("ffff 0001 61 00000000", id="a negative type"),
        pytest.param("0000 ffff 00000000 00000000", id="a topic of null"),
        pytest.param("0000 0001 ff 00000000 00000000", id="a topic that is not UTF-8"),
        pytest.param("0000 0001 61 00000000 ffffffff", id="a set of -1 bytes"),
        pytest.param("0000 0001 61 00000000 7fffffff 00", id="a set longer than the request"),
        pytest.param("0002 ffff", id="a negative count of fetches"),
        pytest.param("0002 7fff", id="more fetches than there are"),
        pytest.param("0003 8000", id="a negative count of produces"),
        pytest.param("0003 7fff 0001 61 00000000 00000000", id="more produces than there are"),
    ],
)
def test_malformed(frame: str) -> None:
    with pytest.raises(MalformedRequest):
        decoded(bytes.fromhex(frame))


def test_a_message_set_is_a_view_of_the_request() -> None:
    frame = bytearray(body_of(ProduceRequest("orders", 0, b"abc")))
    request = decode_request(memoryview(frame))
    assert isinstance(request, ProduceRequest)
    frame[-1] = ord("d")
    assert bytes(request.messages) == b"abd"
