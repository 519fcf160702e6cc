"""Error codes for clients of the years before record batches (0.8 to 0.10), which know none above 35."""

from collections.abc import Mapping
from typing import Final

from millstream.wire.kafka.error_codes import ErrorCode

__all__ = ["before_batches"]

_OLD_CODES: Final[Mapping[int, ErrorCode]] = {
    # What brokers of their time said of a message that they could not make sense of.
    ErrorCode.INVALID_RECORD: ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: ErrorCode.CORRUPT_MESSAGE,
    # As Kafka tells it: they ask for metadata, and try again.
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.POLICY_VIOLATION: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def before_batches(code: int) -> int:
    """The code that stands for another one in Produce before version 3 and Fetch before version 4."""
    return _OLD_CODES.get(code, code)
