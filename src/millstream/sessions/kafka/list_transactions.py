"""ListTransactions: versions 0 to 2. From 1 on by how long they have been open, from 2 on by a pattern of the id."""

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.transactions import TransactionalProducer
from millstream.sessions.kafka.authorization import may
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.errors import InvalidPattern
from millstream.sessions.kafka.patterns import compile_pattern
from millstream.sessions.kafka.transaction_states import STATES, state_of
from millstream.wire.kafka.messages.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

__all__ = ["handle"]


def handle(call: Call, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List the producers with a transactional id that pass all filters."""
    states = set(request.state_filters)
    response = ListTransactionsResponse(unknown_state_filters=sorted(states - STATES))
    ids = set(request.producer_id_filters)
    pattern = None
    if request.transactional_id_pattern:
        try:
            pattern = compile_pattern(request.transactional_id_pattern)
        except InvalidPattern as error:
            response.error_code = code_of(error)
            return response
    now_ms = call.broker.runtime.now_ms()
    for producer in call.broker.transactional_producers:
        if (
            (states and state_of(producer) not in states)
            or (ids and producer.identity.id not in ids)
            or (request.duration_filter >= 0 and not _is_open_longer(producer, request.duration_filter, now_ms))
            or (pattern is not None and pattern.fullmatch(producer.transactional_id) is None)
            or not may(call, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, producer.transactional_id)
        ):
            continue
        response.transaction_states.append(
            ListedTransaction(
                transactional_id=producer.transactional_id,
                producer_id=producer.identity.id,
                transaction_state=state_of(producer),
            )
        )
    return response


def _is_open_longer(producer: TransactionalProducer, duration_ms: int, now_ms: int) -> bool:
    transaction = producer.transaction
    return transaction is not None and now_ms - transaction.started_ms > duration_ms
