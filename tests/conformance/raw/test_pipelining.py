"""Requests that do not wait for the answers of those before them."""

from millstream.wire.kafka.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from millstream.wire.kafka.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from millstream.wire.kafka.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from millstream.wire.kafka.messages.produce import PRODUCE
from tests.conformance.raw.conftest import Connect
from tests.conformance.raw.log_client import LATEST, LogClient, batch_of, produce_request

REQUESTS = 400

WHO = ApiVersionsRequest(client_software_name="raw", client_software_version="1")


def fetch_request(topic: str, offset: int, max_wait_ms: int) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[wanted])])


def test_answers_come_in_the_order_of_the_requests(client: LogClient, topic: str) -> None:
    sent = []
    for number in range(REQUESTS):
        sent.append((PRODUCE, 9, client.send(PRODUCE, 9, produce_request(topic, batch_of(b"%d" % number)))))
        sent.append(
            (
                API_VERSIONS,
                3,
                client.send(API_VERSIONS, 3, WHO),
            )
        )
    offsets = []
    for api, version, correlation_id in sent:
        answer = client.receive(api, version, correlation_id)
        if api is PRODUCE:
            offsets.append(answer.responses[0].partition_responses[0].base_offset)
    assert offsets == list(range(REQUESTS))
    assert client.values(topic) == [b"%d" % number for number in range(REQUESTS)]


def test_a_fetch_that_waits_holds_back_the_answers_behind_it_but_not_their_requests(
    client: LogClient, connect: Connect, topic: str
) -> None:
    fetch = client.send(FETCH, 12, fetch_request(topic, 0, max_wait_ms=60_000))
    # This one is served while the fetch waits, and is what the fetch waits for.
    produce = client.send(PRODUCE, 9, produce_request(topic, batch_of(b"news")))
    fetched = client.receive(FETCH, 12, fetch).responses[0].partitions[0]
    assert fetched.records
    assert client.receive(PRODUCE, 9, produce).responses[0].partition_responses[0].base_offset == 0
    assert connect().offset(topic, LATEST) == 1


def test_acks_0_is_not_answered(client: LogClient, topic: str) -> None:
    for number in range(10):
        client.send(PRODUCE, 9, produce_request(topic, batch_of(b"%d" % number), acks=0))
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    answer = client.call(METADATA, 12, request)
    assert [one.name for one in answer.topics] == [topic]
    assert client.values(topic) == [b"%d" % number for number in range(10)]


def test_a_refused_batch_with_acks_0_ends_its_connection(client: LogClient, connect: Connect, topic: str) -> None:
    other = connect()
    other.send(PRODUCE, 9, produce_request("no-such-topic", batch_of(b"lost"), acks=0))
    assert other.closed_by_server()
    assert client.offset(topic, LATEST) == 0
