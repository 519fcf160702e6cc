"""The requests that most tests here make, in one version each, over one connection."""

import time
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from millstream.model.frame import FrameHeader, frame_crc, read_frame_header
from millstream.model.record import Record
from millstream.wire.compression import Codec
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.alter_configs import (
    ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from millstream.wire.kafka.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from millstream.wire.kafka.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from millstream.wire.kafka.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from millstream.wire.kafka.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from millstream.wire.kafka.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from millstream.wire.kafka.records import build_batch, read_records
from millstream.wire.kafka.schema import Buffer
from tests.conformance.raw.connection import Connection

__all__ = [
    "EARLIEST",
    "LATEST",
    "LogClient",
    "batch_of",
    "headers_of",
    "now_ms",
    "produce_request",
    "records_of",
    "resealed",
]

LATEST: Final = -1
EARLIEST: Final = -2
_PRODUCE_VERSION: Final = 9
_TOPIC_RESOURCE: Final = 2
_FETCH_VERSION: Final = 12
_LIST_OFFSETS_VERSION: Final = 11


def now_ms() -> int:
    """The time, in ms since 1970."""
    return int(time.time() * 1000)


def batch_of(
    *values: bytes, timestamp_ms: int | None = None, codec: Codec = Codec.NONE, **producer: int
) -> bytearray:
    """A batch of records without keys, a ms apart; `producer` as for `build_batch`."""
    first_ms = now_ms() if timestamp_ms is None else timestamp_ms
    records = [Record(offset=n, timestamp_ms=first_ms + n, key=None, value=value) for n, value in enumerate(values)]
    return build_batch(records, codec=codec, **producer)


def resealed(batch: bytearray) -> bytearray:
    """The batch with a checksum that fits what was done to it."""
    batch[17:21] = frame_crc(memoryview(batch)).to_bytes(4, "big")
    return batch


def headers_of(records: Buffer | None) -> list[FrameHeader]:
    """The headers of the batches in an answer."""
    return [header for header, _ in _frames(records)]


def records_of(records: Buffer | None) -> list[Record]:
    """The records of all batches in an answer."""
    return [record for _, frame in _frames(records) for record in read_records(frame)]


def _frames(records: Buffer | None) -> list[tuple[FrameHeader, memoryview]]:
    view, position = memoryview(records or b""), 0
    frames = []
    while position < len(view):
        header = read_frame_header(view, position)
        frame = view[position : position + header.size]
        assert len(frame) == header.size, "an answer holds whole batches"
        assert frame_crc(frame) == header.crc
        frames.append((header, frame))
        position += header.size
    return frames


class LogClient(Connection):
    """A connection with the requests that write and read a log."""

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> UUID:
        """Create a topic; returns its id."""
        settings = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
        asked = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
        [result] = self.call(CREATE_TOPICS, 7, CreateTopicsRequest(topics=[asked])).topics
        assert result.error_code == 0, result.error_message
        topic_id: UUID = result.topic_id
        return topic_id

    def configure(self, topic: str, configs: Mapping[str, str]) -> None:
        """Give a topic settings; those that are not named get their defaults back."""
        settings = [AlterableConfig(name=key, value=value) for key, value in configs.items()]
        resource = AlterConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=topic, configs=settings)
        [answer] = self.call(ALTER_CONFIGS, 2, AlterConfigsRequest(resources=[resource])).responses
        assert answer.error_code == 0, answer.error_message

    def produce(self, topic: str, batch: Buffer, partition: int = 0, acks: int = -1) -> Any:
        """Send one batch; returns the answer for its partition."""
        version, request = _PRODUCE_VERSION, produce_request(topic, batch, partition, acks)
        return self.call(PRODUCE, version, request).responses[0].partition_responses[0]

    def append(self, topic: str, *values: bytes, **batch: Any) -> int:
        """Append one batch; returns its base offset."""
        return self.append_to(topic, 0, *values, **batch)

    def append_to(self, topic: str, partition: int, *values: bytes, **batch: Any) -> int:
        """Append one batch to a partition; returns its base offset."""
        answer = self.produce(topic, batch_of(*values, **batch), partition)
        assert answer.error_code == 0, (ErrorCode(answer.error_code).name, answer.error_message)
        base_offset: int = answer.base_offset
        return base_offset

    def fetch(self, topic: str, offset: int, partition: int = 0, **request: Any) -> Any:
        """Fetch from one partition, without waiting unless told to; returns the answer for it.

        Args:
            request: fields of the request; `partition_max_bytes` is that of the partition.
        """
        wanted = FetchPartition(
            partition=partition,
            fetch_offset=offset,
            partition_max_bytes=request.pop("partition_max_bytes", 1 << 20),
        )
        topics = [FetchTopic(topic=topic, partitions=[wanted])]
        response = self.call(FETCH, _FETCH_VERSION, FetchRequest(topics=topics, **request))
        assert response.error_code == 0
        return response.responses[0].partitions[0]

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        """The values of all records of a partition."""
        return [record.value for record in self.records(topic, partition)]

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        """All records of a partition."""
        found: list[Record] = []
        offset = self.offset(topic, EARLIEST, partition)
        while True:
            records = records_of(self.fetch(topic, offset, partition).records)
            if not records:
                return found
            found += [record for record in records if record.offset >= offset]
            offset = found[-1].offset + 1

    def offset(self, topic: str, timestamp: int, partition: int = 0) -> int:
        """Look up an offset."""
        answer = self.look_up(topic, timestamp, partition)
        assert answer.error_code == 0
        offset: int = answer.offset
        return offset

    def look_up(self, topic: str, timestamp: int, partition: int = 0, version: int = _LIST_OFFSETS_VERSION) -> Any:
        """Look up an offset; returns the answer for the partition."""
        asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
        return self.call(LIST_OFFSETS, version, request).topics[0].partitions[0]

    def new_producer_id(self) -> int:
        """A producer id that nobody has had."""
        answer = self.call(
            INIT_PRODUCER_ID, 4, InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        )
        assert (answer.error_code, answer.producer_epoch) == (0, 0)
        producer_id: int = answer.producer_id
        return producer_id


def produce_request(topic: str, batch: Buffer, partition: int = 0, acks: int = -1) -> ProduceRequest:
    """A request that sends one batch."""
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[data])
