"""Appending the batches of transactions, which must have been told where they write before anything is written."""

from collections.abc import Callable
from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.partition import Partition
from millstream.broker.topics import Topic
from millstream.broker.transactions import ProducerEpoch, TooManyTransactions, Transaction, UnknownTransactionalId
from millstream.model.frame import FrameHeader
from millstream.model.pending import Pending, settled
from millstream.sessions.kafka.authorization import require
from millstream.sessions.kafka.call import Call
from millstream.storage.log import Appended
from millstream.wire.kafka.messages.produce import ProduceRequest

__all__ = ["TransactionalWriter"]

_ADDING_SINCE: Final = 12
_ACKS_ALL: Final = -1
_KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of batches that wait at a time until their partition was added to their transaction, which takes as long as a
commit of the metadata store: who sends more than that meanwhile is told to come again."""

Done = Callable[[tuple[Appended, memoryview]], None]
"""Takes where a batch went, and the batch as it was stored."""


class TransactionalWriter:
    """Appends one batch of a transaction.

    Args:
        call: the request's.
        request: the request.
        topic: the topic.
        partition: its partition.
        header: what stands in the batch.

    Raises:
        UnknownTransactionalId: the request or the batch names no producer.
        TransactionalIdNotAuthorized: the client may not write in its transactions.
    """

    def __init__(
        self, call: Call, request: ProduceRequest, topic: Topic, partition: Partition, header: FrameHeader
    ) -> None:
        if request.transactional_id is None or header.producer_id < 0:
            raise UnknownTransactionalId("a batch of a transaction comes without a transactional id or a producer id")
        require(call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        self._call = call
        self._transactional_id = request.transactional_id
        self._all_replicas = request.acks == _ACKS_ALL
        self._topic = topic
        self._partition = partition
        self._header = header

    def append(self, batch: memoryview, done: Done) -> Pending[None] | None:
        """Append the batch as soon as it may be.

        Args:
            batch: the whole batch; it is not used any more when this has returned.
            done: called once it is appended.

        Returns:
            What an answer waits for, None for nothing.

        Raises:
            TransactionError, AppendRefused, StorageError.
        """
        producers = self._call.broker.transactional_producers
        writing = producers.writing(
            self._transactional_id,
            ProducerEpoch(self._header.producer_id, self._header.producer_epoch),
            self._topic,
            self._partition.index,
            adding=self._call.version >= _ADDING_SINCE,
        )
        if isinstance(writing, Transaction):
            return self._append(writing, batch, done)
        shared, size = self._call.service, len(batch)
        if shared.kept_bytes + size > _KEPT_BYTES_MAX:
            raise TooManyTransactions("too many batches wait until they may be written")
        shared.kept_bytes += size
        kept = memoryview(bytearray(batch))

        def append(transaction: Transaction) -> Pending[None]:
            producers.check_open(transaction)
            return self._append(transaction, kept, done) or settled(None)

        def release(_: Pending[Transaction]) -> None:
            shared.kept_bytes -= size

        writing.when_done(release)
        written = writing.chain(append)
        # Behind the callback that appends: the end of the transaction may stand behind the batch.
        self._call.effects += (writing,)
        return written

    def _append(self, transaction: Transaction, batch: memoryview, done: Done) -> Pending[None] | None:
        partition, header = self._partition, self._header
        appended = partition.append(batch, header, all_replicas=self._all_replicas)
        durable = partition.durable() if self._all_replicas else None
        if not appended.duplicate:
            offsets = appended.base_offset, appended.base_offset + header.last_offset_delta + 1
            self._call.broker.transactional_producers.wrote(transaction, self._topic, partition, offsets, durable)
        done((appended, batch))
        return durable
