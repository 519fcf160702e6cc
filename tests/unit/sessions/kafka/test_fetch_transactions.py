"""Kafka clients do not see what Pulsar transactions have not decided, or have aborted."""

from typing import Any

import pytest

from millstream.model.frame import read_frame_header, transaction_fields
from millstream.wire.kafka.messages.fetch import FETCH
from millstream.wire.kafka.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from millstream.wire.pulsar.entry import check_entry, encode_entry
from millstream.wire.pulsar.pulsar_pb2 import MessageMetadata
from millstream.wire.pulsar.stored_frame import build_frame
from millstream.wire.translation import read_records
from tests.support.batches import frames_of
from tests.unit.sessions.kafka.conversation import Conversation, fetch_request

BY_NAME = 12


class Writer:
    """A broker to which a Pulsar producer writes in transactions."""

    def __init__(self) -> None:
        self.talk = Conversation()
        self.talk.create("orders")
        self.transactions = self.talk.broker.transactions

    def begin(self) -> int:
        number = self.talk.wait(self.transactions.begin(60_000))
        self.talk.wait(self.transactions.add_partitions(number, [(self.talk.topic(), 0)]))
        return number

    def write(self, value: bytes, number: int | None = None) -> None:
        data = memoryview(encode_entry(MessageMetadata(producer_name="p", sequence_id=0, publish_time=1000), value))
        fields = {}
        if number is not None:
            fields = dict(zip(("producer_epoch", "base_sequence"), transaction_fields(number), strict=True))
        frame = memoryview(build_frame(data, check_entry(data), transactional=number is not None, **fields))
        partition = self.talk.partition()
        base = partition.append(frame, read_frame_header(frame), all_replicas=False).base_offset
        if number is not None:
            self.transactions.wrote(number, partition, base, base + 1)

    def end(self, number: int, *, commit: bool) -> None:
        self.talk.wait(self.transactions.end(number, commit=commit))

    def fetch(self, offset: int = 0, version: int = BY_NAME, **fields: Any) -> Any:
        response = self.talk.ask(FETCH, fetch_request(offset, **fields), version)
        return response.responses[0].partitions[0]

    def latest(self) -> int:
        asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=[asked])])
        answer: int = self.talk.ask(LIST_OFFSETS, request, 5).topics[0].partitions[0].offset
        return answer


def values(found: Any) -> list[bytes | None]:
    return [
        record.value for frame in frames_of(bytes(found.records or b"")) for record in read_records(memoryview(frame))
    ]


def test_what_is_not_decided_is_not_there_yet() -> None:
    writer = Writer()
    writer.write(b"0")
    number = writer.begin()
    writer.write(b"1", number)
    writer.write(b"2")
    found = writer.fetch()
    assert (found.high_watermark, found.last_stable_offset, values(found)) == (1, 1, [b"0"])
    assert writer.latest() == 1
    assert values(writer.fetch(1, max_wait_ms=0)) == []
    writer.end(number, commit=True)
    found = writer.fetch()
    assert (found.high_watermark, found.last_stable_offset, values(found)) == (3, 3, [b"0", b"1", b"2"])
    assert writer.latest() == 3


def test_aborted_records_are_left_out_and_their_offsets_passed_over() -> None:
    writer = Writer()
    number = writer.begin()
    for n in range(3):
        writer.write(b"gone %d" % n, number)
    writer.end(number, commit=False)
    found = writer.fetch()
    frames = list(frames_of(bytes(found.records)))
    assert values(found) == []
    headers = [read_frame_header(frame) for frame in frames]
    assert [(one.base_offset, one.record_count, one.last_offset) for one in headers] == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 0, 2),
    ]
    assert [one.attributes for one in headers] == [0, 0, 0]
    writer.write(b"stays")
    assert values(writer.fetch(0)) == [b"stays"]


@pytest.mark.parametrize("version", [0, 2])
def test_clients_of_before_batches(version: int) -> None:
    writer = Writer()
    number, other = writer.begin(), writer.begin()
    writer.write(b"gone", number)
    writer.write(b"stays", other)
    writer.end(number, commit=False)
    assert not writer.fetch(0, version, max_wait_ms=0).records
    writer.end(other, commit=True)
    records = bytes(writer.fetch(0, version).records)
    assert b"stays" in records
    assert b"gone" not in records


def test_a_decision_ends_the_waiting() -> None:
    writer = Writer()
    number = writer.begin()
    writer.write(b"value", number)
    pending = writer.talk.send(FETCH, fetch_request(min_bytes=1, max_wait_ms=60_000), BY_NAME)
    assert pending is not None
    seen: list[Any] = []
    pending.when_done(lambda done: seen.append(done.result().responses[0].partitions[0]))
    writer.talk.runtime.run()
    assert seen == []
    writer.end(number, commit=True)
    assert [values(found) for found in seen] == [[b"value"]]
