"""InitProducerId: versions 0 to 5. It gives out ids for idempotent producing; transactions are not taken yet."""

from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

__all__ = ["handle"]


def handle(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse | Pending[InitProducerIdResponse]:
    """Give out a producer id that nobody has had, with epoch 0."""
    if request.transactional_id is not None:
        code = (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if request.transactional_id else ErrorCode.INVALID_REQUEST
        )
        return InitProducerIdResponse(error_code=code, producer_epoch=-1)
    taken = call.broker.producer_ids.take()
    return taken.settle(lambda producer_id: InitProducerIdResponse(producer_id=producer_id), _refused)


def _refused(error: MillstreamError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code_of(error), producer_epoch=-1)
