"""ListOffsets by time and by the special times, and OffsetForLeaderEpoch."""

import struct
from collections.abc import Callable

import pytest

from millstream.model.record import Record
from millstream.wire.compression import Codec
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from millstream.wire.kafka.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from millstream.wire.kafka.messages.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from millstream.wire.kafka.records import build_batch
from tests.conformance.raw.log_client import EARLIEST, LATEST, LogClient, now_ms, resealed

MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -3, -4, -5, -6
BASE_MS = 1_700_000_000_000


def found(client: LogClient, topic: str, timestamp: int, version: int = 11) -> tuple[int, int]:
    answer = client.look_up(topic, timestamp, version=version)
    assert answer.error_code == 0
    return answer.offset, answer.timestamp


def delete_before(client: LogClient, topic: str, offset: int) -> int:
    asked = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
    [answered] = client.call(DELETE_RECORDS, 2, DeleteRecordsRequest(topics=[asked])).topics
    assert answered.partitions[0].error_code == 0
    low_watermark: int = answered.partitions[0].low_watermark
    return low_watermark


def append_out_of_order(client: LogClient, topic: str, codec: Codec) -> None:
    """Three batches of three records, with times that go up and down within and between them."""
    for batch_times in ((100, 300, 200), (150, 150, 50), (300, 500, 400)):
        records = [Record(offset=0, timestamp_ms=BASE_MS + time, key=None, value=b"v") for time in batch_times]
        assert client.produce(topic, build_batch(records, codec=codec)).error_code == 0


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD], ids=lambda codec: codec.name)
def test_by_time(client: LogClient, topic: str, codec: Codec) -> None:
    append_out_of_order(client, topic, codec)
    expected = {0: (0, 100), 100: (0, 100), 101: (1, 300), 300: (1, 300), 301: (7, 500), 500: (7, 500)}
    for asked, (offset, time) in expected.items():
        for version in (1, 5, 11):
            assert found(client, topic, BASE_MS + asked, version) == (offset, BASE_MS + time), asked
    assert found(client, topic, BASE_MS + 501) == (-1, -1)
    assert found(client, topic, 0) == (0, BASE_MS + 100)


def test_special_times(client: LogClient, topic: str) -> None:
    empty = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: -1, EARLIEST_LOCAL: 0, LATEST_TIERED: -1, EARLIEST_PENDING: -1}
    assert {time: found(client, topic, time)[0] for time in empty} == empty
    append_out_of_order(client, topic, Codec.NONE)
    full = {**empty, LATEST: 9, MAX_TIMESTAMP: 7}
    assert {time: found(client, topic, time)[0] for time in full} == full
    assert found(client, topic, MAX_TIMESTAMP) == (7, BASE_MS + 500)
    assert delete_before(client, topic, 4) == 4
    later = {**full, EARLIEST: 4, EARLIEST_LOCAL: 4}
    assert {time: found(client, topic, time)[0] for time in later} == later
    assert found(client, topic, 0) == (4, BASE_MS + 150)
    assert found(client, topic, BASE_MS + 151) == (6, BASE_MS + 300), "the later ones before it are deleted"


def test_deleted_records_are_not_found(client: LogClient, topic: str) -> None:
    client.append(topic, b"a", b"b", b"c", timestamp_ms=BASE_MS)
    client.append(topic, b"d", timestamp_ms=BASE_MS + 10)
    delete_before(client, topic, 2)
    assert found(client, topic, BASE_MS) == (2, BASE_MS + 2)
    delete_before(client, topic, -1)
    assert found(client, topic, BASE_MS) == (-1, -1)
    assert found(client, topic, EARLIEST)[0] == found(client, topic, LATEST)[0] == 4


def test_offsets_that_cannot_be_deleted_up_to(client: LogClient, topic: str) -> None:
    client.append(topic, b"a", b"b")
    for offset in (3, 2**62, -2, -(2**63)):
        asked = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
        [answered] = client.call(DELETE_RECORDS, 2, DeleteRecordsRequest(topics=[asked])).topics
        [refused] = answered.partitions
        assert (refused.error_code, refused.low_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert found(client, topic, EARLIEST)[0] == 0


def test_over_many_segments(client: LogClient, unique: Callable[[str], str]) -> None:
    topic = unique("raw")
    client.create_topic(topic, configs={"segment.bytes": "1000"})
    for number in range(100):
        client.append(topic, bytes(100), bytes(100), timestamp_ms=BASE_MS + 10 * number)
    for number in (0, 1, 2, 33, 57, 98, 99):
        assert found(client, topic, BASE_MS + 10 * number) == (2 * number, BASE_MS + 10 * number)
        assert found(client, topic, BASE_MS + 10 * number + 1) == (2 * number + 1, BASE_MS + 10 * number + 1)
    assert found(client, topic, MAX_TIMESTAMP) == (199, BASE_MS + 991)


def test_errors(client: LogClient, topic: str) -> None:
    assert client.look_up("no-such-topic", LATEST).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.look_up(topic, LATEST, partition=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked = ListOffsetsPartition(partition_index=0, current_leader_epoch=3, timestamp=LATEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    [answered] = client.call(LIST_OFFSETS, 11, request).topics
    assert answered.partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_time_that_no_answer_can_carry(client: LogClient, topic: str) -> None:
    """A batch whose header claims a time of now, while its records lie at the end of all times."""
    records = [Record(offset=0, timestamp_ms=time, key=None, value=b"v") for time in (0, 5)]
    batch = build_batch(records)
    struct.pack_into(">qq", batch, 27, 2**63 - 1, now_ms())
    assert client.produce(topic, resealed(batch)).error_code == 0
    delete_before(client, topic, 1)
    assert client.look_up(topic, BASE_MS).error_code == ErrorCode.INVALID_RECORD
    assert found(client, topic, LATEST)[0] == 2


def test_offset_for_leader_epoch(client: LogClient, topic: str) -> None:
    client.append(topic, b"a", b"b", timestamp_ms=now_ms())
    # Current epoch, epoch asked for: error, epoch, end offset.
    expected = {
        (-1, 0): (0, 0, 2),
        (0, 0): (0, 0, 2),
        (0, 5): (0, -1, -1),
        (1, 0): (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1),
    }
    for (current, epoch), outcome in expected.items():
        for version in (2, 3, 4):
            asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
            missing = OffsetForLeaderPartition(partition=1, leader_epoch=0)
            request = OffsetForLeaderEpochRequest(
                topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked, missing])]
            )
            [answered] = client.call(OFFSET_FOR_LEADER_EPOCH, version, request).topics
            one, two = answered.partitions
            assert (one.error_code, one.leader_epoch, one.end_offset) == outcome
            assert (two.partition, two.error_code) == (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
