"""AddPartitionsToTxn: versions 0 to 5.

From 2 on a producer that another has taken over is told PRODUCER_FENCED. From 4 on, which brokers send to each other,
several transactions may be added to, or only looked at.
"""

from collections.abc import Sequence
from typing import Final

from millstream.broker.topics import Topic
from millstream.broker.transactions import ProducerEpoch
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather, settled
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.transaction_codes import code_for_coordinator
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

__all__ = ["handle"]

_SEVERAL_SINCE: Final = 4


def handle(call: Call, request: AddPartitionsToTxnRequest) -> Pending[AddPartitionsToTxnResponse]:
    """Say where a producer is going to write in its transaction: all of it, or nothing."""
    if call.version < _SEVERAL_SINCE:
        only = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        return _add(call, only).then(
            lambda results: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
        )
    adding = [_add(call, one) for one in request.transactions]

    def respond(done: Sequence[Pending[list[AddPartitionsToTxnTopicResult]]]) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(transactional_id=one.transactional_id, topic_results=results.result())
                for one, results in zip(request.transactions, done, strict=True)
            ]
        )

    return gather(adding).then(respond)


def _add(call: Call, asked: AddPartitionsToTxnTransaction) -> Pending[list[AddPartitionsToTxnTopicResult]]:
    producers = call.broker.transactional_producers
    identity = ProducerEpoch(asked.producer_id, asked.producer_epoch)
    if asked.verify_only:
        return settled(_verified(call, asked, identity))
    places: list[tuple[Topic, int]] = []
    unknown: set[tuple[str, int]] = set()
    for wanted in asked.topics:
        topic = call.topic(wanted.name)
        for index in wanted.partitions:
            if topic is None or not 0 <= index < len(topic.partitions):
                unknown.add((wanted.name, index))
            else:
                places.append((topic, index))
    if unknown:
        return settled(_unknown(asked.topics, unknown))

    def refuse(error: MillstreamError) -> list[AddPartitionsToTxnTopicResult]:
        return _results(asked.topics, _code(call, error))

    added = Pending.attempt(lambda: producers.add_partitions(asked.transactional_id, identity, places))
    return added.settle(lambda _: _results(asked.topics, ErrorCode.NONE), refuse)


def _verified(
    call: Call, asked: AddPartitionsToTxnTransaction, identity: ProducerEpoch
) -> list[AddPartitionsToTxnTopicResult]:
    found = []
    for wanted in asked.topics:
        topic = call.topic(wanted.name)
        results = []
        for index in wanted.partitions:
            code = ErrorCode.NONE if topic is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            try:
                if topic is not None:
                    place = topic.id, index
                    call.broker.transactional_producers.check_partition(asked.transactional_id, identity, place)
            except MillstreamError as error:
                code = _code(call, error)
            results.append(AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code))
        found.append(AddPartitionsToTxnTopicResult(name=wanted.name, results_by_partition=results))
    return found


def _code(call: Call, error: MillstreamError) -> ErrorCode:
    return code_for_coordinator(error, ADD_PARTITIONS_TO_TXN.key, call.version)


def _results(topics: Sequence[AddPartitionsToTxnTopic], code: ErrorCode) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _unknown(
    topics: Sequence[AddPartitionsToTxnTopic], unknown: set[tuple[str, int]]
) -> list[AddPartitionsToTxnTopicResult]:
    results = _results(topics, ErrorCode.OPERATION_NOT_ATTEMPTED)
    for topic in results:
        for one in topic.results_by_partition:
            if (topic.name, one.partition_index) in unknown:
                one.partition_error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return results
