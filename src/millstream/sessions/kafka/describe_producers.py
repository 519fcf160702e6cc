"""DescribeProducers: version 0. Nothing is written to a partition when a transaction ends, so no epoch for that."""

from typing import Final

from millstream.broker.acl import Operation
from millstream.broker.partition import Partition
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka.authorization import require_topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

__all__ = ["handle"]

_NO_COORDINATOR_EPOCH: Final = -1


def handle(call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Tell which idempotent producers have written to partitions, and where their open transactions begin there."""
    response = DescribeProducersResponse()
    for asked in request.topics:
        topic = call.topic(asked.name)
        found = TopicResponse(name=asked.name)
        response.topics.append(found)
        for index in dict.fromkeys(asked.partition_indexes):
            try:
                require_topic(call, Operation.READ, topic, asked.name)
                partition = call.partition(topic, index)
            except MillstreamError as error:
                code = code_of(error)
                found.partitions.append(
                    PartitionResponse(partition_index=index, error_code=code, error_message=str(error))
                )
            else:
                found.partitions.append(
                    PartitionResponse(partition_index=index, active_producers=_producers(call, partition))
                )
    return response


def _producers(call: Call, partition: Partition) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=epoch,
            last_sequence=-1 if last is None else last.last_sequence,
            last_timestamp=-1 if last is None else last.timestamp_ms,
            coordinator_epoch=_NO_COORDINATOR_EPOCH,
            current_txn_start_offset=_start_offset(call, partition, producer_id),
        )
        for producer_id, epoch, last in partition.log.producers.latest()
    ]


def _start_offset(call: Call, partition: Partition, producer_id: int) -> int:
    producer = call.broker.transactional_producers.with_id(producer_id)
    if producer is None or producer.transaction is None or partition.transactions is None:
        return -1
    written = partition.transactions.written(producer.transaction.number)
    return -1 if written is None else written.first[0]
