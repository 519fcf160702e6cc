"""Produce, Fetch and the offsets of the years 0.8 to 0.10: message sets in, message sets out, on the log of today."""

from typing import Any

import pytest

from millstream.model.record import Record
from millstream.wire.compression import Codec
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.errors import Unanswerable
from millstream.wire.kafka.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from millstream.wire.kafka.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from millstream.wire.kafka.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.wire.kafka.messages.offset_fetch import OFFSET_FETCH, OffsetFetchRequest, OffsetFetchRequestTopic
from millstream.wire.kafka.messages.produce import PRODUCE
from millstream.wire.kafka.records import build_batch
from tests.support.batches import batch, read_all
from tests.support.message_sets import LOG_APPEND_TIME, message, message_set, read_messages
from tests.support.simulated_files import Fault
from tests.unit.sessions.kafka.conversation import Conversation, fetch_request, produce_request

LATEST, EARLIEST = -1, -2
BY_NAME = 12


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation()
    talk.create("orders", 2)
    return talk


def some(talk: Conversation, count: int = 5) -> list[Record]:
    now_ms = talk.runtime.now_ms()
    return [Record(offset=n, timestamp_ms=now_ms + n, key=b"k", value=b"v%d" % n) for n in range(count)]


def send(talk: Conversation, messages: bytes | bytearray | None, version: int = 2, **more: Any) -> Any:
    return talk.ask(PRODUCE, produce_request(messages, **more), version).responses[0].partition_responses[0]


def fetch(talk: Conversation, offset: int = 0, version: int = 2, **more: Any) -> Any:
    return talk.ask(FETCH, fetch_request(offset, max_wait_ms=0, **more), version).responses[0].partitions[0]


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_a_set_is_stored_as_one_batch_and_read_by_every_version(talk: Conversation, version: int, codec: int) -> None:
    magic = 1 if version == 2 else 0
    wanted = some(talk)
    answer = send(talk, message_set(magic, codec, wanted), version)
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (ErrorCode.NONE, 0, -1)
    assert len(read_all(talk.partition().log)) == 1
    timeless = [Record(offset=one.offset, timestamp_ms=-1, key=one.key, value=one.value) for one in wanted]
    for reading in (0, 1, 2, 3):
        found = read_messages(fetch(talk, version=reading).records)
        assert found == (wanted if magic and reading >= 2 else timeless)
    assert fetch(talk, version=4).records == b"".join(read_all(talk.partition().log))


def test_what_is_sent_with_acks_0_is_kept_and_a_refusal_ends_the_connection(talk: Conversation) -> None:
    assert talk.send(PRODUCE, produce_request(message_set(0, 0, some(talk)), acks=0), 0) is None
    assert talk.partition().log.end_offset == 5
    with pytest.raises(Unanswerable, match="CORRUPT_MESSAGE"):
        talk.send(PRODUCE, produce_request(message(b"x")[:-1], acks=0), 0)


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        (message(b"x")[:-1], ErrorCode.CORRUPT_MESSAGE),
        (message(b"x", attributes=4), ErrorCode.CORRUPT_MESSAGE),
        (message(b"x", attributes=1), ErrorCode.CORRUPT_MESSAGE),
        (message(bytes(1_100_000)), ErrorCode.MESSAGE_TOO_LARGE),
        (message(b"x", magic=1, attributes=LOG_APPEND_TIME), ErrorCode.INVALID_TIMESTAMP),
        (message(b"x", magic=1, timestamp_ms=2**60), ErrorCode.INVALID_TIMESTAMP),
        (message(b"x", magic=3), ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_refusals_are_told_in_codes_of_their_time(talk: Conversation, messages: bytearray, code: ErrorCode) -> None:
    for version in (0, 1, 2):
        answer = send(talk, messages, version)
        assert (answer.error_code, answer.base_offset) == (code, -1)
    assert talk.partition().log.end_offset == 0


def test_a_disk_that_fails_makes_them_ask_for_the_leader(talk: Conversation) -> None:
    talk.files.inject(Fault("write"))
    assert send(talk, message(b"x"), 1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("version", [3, 8, 12])
@pytest.mark.parametrize("value", [b"", b"x" * 100])
def test_later_versions_refuse_message_sets_as_kafka_does(talk: Conversation, version: int, value: bytes) -> None:
    assert send(talk, message(value), version).error_code == ErrorCode.INVALID_RECORD


def test_record_batches_are_taken_in_early_versions_too(talk: Conversation) -> None:
    assert send(talk, batch(b"x", timestamp_ms=talk.runtime.now_ms()), 2).base_offset == 0
    assert send(talk, None, 0).error_code == ErrorCode.NONE, "an empty set is no error, and appends nothing"
    assert talk.partition().log.end_offset == 1


def test_a_set_larger_than_a_batch_is_kept_in_several(talk: Conversation) -> None:
    answer = send(
        talk,
        message_set(0, 0, [*some(talk, 2)] + [Record(offset=0, timestamp_ms=0, key=None, value=bytes(9000))] * 300),
    )
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    assert talk.partition().log.end_offset == 302
    assert len(read_all(talk.partition().log)) == 3


def test_a_topic_with_times_of_append(talk: Conversation) -> None:
    talk.create("stamped", message__timestamp__type="LogAppendTime")
    assert send(talk, message_set(1, 1, some(talk)), name="stamped").log_append_time_ms == talk.runtime.now_ms()
    found = read_messages(fetch(talk, names=["stamped"]).records)
    assert {(one.timestamp_ms, one.append_time) for one in found} == {(talk.runtime.now_ms(), True)}


def test_a_compacted_topic_takes_no_message_without_a_key(talk: Conversation) -> None:
    talk.create("compacted", cleanup__policy="compact")
    assert send(talk, message(b"x"), 1, name="compacted").error_code == ErrorCode.CORRUPT_MESSAGE
    assert send(talk, message(b"x", key=b"k"), 1, name="compacted").error_code == ErrorCode.NONE


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
@pytest.mark.parametrize("version", [0, 3])
@pytest.mark.parametrize("max_bytes", [0, 1, 100, 1000])
def test_a_fetch_with_little_room_always_gets_on(
    talk: Conversation, codec: Codec, version: int, max_bytes: int
) -> None:
    for _ in range(3):
        request = produce_request(build_batch(some(talk, 20), codec=codec))
        talk.ask(PRODUCE, request, BY_NAME)
    offset = 0
    while offset < 60:
        answer = fetch(talk, offset, version, partition_max_bytes=max_bytes)
        found = read_messages(answer.records)
        assert found[0].offset == offset
        assert answer.high_watermark == 60
        offset = found[-1].offset + 1
    assert fetch(talk, 60, version).records == b""
    assert fetch(talk, 61, version).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_before_version_3_every_partition_gives_something(talk: Conversation) -> None:
    for index in (0, 1):
        talk.produce(bytes(5000), index=index)
    topics = [
        FetchTopic(topic="orders", partitions=[FetchPartition(partition=n, partition_max_bytes=100) for n in (0, 1)])
    ]
    request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=topics)
    for version, expected in ((0, 2), (2, 2), (3, 1)):
        answers = talk.ask(FETCH, request, version).responses[0].partitions
        assert sum(bool(one.records) for one in answers) == expected


def test_a_fetch_waits_for_data(talk: Conversation) -> None:
    pending = talk.send(FETCH, fetch_request(0, min_bytes=1, max_wait_ms=500), 0)
    assert pending is not None
    talk.pass_ms(100)
    assert not pending.done
    talk.produce(b"news")
    found = read_messages(talk.wait(pending).responses[0].partitions[0].records)
    assert [one.value for one in found] == [b"news"]


def list_offsets(talk: Conversation, timestamp: int, count: int = 100, name: str = "orders") -> Any:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=count)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[asked, asked])])
    first, second = talk.ask(LIST_OFFSETS, request, 0).topics[0].partitions
    assert first == second, "asking twice is allowed"
    return first


