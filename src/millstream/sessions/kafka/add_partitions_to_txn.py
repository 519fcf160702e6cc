"""AddPartitionsToTxn: versions 0 to 5.

From 2 on a producer that another has taken over is told PRODUCER_FENCED. From 4 on, which brokers send to each other,
several transactions may be added to, or only looked at; that wants CLUSTER_ACTION on the cluster, and nothing else.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.topics import Topic
from millstream.broker.transactions import ProducerEpoch
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather, settled
from millstream.sessions.kafka.authorization import require, require_cluster, require_topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
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
        refused = _refused(call, only)
        return (_add(call, only) if refused is None else settled(refused)).then(
            lambda results: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
        )
    try:
        require_cluster(call, Operation.CLUSTER_ACTION)
    except MillstreamError as error:
        return settled(AddPartitionsToTxnResponse(error_code=code_of(error)))
    adding = [_add(call, one) for one in request.transactions]

    def respond(done: Sequence[Pending[list[AddPartitionsToTxnTopicResult]]]) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(transactional_id=one.transactional_id, topic_results=results.result())
                for one, results in zip(request.transactions, done, strict=True)
            ]
        )

    return gather(adding).then(respond)


def _refused(call: Call, asked: AddPartitionsToTxnTransaction) -> list[AddPartitionsToTxnTopicResult] | None:
    """What a client is told that may not write in the transaction or to a topic; None if it may."""
    try:
        require(call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, asked.transactional_id)
    except MillstreamError as error:
        return _results(asked.topics, code_of(error))
    refused: dict[tuple[str, int], ErrorCode] = {}
    for wanted in asked.topics:
        try:
            require_topic(call, Operation.WRITE, call.topic(wanted.name), wanted.name)
        except MillstreamError as error:
            refused.update(dict.fromkeys(((wanted.name, index) for index in wanted.partitions), code_of(error)))
    return _not_attempted(asked.topics, refused) if refused else None


def _add(call: Call, asked: AddPartitionsToTxnTransaction) -> Pending[list[AddPartitionsToTxnTopicResult]]:
    producers = call.broker.transactional_producers
    identity = ProducerEpoch(asked.producer_id, asked.producer_epoch)
    if asked.verify_only:
        return settled(_verified(call, asked, identity))
    places: list[tuple[Topic, int]] = []
    unknown: dict[tuple[str, int], ErrorCode] = {}
    for wanted in asked.topics:
        topic = call.topic(wanted.name)
        for index in wanted.partitions:
            if topic is None or not 0 <= index < len(topic.partitions):
                unknown[wanted.name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                places.append((topic, index))
    if unknown:
        return settled(_not_attempted(asked.topics, unknown))

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


def _not_attempted(
    topics: Sequence[AddPartitionsToTxnTopic], failed: Mapping[tuple[str, int], ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    """Tell the partitions that failed why, and the others that nothing was done because of them."""
    results = _results(topics, ErrorCode.OPERATION_NOT_ATTEMPTED)
    for topic in results:
        for one in topic.results_by_partition:
            place = topic.name, one.partition_index
            one.partition_error_code = failed.get(place, one.partition_error_code)
    return results
