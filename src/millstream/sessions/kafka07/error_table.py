"""Which Kafka 0.7 error code each of our errors is answered with: the one table."""

from collections.abc import Mapping
from typing import Final

from millstream.broker.address_index import AddressDamaged
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka07.errors import WrongPartition
from millstream.storage.errors import OffsetOutOfRange
from millstream.wire.kafka07.error_codes import ErrorCode

__all__ = ["code_of"]

_CODES: Final[Mapping[type[Exception], ErrorCode]] = {
    OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    # The original serves damaged bytes, in which its client finds the invalid message itself.
    AddressDamaged: ErrorCode.INVALID_MESSAGE,
    WrongPartition: ErrorCode.WRONG_PARTITION,
}


def code_of(error: MillstreamError | OSError) -> ErrorCode:
    """The code for an error, by its class or the nearest one it derives from; UNKNOWN for all others."""
    for cls in type(error).__mro__:
        code = _CODES.get(cls)
        if code is not None:
            return code
    return ErrorCode.UNKNOWN
