"""InitProducerId: versions 0 to 5.

From 3 on a producer may say what it was called until now, so that it goes on as the same (KIP-360); from 4 on one
that another has taken over is told PRODUCER_FENCED.
"""

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.transactions import ProducerEpoch
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.kafka.authorization import may_write_somewhere, require, require_cluster
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.transaction_codes import code_for_coordinator
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.init_producer_id import (
    INIT_PRODUCER_ID,
    InitProducerIdRequest,
    InitProducerIdResponse,
)

__all__ = ["handle"]


def handle(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse | Pending[InitProducerIdResponse]:
    """Give out a producer id that nobody has had, with epoch 0; or a transactional id's own, with its next epoch."""
    try:
        _require(call, request)
    except MillstreamError as error:
        return _refused(code_of(error))
    if request.transactional_id is None:
        taken = call.broker.producer_ids.take()
        return taken.settle(
            lambda producer_id: InitProducerIdResponse(producer_id=producer_id),
            lambda error: _refused(code_of(error)),
        )
    transactional_id = request.transactional_id
    known, epoch = request.producer_id >= 0, request.producer_epoch >= 0
    if known is not epoch:
        return _refused(ErrorCode.INVALID_REQUEST)
    expected = ProducerEpoch(request.producer_id, request.producer_epoch) if known else None

    def refuse(error: MillstreamError) -> InitProducerIdResponse:
        return _refused(code_for_coordinator(error, INIT_PRODUCER_ID.key, call.version))

    opened = Pending.attempt(
        lambda: call.broker.transactional_producers.open(transactional_id, request.transaction_timeout_ms, expected)
    )
    return opened.settle(lambda one: InitProducerIdResponse(producer_id=one.id, producer_epoch=one.epoch), refuse)


def _require(call: Call, request: InitProducerIdRequest) -> None:
    if request.transactional_id is not None:
        require(call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    elif not may_write_somewhere(call):
        require_cluster(call, Operation.IDEMPOTENT_WRITE)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)