def test_the_starts_of_segments_latest_first(talk: Conversation) -> None:
    talk.create("rolling", segment__bytes=str(1024 * 1024))
    assert list_offsets(talk, LATEST, name="rolling").old_style_offsets == [0]
    times = []
    for _ in range(5):
        times.append(talk.runtime.now_ms())
        talk.produce(bytes(700_000), name="rolling")
        talk.pass_ms(1000)
    assert list_offsets(talk, LATEST, name="rolling").old_style_offsets == [5, 4, 3, 2, 1, 0]
    assert list_offsets(talk, LATEST, 2, name="rolling").old_style_offsets == [5, 4]
    assert list_offsets(talk, LATEST, -1, name="rolling").old_style_offsets == []
    assert list_offsets(talk, EARLIEST, name="rolling").old_style_offsets == [0]
    assert list_offsets(talk, times[2], name="rolling").old_style_offsets == [2, 1, 0]
    assert list_offsets(talk, times[0] - 1, name="rolling").old_style_offsets == []
    assert list_offsets(talk, talk.runtime.now_ms(), name="rolling").old_style_offsets == [5, 4, 3, 2, 1, 0]
    answer = list_offsets(talk, LATEST, name="none")
    assert (answer.error_code, answer.old_style_offsets) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])


def commit(talk: Conversation, version: int, offset: int, timestamp: int = -1, **more: Any) -> int:
    asked = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata="note", commit_timestamp=timestamp
    )
    topics = [OffsetCommitRequestTopic(name="orders", partitions=[asked])]
    request = OffsetCommitRequest(group_id="g", topics=topics, **more)
    code: int = talk.ask(OFFSET_COMMIT, request, version).topics[0].partitions[0].error_code
    return code


def committed(talk: Conversation, version: int) -> tuple[int, str, int]:
    request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="orders", partition_indexes=[0])])
    one = talk.ask(OFFSET_FETCH, request, version).topics[0].partitions[0]
    return one.committed_offset, one.metadata, one.error_code


def test_offsets_are_those_of_the_same_group_in_all_versions(talk: Conversation) -> None:
    assert committed(talk, 0) == (-1, "", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert committed(talk, 1) == (-1, "", ErrorCode.NONE)
    for version in (0, 1, 2):
        assert commit(talk, version, 10 + version) == ErrorCode.NONE
        for reading in (0, 1, 5):
            assert committed(talk, reading) == (10 + version, "note", ErrorCode.NONE)
    assert commit(talk, 1, 3, generation_id_or_member_epoch=4, member_id="m") == ErrorCode.ILLEGAL_GENERATION


def test_when_an_offset_was_committed_may_be_told_but_does_not_make_it_last(talk: Conversation) -> None:
    now_ms = talk.runtime.now_ms()
    place = talk.topic("orders").id, 0
    for told, kept in ((-1, now_ms), (now_ms - 5000, now_ms - 5000), (now_ms + 10**9, now_ms)):
        assert commit(talk, 1, 7, told) == ErrorCode.NONE
        assert talk.broker.groups.offsets.of_group("g")[place].committed_ms == kept


@pytest.mark.parametrize("version", [0, 2])
def test_a_flush_that_fails_is_told_in_a_code_of_their_time(talk: Conversation, version: int) -> None:
    talk.files.inject(Fault("sync"))
    answer = send(talk, message_set(0, 0, some(talk)), version)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
