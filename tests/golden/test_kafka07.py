"""Requests and answers of real clients of Kafka 0.7 mean what stands beside them, and are encoded as they were."""

from typing import Any

import pytest

from millstream.wire.kafka07.messages import InflationBudget, count_messages, payloads
from millstream.wire.kafka07.requests import (
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    Request,
    decode_request,
    encode_request,
)
from millstream.wire.kafka07.responses import (
    decode_fetch,
    decode_multifetch,
    decode_offsets,
    encode_fetch,
    encode_multifetch,
    encode_offsets,
)
from tests.golden.kafka07_captures import CAPTURES, Exchange

EXCHANGES = [
    pytest.param(exchange, id=f"{capture.name}-{number}")
    for capture in CAPTURES
    for number, exchange in enumerate(capture.exchanges)
]
each = pytest.mark.parametrize("exchange", EXCHANGES)


def request_of(exchange: Exchange) -> Request:
    size = int.from_bytes(exchange.request[:4], "big")
    assert size == len(exchange.request) - 4
    return decode_request(memoryview(exchange.request)[4:])


def unpacked(*sets: Any) -> list[str]:
    for messages in sets:
        count_messages(memoryview(messages), InflationBudget())  # which looks at all checksums
    return [bytes(payload).decode() for messages in sets for payload in payloads(memoryview(messages))]


def meaning_of(exchange: Exchange) -> dict[str, Any]:
    answer = memoryview(exchange.answer or b"")[4:]
    match request_of(exchange):
        case ProduceRequest(topic, partition, messages):
            fields: dict[str, Any] = {"type": "PRODUCE", "topic": topic, "partition": partition}
            fields["payloads"] = unpacked(messages)
        case FetchRequest(topic, partition, offset, max_size):
            fields = {"type": "FETCH", "topic": topic, "partition": partition, "offset": offset, "max_size": max_size}
            fields["payloads"] = unpacked(*decode_fetch(answer).messages)
        case MultiProduceRequest(produces):
            fields = {"type": "MULTIPRODUCE", "topics": [one.topic for one in produces]}
            fields["partitions"] = [one.partition for one in produces]
            fields["payloads"] = unpacked(*(one.messages for one in produces))
        case MultiFetchRequest(fetches):
            fields = {"type": "MULTIFETCH", "topics": [one.topic for one in fetches]}
            fields["partitions"] = [one.partition for one in fetches]
            fields["offsets"] = [one.offset for one in fetches]
            fields["max_sizes"] = [one.max_size for one in fetches]
            fields["payloads"] = unpacked(*(one.messages[0] for one in decode_multifetch(answer)))
        case OffsetsRequest(topic, partition, time_ms, max_count):
            fields = {"type": "OFFSETS", "topic": topic, "partition": partition}
            fields |= {"time_ms": time_ms, "max_count": max_count, "addresses": decode_offsets(answer)}
    return fields


@each
def test_meaning(exchange: Exchange) -> None:
    assert meaning_of(exchange) == exchange.meaning


@each
def test_a_request_encoded_again_gives_the_bytes_of_the_client(exchange: Exchange) -> None:
    assert encode_request(request_of(exchange)).hex() == exchange.request.hex()


@each
def test_an_answer_encoded_again_gives_the_same_bytes(exchange: Exchange) -> None:
    if exchange.answer is None:
        assert exchange.meaning["type"] in ("PRODUCE", "MULTIPRODUCE")
        return
    answer = memoryview(exchange.answer)[4:]
    match exchange.meaning["type"]:
        case "FETCH":
            again = encode_fetch(decode_fetch(answer))
        case "MULTIFETCH":
            again = encode_multifetch(decode_multifetch(answer))
        case _:
            again = encode_offsets(decode_offsets(answer))
    assert b"".join(again).hex() == exchange.answer.hex()
