"""What a topic's settings do to batches, and every refusal of a batch that is well formed."""

import uuid
from collections.abc import Callable

import pytest

from millstream.model.record import Record
from millstream.wire.compression import Codec
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.produce import PRODUCE, PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.wire.kafka.records import build_batch
from tests.conformance.raw.log_client import LogClient, batch_of, now_ms, produce_request

NewTopic = Callable[..., str]
HOUR_MS = 3600 * 1000


@pytest.fixture
def new_topic(client: LogClient, unique: Callable[[str], str]) -> NewTopic:
    """Creates a topic with settings, whose dots are written as underscores."""

    def create(partitions: int = 1, **configs: str) -> str:
        name = unique("raw")
        client.create_topic(name, partitions, {key.replace("_", "."): value for key, value in configs.items()})
        return name

    return create


def test_an_unknown_topic_partition_or_id(client: LogClient, topic: str) -> None:
    assert client.produce("no-such-topic", batch_of(b"x")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for partition in (1, -1, 2**31 - 1):
        answer = client.produce(topic, batch_of(b"x"), partition)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    request = produce_request("", batch_of(b"x"))
    request.topic_data[0].topic_id = uuid.uuid4()
    [answered] = client.call(PRODUCE, 13, request).responses
    assert answered.topic_id == request.topic_data[0].topic_id
    assert answered.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("acks", [7, 2, -2, 32767])
def test_acks_are_0_1_or_all(client: LogClient, topic: str, acks: int) -> None:
    assert client.produce(topic, batch_of(b"x"), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert client.values(topic) == []


def test_one_refused_batch_does_not_keep_the_others_of_its_request_out(
    client: LogClient, new_topic: NewTopic
) -> None:
    topic = new_topic(3)
    batches = [batch_of(b"first"), batch_of(b"bad"), batch_of(b"third")]
    batches[1][-1] ^= 1
    data = [PartitionProduceData(index=index, records=batch) for index, batch in enumerate(batches)]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name=topic, partition_data=data)])
    [answered] = client.call(PRODUCE, 9, request).responses
    codes = [answer.error_code for answer in answered.partition_responses]
    assert codes == [0, ErrorCode.CORRUPT_MESSAGE, 0]
    assert [client.values(topic, partition) for partition in range(3)] == [[b"first"], [], [b"third"]]


def test_max_message_bytes(client: LogClient, topic: str, new_topic: NewTopic) -> None:
    default = 1024 * 1024 + 12
    overhead = len(batch_of(bytes(500_000))) - 500_000
    fits, too_large = batch_of(bytes(default - overhead)), batch_of(bytes(default - overhead + 1))
    assert len(fits) == default
    assert client.produce(topic, too_large).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert client.produce(topic, fits).error_code == 0
    small = new_topic(max_message_bytes="1000")
    assert client.produce(small, batch_of(bytes(1000))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    # What counts is what was sent, not what it unpacks to.
    assert client.produce(small, batch_of(bytes(100_000), codec=Codec.GZIP)).error_code == 0
    assert client.values(small) == [bytes(100_000)]


def test_min_insync_replicas(client: LogClient, new_topic: NewTopic) -> None:
    topic = new_topic(min_insync_replicas="2")
    answer = client.produce(topic, batch_of(b"all"), acks=-1)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
    assert client.produce(topic, batch_of(b"one"), acks=1).error_code == 0
    assert client.values(topic) == [b"one"]


def test_log_append_time(client: LogClient, new_topic: NewTopic) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    before_ms = now_ms()
    # A time that no topic with the producer's times would take.
    answer = client.produce(topic, batch_of(b"a", b"b", timestamp_ms=before_ms + 100 * HOUR_MS, codec=Codec.LZ4))
    after_ms = now_ms()
    assert answer.error_code == 0
    assert before_ms <= answer.log_append_time_ms <= after_ms
    records = client.records(topic)
    assert [record.timestamp_ms for record in records] == [answer.log_append_time_ms] * 2
    assert all(record.append_time for record in records)
    found = client.look_up(topic, answer.log_append_time_ms)
    assert (found.offset, found.timestamp) == (0, answer.log_append_time_ms)
    assert client.look_up(topic, answer.log_append_time_ms + 1).offset == -1


def test_the_producers_time_is_not_told_as_that_of_the_append(client: LogClient, topic: str) -> None:
    assert client.produce(topic, batch_of(b"a")).log_append_time_ms == -1


def test_times_too_far_off(client: LogClient, topic: str, new_topic: NewTopic) -> None:
    ahead = batch_of(b"x", timestamp_ms=now_ms() + 2 * HOUR_MS)
    assert client.produce(topic, ahead).error_code == ErrorCode.INVALID_TIMESTAMP
    assert client.produce(topic, batch_of(b"in time", timestamp_ms=now_ms() + HOUR_MS // 2)).error_code == 0
    assert client.values(topic) == [b"in time"]
    narrow = new_topic(message_timestamp_after_max_ms="60000", message_timestamp_before_max_ms="60000")
    for distance_ms in (10 * 60_000, -10 * 60_000):
        answer = client.produce(narrow, batch_of(b"x", timestamp_ms=now_ms() + distance_ms))
        assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert client.produce(narrow, batch_of(b"now")).error_code == 0
    # No time at all is no time that is too far off.
    untimed = build_batch([Record(offset=0, timestamp_ms=-1, key=None, value=b"untimed")])
    assert client.produce(narrow, untimed).error_code == 0
    assert [record.timestamp_ms for record in client.records(narrow)][1:] == [-1]


def test_a_compacted_topic_takes_no_record_without_a_key(client: LogClient, new_topic: NewTopic) -> None:
    def keyed(*keys: bytes | None) -> bytearray:
        records = [Record(offset=0, timestamp_ms=now_ms(), key=key, value=b"v") for key in keys]
        return build_batch(records, codec=Codec.ZSTD)

    for policy in ("compact", "compact,delete"):
        topic = new_topic(cleanup_policy=policy)
        answer = client.produce(topic, keyed(b"a", None, b"c"))
        assert answer.error_code == ErrorCode.INVALID_RECORD
        assert answer.error_message
        assert client.produce(topic, keyed(b"a", b"", b"c")).error_code == 0
        assert [record.key for record in client.records(topic)] == [b"a", b"", b"c"]


def test_zstd_is_for_clients_that_know_it(client: LogClient, topic: str) -> None:
    request = produce_request(topic, batch_of(b"x", codec=Codec.ZSTD))
    codes = [client.call(PRODUCE, v, request).responses[0].partition_responses[0].error_code for v in (3, 6, 7)]
    assert codes == [ErrorCode.UNSUPPORTED_COMPRESSION_TYPE] * 2 + [0]


def test_settings_changed_later_are_obeyed(client: LogClient, topic: str) -> None:
    client.configure(topic, {"max.message.bytes": "200"})
    assert client.produce(topic, batch_of(bytes(300))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    client.configure(topic, {})
    assert client.produce(topic, batch_of(bytes(300))).error_code == 0
