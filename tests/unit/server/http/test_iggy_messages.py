"""Sending and polling over the Iggy HTTP API, and stored offsets."""

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer

import millstream
from tests.unit.server.http.admin import produce
from tests.unit.server.http.iggy_visitor import Visitor, encoded, outgoing

HEADER = {
    "key": {"kind": "string", "value": encoded(b"name")},
    "value": {"kind": "uint32", "value": encoded(7)},
}


@pytest.fixture
def iggy(http_broker: millstream.Broker) -> Visitor:
    return Visitor(http_broker)


@pytest.fixture
def stream(iggy: Visitor, unique: Callable[[str], str]) -> str:
    name = unique("messages")
    iggy.make(name, partitions=2)
    return name


def payloads(polled: Any) -> list[bytes]:
    """What was polled."""
    return [b64decode(one["payload"]) for one in polled["messages"]]


def test_what_is_sent_is_polled(iggy: Visitor, stream: str) -> None:
    body = outgoing(b"first", b"\x00\xff", partition=1)
    body["messages"][0] |= {"id": 2**70, "user_headers": [HEADER]}
    body["messages"][1] |= {"id": "00000000-0000-0000-0000-0000000000ff", "user_headers": None}
    answer = iggy("POST", f"~{stream}/messages", body)
    number = iggy("GET", f"/streams/{stream}")["id"]
    assert iggy.headers is not None
    assert answer == {"confirmations": [{"stream_id": number, "topic_id": 0, "partition_id": 1, "base_offset": 0}]}
    polled = iggy("GET", f"~{stream}/messages?partition_id=1&kind=first&count=10")
    assert (polled["partition_id"], polled["current_offset"], polled["count"]) == (1, 1, 2)
    assert payloads(polled) == [b"first", b"\x00\xff"]
    first, second = polled["messages"]
    assert (first["header"]["id"], second["header"]["id"]) == (2**70, 255)
    assert (first["user_headers"], second["user_headers"]) == ([HEADER], [])
    assert first["header"]["payload_length"] == 5
    assert first["header"]["origin_timestamp"] > 0
    assert first["header"]["checksum"] > 0


def test_an_acknowledgement_tells_how_safe_it_is(iggy: Visitor, stream: str) -> None:
    iggy("POST", f"~{stream}/messages", outgoing(b"x"))
    assert (iggy.status, iggy.headers["iggy-durability"]) == (201, "persisted")
    assert iggy("POST", f"~{stream}/messages?ack=none", outgoing(b"x")) is None
    assert (iggy.status, iggy.headers["iggy-durability"]) == (202, "none")
    assert iggy("GET", f"~{stream}/messages")["count"] == 2


def test_a_message_without_an_id_gets_one(iggy: Visitor, stream: str) -> None:
    iggy("POST", f"~{stream}/messages", outgoing(b"x", b"y"))
    ids = {one["header"]["id"] for one in iggy("GET", f"~{stream}/messages")["messages"]}
    assert len(ids) == 2
    assert 0 not in ids


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"messages": []}, 400, "invalid_messages_count"),
        ({"messages": [{"payload": ""}]}, 400, "empty_message_payload"),
        ({"partitioning": {"kind": "partition_id", "value": encoded(9)}}, 404, "partition_not_found"),
        ({"partitioning": {"kind": "messages_key", "value": ""}}, 400, "invalid_key_value_length"),
        ({"partitioning": {"kind": "partition_id", "value": encoded(b"12")}}, 400, "invalid_command"),
        ({"messages": [{"payload": "!"}]}, 422, "base64"),
        ({"messages": [{"payload": encoded(b"x"), "id": -1}]}, 422, "128 bits"),
        ({"messages": [{"payload": encoded(b"x"), "id": "what"}]}, 422, "UUID"),
        ({"messages": [{"payload": encoded(b"x"), "user_headers": "!"}]}, 422, "base64"),
        ({"messages": [{"payload": encoded(b"x"), "user_headers": encoded(b"x")}]}, 400, "invalid_header_key"),
        ({"messages": 7}, 422, "messages"),
        ({"partitioning": {"kind": "random"}}, 422, "kind"),
    ],
)
def test_a_batch_that_is_refused_leaves_nothing(
    iggy: Visitor, stream: str, change: dict[str, Any], status: int, reason: str
) -> None:
    answer = iggy("POST", f"~{stream}/messages", outgoing(b"x") | change)
    assert iggy.status == status, answer
    assert reason in str(answer)
    assert iggy("GET", f"~{stream}/messages")["count"] == 0


def test_what_is_no_json_is_answered_with_a_line(iggy: Visitor, stream: str) -> None:
    for path in (f"~{stream}/messages", "/streams"):
        assert isinstance(iggy("POST", path, raw=b"{"), str)
        assert iggy.status in {400, 422}
    assert isinstance(iggy("GET", f"~{stream}/messages?count=many"), str)
    assert iggy.status == 400
    iggy.refused(400, "invalid_messages_count", "GET", f"~{stream}/messages?count=0")
    iggy.refused(404, "stream_name_not_found", "GET", "~nobody/messages")


def test_consumers_go_on_where_they_were(iggy: Visitor, stream: str) -> None:
    iggy("POST", f"~{stream}/messages", outgoing(*(b"%d" % number for number in range(5))))
    following = f"~{stream}/messages?consumer_id=app&kind=next&count=2&auto_commit=true"
    assert payloads(iggy("GET", following)) == [b"0", b"1"]
    assert payloads(iggy("GET", following)) == [b"2", b"3"]
    offsets = f"~{stream}/consumer-offsets"
    told = {"partition_id": 0, "current_offset": 4, "stored_offset": 3}
    assert iggy("GET", f"{offsets}?consumer_id=app") == told
    iggy.done("PUT", offsets, {"consumer_id": "app", "partition_id": 0, "offset": 0})
    assert payloads(iggy("GET", following)) == [b"1", b"2"]
    assert iggy.refused(400, "invalid_offset", "PUT", offsets, {"consumer_id": 1, "offset": 99})["field"] == "offset"
    iggy.done("DELETE", f"{offsets}/app?partition_id=0")
    assert iggy("GET", f"{offsets}?consumer_id=app")["code"] == "not_found"
    iggy.refused(404, "consumer_offset_not_found", "DELETE", f"{offsets}/app")
    assert payloads(iggy("GET", f"~{stream}/messages?kind=last&count=1")) == [b"4"]
    assert iggy("GET", f"~{stream}/messages/flush/0/fsync=true") is None
    assert iggy.status == 200


def test_records_of_kafka_are_polled_and_the_other_way_round(
    http_broker: millstream.Broker, iggy: Visitor, stream: str
) -> None:
    produce(http_broker, f"{stream}.t1", 2)
    iggy("POST", f"~{stream}/messages", outgoing(b"from here"))
    assert payloads(iggy("GET", f"~{stream}/messages")) == [b"v0", b"v1", b"from here"]
    config = {"bootstrap.servers": http_broker.kafka, "group.id": stream, "auto.offset.reset": "earliest"}
    consumer = Consumer(config)
    consumer.subscribe([f"{stream}.t1"])
    try:
        records = consumer.consume(3, timeout=20)
        assert [record.value() for record in records] == [b"v0", b"v1", b"from here"]
    finally:
        consumer.close()
