"""EndTxn: versions 0 to 5. It is answered once the decision lasts; to ask for the same again gives the same answer.

From 2 on a producer that another has taken over is told PRODUCER_FENCED. From 5 on each end of a transaction gives
its producer the next epoch (KIP-890), which the answer tells.
"""

from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.transactions import ProducerEpoch
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.kafka.authorization import require
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.transaction_codes import code_for_coordinator
from millstream.wire.kafka.messages.end_txn import END_TXN, EndTxnRequest, EndTxnResponse

__all__ = ["handle"]

_NEXT_EPOCH_SINCE: Final = 5


def handle(call: Call, request: EndTxnRequest) -> Pending[EndTxnResponse]:
    """Commit or abort the transaction of a producer."""
    identity = ProducerEpoch(request.producer_id, request.producer_epoch)

    def end() -> Pending[ProducerEpoch]:
        require(call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        return call.broker.transactional_producers.end(
            request.transactional_id,
            identity,
            commit=request.committed,
            renamed=call.version >= _NEXT_EPOCH_SINCE,
        )

    def refuse(error: MillstreamError) -> EndTxnResponse:
        return EndTxnResponse(error_code=code_for_coordinator(error, END_TXN.key, call.version))

    return Pending.attempt(end).settle(
        lambda after: EndTxnResponse(producer_id=after.id, producer_epoch=after.epoch), refuse
    )
