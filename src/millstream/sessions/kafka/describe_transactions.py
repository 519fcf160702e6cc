"""DescribeTransactions: version 0. Offsets that a transaction commits stand in no partition, and are not shown."""

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.transactions import TransactionalProducer
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka.authorization import may, require
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.transaction_states import state_of
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionDescription,
)

__all__ = ["handle"]


def handle(call: Call, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    """Describe the producers of some transactional ids, and their transactions."""
    described = []
    for name in dict.fromkeys(request.transactional_ids):
        try:
            require(call, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, name)
        except MillstreamError as error:
            described.append(TransactionDescription(error_code=code_of(error), transactional_id=name))
            continue
        producer = call.broker.transactional_producers.find(name)
        if producer is not None:
            described.append(_described(call, producer))
        else:
            code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if name else ErrorCode.INVALID_REQUEST
            described.append(TransactionDescription(error_code=code, transactional_id=name))
    return DescribeTransactionsResponse(transaction_states=described)


def _described(call: Call, producer: TransactionalProducer) -> TransactionDescription:
    transaction = producer.transaction
    topics: dict[str, TopicData] = {}
    for topic_id, index in sorted(transaction.partitions) if transaction is not None else ():
        topic = call.broker.topics.by_id(topic_id)
        if topic is not None and may(call, Operation.DESCRIBE, ResourceType.TOPIC, topic.name.flat):
            name = topic.name.flat
            topics.setdefault(name, TopicData(topic=name)).partitions.append(index)
    return TransactionDescription(
        transactional_id=producer.transactional_id,
        transaction_state=state_of(producer),
        transaction_timeout_ms=producer.timeout_ms,
        transaction_start_time_ms=-1 if transaction is None else transaction.started_ms,
        producer_id=producer.identity.id,
        producer_epoch=producer.identity.epoch,
        topics=list(topics.values()),
    )
