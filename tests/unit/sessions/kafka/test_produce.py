"""Produce: what each kind of acknowledgement waits for, and what a disk that fails is answered with."""

import errno
from pathlib import Path
from uuid import UUID

import pytest

from millstream.model.frame import frame_crc
from millstream.model.record import Record
from millstream.storage.flusher import FLUSH_LANE
from millstream.wire.compression import Codec
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.errors import Unanswerable
from millstream.wire.kafka.messages.produce import PRODUCE, PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.wire.kafka.records import build_batch
from tests.support.batches import batch, read_all
from tests.support.simulated_files import Fault
from tests.unit.sessions.kafka.conversation import Conversation, produce_request

BY_NAME = 12
ACKS_ALL, ACKS_LEADER, ACKS_NONE = -1, 1, 0


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation()
    talk.create("orders", 2)
    return talk


def fresh(talk: Conversation, value: bytes = b"value", **more: int) -> bytearray:
    return batch(value, timestamp_ms=talk.runtime.now_ms(), **more)


def test_acks_all_is_answered_after_the_disk_has_it(talk: Conversation) -> None:
    talk.runtime.hold(FLUSH_LANE)
    pending = talk.send(PRODUCE, produce_request(fresh(talk), acks=ACKS_ALL), BY_NAME)
    assert pending is not None
    talk.runtime.run()
    assert not pending.done
    assert talk.partition().log.end_offset == 1
    talk.runtime.release(FLUSH_LANE)
    answer = talk.wait(pending).responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (ErrorCode.NONE, 0, -1)


def test_acks_1_is_answered_at_once(talk: Conversation) -> None:
    talk.runtime.hold(FLUSH_LANE)
    pending = talk.send(PRODUCE, produce_request(fresh(talk), acks=ACKS_LEADER), BY_NAME)
    assert pending is not None
    assert pending.result().responses[0].partition_responses[0].base_offset == 0


def test_acks_0_is_not_answered_and_ends_the_connection_when_it_fails(talk: Conversation) -> None:
    assert talk.send(PRODUCE, produce_request(fresh(talk), acks=ACKS_NONE), BY_NAME) is None
    with pytest.raises(Unanswerable, match="CORRUPT_MESSAGE"):
        talk.send(PRODUCE, produce_request(b"rubbish", acks=ACKS_NONE), BY_NAME)
    with pytest.raises(Unanswerable, match="UNKNOWN_TOPIC_OR_PARTITION"):
        talk.send(PRODUCE, produce_request(fresh(talk), acks=ACKS_NONE, name="none"), BY_NAME)
    assert talk.partition().log.end_offset == 1


def test_with_durability_os_acks_all_is_answered_at_once() -> None:
    talk = Conversation(durability="os")
    talk.create()
    pending = talk.send(PRODUCE, produce_request(fresh(talk)), BY_NAME)
    assert pending is not None
    assert pending.done


def test_requests_of_one_read_share_a_flush(talk: Conversation) -> None:
    syncs = talk.files.calls["sync"]
    pending = [talk.send(PRODUCE, produce_request(fresh(talk)), BY_NAME) for _ in range(10)]
    talk.runtime.run()
    assert all(one is not None and one.done for one in pending)
    assert talk.files.calls["sync"] - syncs == 1


def test_a_flush_that_fails_is_told_and_fences_the_partition(tmp_path: Path) -> None:
    talk = Conversation(str(tmp_path / "metadata.sqlite"))
    talk.create("orders", 2)
    talk.files.inject(Fault("sync"))
    answer = talk.produce(b"lost")
    assert (answer.error_code, answer.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    for acks in (ACKS_ALL, ACKS_LEADER):
        assert talk.produce(b"next", acks=acks).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert talk.produce(b"other", index=1).error_code == ErrorCode.NONE
    talk.kill()
    talk.start()
    assert talk.produce(b"after a restart").error_code == ErrorCode.NONE


def test_a_partition_that_fails_does_not_spoil_the_answer_of_another(talk: Conversation) -> None:
    talk.files.inject(Fault("sync", path_ending="/1/00000000000000000000.log"))
    data = [PartitionProduceData(index=index, records=fresh(talk)) for index in (0, 1)]
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="orders", partition_data=data)])
    answers = talk.ask(PRODUCE, request, BY_NAME).responses[0].partition_responses
    assert [(one.index, one.error_code, one.base_offset) for one in answers] == [
        (0, ErrorCode.NONE, 0),
        (1, ErrorCode.KAFKA_STORAGE_ERROR, -1),
    ]


def test_a_full_disk_is_told_and_nothing_is_kept(talk: Conversation) -> None:
    talk.produce(b"first")
    talk.files.inject(Fault("write", code=errno.ENOSPC, kept_bytes=30))
    assert talk.produce(b"no room").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    answer = talk.produce(b"room again")
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 1)
    assert len(read_all(talk.partition().log)) == 2


