"""A Kafka client's transactions without a socket: what it asks for, and what readers see of it."""

from typing import Any

from millstream.model.frame import frame_crc, read_frame_header
from millstream.model.pending import Pending
from millstream.wire.kafka.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from millstream.wire.kafka.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from millstream.wire.kafka.messages.end_txn import END_TXN, EndTxnRequest
from millstream.wire.kafka.messages.fetch import FETCH
from millstream.wire.kafka.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from millstream.wire.kafka.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from millstream.wire.kafka.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from millstream.wire.kafka.messages.produce import PRODUCE
from millstream.wire.kafka.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from millstream.wire.translation import read_records
from tests.support.batches import batch, frames_of
from tests.unit.sessions.kafka.conversation import Conversation, fetch_request, produce_request

__all__ = ["ADDING", "AS_BEFORE", "Teller", "Who", "transactional_batch"]

AS_BEFORE = 11
"""The last version of Produce before which a partition is to be added."""
ADDING = 12
"""The first version of Produce that adds it."""
Who = tuple[int, int]
"""A producer id and epoch."""


def transactional_batch(value: bytes, who: Who, sequence: int, count: int = 1, timestamp_ms: int = 1000) -> bytearray:
    """A batch of a transaction."""
    frame = batch(value, count, timestamp_ms, producer_id=who[0], epoch=who[1], sequence=sequence)
    frame[22] |= 0x10
    frame[17:21] = frame_crc(memoryview(frame)).to_bytes(4, "big")
    return frame


class Teller(Conversation):
    """A client that speaks of one transactional id unless it is told another. Arguments as for `Conversation`."""

    name = "teller"

    def init(
        self, name: str | None = None, timeout_ms: int = 60_000, expected: Who = (-1, -1), version: int = 5
    ) -> Any:
        request = InitProducerIdRequest(
            transactional_id=name or self.name,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected[0],
            producer_epoch=expected[1],
        )
        return self.ask(INIT_PRODUCER_ID, request, version)

    def open(self, name: str | None = None, timeout_ms: int = 60_000) -> Who:
        """Take a transactional id over."""
        answer = self.init(name, timeout_ms)
        assert answer.error_code == 0
        return answer.producer_id, answer.producer_epoch

    def add(self, who: Who, *indexes: int, topic: str = "orders", name: str | None = None, version: int = 3) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name or self.name,
            v3_and_below_producer_id=who[0],
            v3_and_below_producer_epoch=who[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(indexes))],
        )
        [result] = self.ask(ADD_PARTITIONS_TO_TXN, request, version).results_by_topic_v3_and_below
        [code] = {one.partition_error_code for one in result.results_by_partition}
        return int(code)

    def sending(
        self,
        who: Who,
        value: bytes,
        sequence: int = 0,
        *,
        index: int = 0,
        version: int = ADDING,
        name: str | None = None,
        acks: int = -1,
    ) -> Pending[Any]:
        """Produce, without waiting for the answer."""
        frame = transactional_batch(value, who, sequence, timestamp_ms=self.runtime.now_ms())
        request = produce_request(frame, index=index, acks=acks)
        request.transactional_id = name or self.name
        pending = self.send(PRODUCE, request, version)
        assert pending is not None
        return pending.then(lambda response: response.responses[0].partition_responses[0])

    def write(self, who: Who, value: bytes, sequence: int = 0, **options: Any) -> int:
        """Produce; gives the code of the answer."""
        return int(self.wait(self.sending(who, value, sequence, **options)).error_code)

    def ending(self, who: Who, *, commit: bool, version: int, name: str | None = None) -> Pending[Any]:
        request = EndTxnRequest(
            transactional_id=name or self.name, producer_id=who[0], producer_epoch=who[1], committed=commit
        )
        pending = self.send(END_TXN, request, version)
        assert pending is not None
        return pending

    def end(self, who: Who, *, commit: bool = True, version: int = 5, name: str | None = None) -> Any:
        return self.wait(self.ending(who, commit=commit, version=version, name=name))

    def done(self, who: Who, *, commit: bool = True) -> Who:
        """End a transaction; gives the name of its producer from then on."""
        answer = self.end(who, commit=commit)
        assert answer.error_code == 0
        return answer.producer_id, answer.producer_epoch

    def add_group(self, who: Who, group: str, version: int = 4) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name, producer_id=who[0], producer_epoch=who[1], group_id=group
        )
        return int(self.ask(ADD_OFFSETS_TO_TXN, request, version).error_code)

    def commit_offset(self, who: Who, group: str, offset: int, version: int = 5, **fields: Any) -> int:
        place = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=fields.pop("note", None)
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=who[0],
            producer_epoch=who[1],
            topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[place])],
            **fields,
        )
        return int(self.ask(TXN_OFFSET_COMMIT, request, version).topics[0].partitions[0].error_code)

    def committed(self, group: str, *, stable: bool = False) -> tuple[int, int]:
        """The code and the offset of what a group has committed."""
        wanted = OffsetFetchRequestGroup(
            group_id=group, topics=[OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
        )
        answer = self.ask(OFFSET_FETCH, OffsetFetchRequest(groups=[wanted], require_stable=stable), 9)
        found = answer.groups[0].topics[0].partitions[0]
        return found.error_code, found.committed_offset

    def fetched(self, offset: int = 0, *, committed: bool = True, index: int = 0) -> Any:
        request = fetch_request(offset, index=index, max_wait_ms=0)
        request.isolation_level = int(committed)
        return self.ask(FETCH, request, 12).responses[0].partitions[0]

    def values(self, *, committed: bool = True, index: int = 0) -> list[bytes | None]:
        """What a reader gets of a partition, over as many answers as it takes."""
        values: list[bytes | None] = []
        offset = 0
        while True:
            frames = list(frames_of(bytes(self.fetched(offset, committed=committed, index=index).records or b"")))
            if not frames:
                return values
            for frame in frames:
                values += [record.value for record in read_records(memoryview(frame))]
            offset = read_frame_header(frames[-1]).last_offset + 1

    def latest(self, *, committed: bool, timestamp: int = -1) -> int:
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            isolation_level=int(committed), topics=[ListOffsetsTopic(name="orders", partitions=[asked])]
        )
        return int(self.ask(LIST_OFFSETS, request, 5).topics[0].partitions[0].offset)

    def again(self) -> None:
        """Let the process die, and start another."""
        self.kill()
        self.start()
