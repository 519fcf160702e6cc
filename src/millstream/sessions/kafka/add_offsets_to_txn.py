"""AddOffsetsToTxn: versions 0 to 4. From 2 on a producer that another has taken over is told PRODUCER_FENCED."""

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.errors import InvalidGroupId
from millstream.broker.transactions import ProducerEpoch
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.kafka.authorization import require
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.transaction_codes import code_for_coordinator
from millstream.wire.kafka.messages.add_offsets_to_txn import (
    ADD_OFFSETS_TO_TXN,
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)

__all__ = ["handle"]


def handle(call: Call, request: AddOffsetsToTxnRequest) -> Pending[AddOffsetsToTxnResponse]:
    """Say of which group a producer is going to commit offsets in its transaction."""
    identity = ProducerEpoch(request.producer_id, request.producer_epoch)

    def add() -> Pending[None]:
        require(call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        require(call, Operation.READ, ResourceType.GROUP, request.group_id)
        if not request.group_id:
            raise InvalidGroupId("the name of a group is empty")
        return call.broker.transactional_producers.add_group(request.transactional_id, identity, request.group_id)

    def refuse(error: MillstreamError) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=code_for_coordinator(error, ADD_OFFSETS_TO_TXN.key, call.version))

    return Pending.attempt(add).settle(lambda _: AddOffsetsToTxnResponse(), refuse)