@pytest.mark.parametrize("acks", [-2, 2, 100])
def test_other_acks_are_refused(talk: Conversation, acks: int) -> None:
    assert talk.produce(b"x", acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert talk.partition().log.end_offset == 0


@pytest.mark.parametrize(("name", "index"), [("none", 0), ("orders", 2), ("orders", -1), ("", 0)])
def test_what_does_not_exist(talk: Conversation, name: str, index: int) -> None:
    assert talk.produce(b"x", name=name, index=index).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [topic.name.flat for topic in talk.broker.topics] == ["orders"]


def by_id(talk: Conversation, topic_id: UUID, index: int = 0) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=fresh(talk))]
    return ProduceRequest(
        acks=-1, timeout_ms=1, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=data)]
    )


def test_topics_are_named_by_id_in_the_latest_version(talk: Conversation) -> None:
    response = talk.ask(PRODUCE, by_id(talk, talk.topic().id)).responses[0]
    assert response.topic_id == talk.topic().id
    assert response.partition_responses[0].error_code == ErrorCode.NONE
    for topic_id, index, code in (
        (UUID(int=5), 0, ErrorCode.UNKNOWN_TOPIC_ID),
        (talk.topic().id, 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        answer = talk.ask(PRODUCE, by_id(talk, topic_id, index)).responses[0].partition_responses[0]
        assert answer.error_code == code


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, ErrorCode.CORRUPT_MESSAGE),
        (b"", ErrorCode.CORRUPT_MESSAGE),
        (b"x" * 60, ErrorCode.CORRUPT_MESSAGE),
        (bytes(200), ErrorCode.INVALID_RECORD),
    ],
)
def test_batches_that_must_not_be_stored(talk: Conversation, records: bytes | None, code: ErrorCode) -> None:
    answer = talk.ask(PRODUCE, produce_request(records), BY_NAME).responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert bool(answer.record_errors) == (code == ErrorCode.INVALID_RECORD)
    assert answer.error_message
    assert talk.partition().log.end_offset == 0


def test_a_flipped_bit_is_found(talk: Conversation) -> None:
    frame = fresh(talk)
    frame[70] ^= 4
    answer = talk.ask(PRODUCE, produce_request(frame), BY_NAME).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.CORRUPT_MESSAGE


def test_zstd_is_allowed_from_version_7_on(talk: Conversation) -> None:
    record = Record(offset=0, timestamp_ms=talk.runtime.now_ms(), key=None, value=b"x" * 100)
    for version, code in ((6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)):
        request = produce_request(build_batch([record], codec=Codec.ZSTD))
        assert talk.ask(PRODUCE, request, version).responses[0].partition_responses[0].error_code == code


def test_a_batch_of_no_producers_transaction_is_refused(talk: Conversation) -> None:
    frame = fresh(talk)
    frame[22] |= 0x10
    frame[17:21] = frame_crc(memoryview(frame)).to_bytes(4, "big")
    answer = talk.ask(PRODUCE, produce_request(frame), BY_NAME).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_compacted_topic_takes_no_record_without_a_key(talk: Conversation) -> None:
    talk.create("compacted", cleanup__policy="compact")
    assert talk.produce(b"x", name="compacted").error_code == ErrorCode.INVALID_RECORD
    keyed = build_batch([Record(offset=0, timestamp_ms=talk.runtime.now_ms(), key=b"k", value=b"v")])
    answer = talk.ask(PRODUCE, produce_request(keyed, name="compacted"), BY_NAME)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_a_duplicate_is_answered_with_the_first_offset_and_a_gap_is_refused(talk: Conversation) -> None:
    def send(sequence: int, epoch: int = 0) -> tuple[int, int]:
        frame = fresh(talk, producer_id=9, epoch=epoch, sequence=sequence)
        answer = talk.ask(PRODUCE, produce_request(frame), BY_NAME).responses[0].partition_responses[0]
        return answer.error_code, answer.base_offset

    assert send(0) == (ErrorCode.NONE, 0)
    assert send(1) == (ErrorCode.NONE, 1)
    assert send(0) == (ErrorCode.NONE, 0)
    assert send(3) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert send(0, epoch=1) == (ErrorCode.NONE, 2)
    assert send(2) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)


def test_the_time_of_append_is_told(talk: Conversation) -> None:
    talk.create("stamped", message__timestamp__type="LogAppendTime")
    assert talk.produce(b"x", name="stamped").log_append_time_ms == talk.runtime.now_ms()


def test_a_topic_that_is_deleted_before_the_flush(talk: Conversation) -> None:
    talk.runtime.hold(FLUSH_LANE)
    pending = talk.send(PRODUCE, produce_request(fresh(talk)), BY_NAME)
    assert pending is not None
    talk.broker.delete_topic(talk.topic())
    talk.runtime.run()
    talk.runtime.release(FLUSH_LANE)
    talk.wait(pending)
