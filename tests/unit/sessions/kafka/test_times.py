"""Looking for a time where other protocols wrote: by when it was published, and nothing is passed over."""

import pytest

from millstream.model.frame import read_frame_header
from millstream.wire.kafka.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from millstream.wire.pulsar.entry import check_entry, encode_entry
from millstream.wire.pulsar.pulsar_pb2 import MessageMetadata
from millstream.wire.pulsar.stored_frame import build_frame
from tests.unit.sessions.kafka.conversation import Conversation


@pytest.fixture
def talk() -> Conversation:
    """Three Pulsar messages, published at 1000, 2000 and 3000 ms; the second is of an event at 50 ms."""
    talk = Conversation()
    talk.create("orders")
    for publish_time, event_time in ((1000, 0), (2000, 50), (3000, 0)):
        metadata = MessageMetadata(
            producer_name="p", sequence_id=0, publish_time=publish_time, event_time=event_time or None
        )
        data = memoryview(encode_entry(metadata, b"v"))
        frame = memoryview(build_frame(data, check_entry(data)))
        talk.partition().append(frame, read_frame_header(frame), all_replicas=False)
    return talk


@pytest.mark.parametrize(
    ("wanted_ms", "found"),
    [(0, (0, 1000)), (1000, (0, 1000)), (1001, (1, 2000)), (2001, (2, 3000)), (3001, (-1, -1))],
)
def test_a_time_finds_the_first_that_may_be_as_late(
    talk: Conversation, wanted_ms: int, found: tuple[int, int]
) -> None:
    asked = ListOffsetsPartition(partition_index=0, timestamp=wanted_ms)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=[asked])])
    answer = talk.ask(LIST_OFFSETS, request, 5).topics[0].partitions[0]
    assert (answer.offset, answer.timestamp) == found
