"""The error codes of Kafka 0.7. Source: kafka.common.ErrorMapping of its 0.7 branch."""

from enum import IntEnum

__all__ = ["ErrorCode"]


class ErrorCode(IntEnum):
    """All codes that an answer can carry."""

    UNKNOWN = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    INVALID_MESSAGE = 2
    WRONG_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    """Never sent: clients raise it themselves when the first message does not fit what they asked for."""
