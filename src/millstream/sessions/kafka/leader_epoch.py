"""Leader epochs. This server leads every partition for ever, in epoch 0."""

from typing import Final

from millstream.wire.kafka.error_codes import ErrorCode

__all__ = ["LEADER_EPOCH", "epoch_error"]

LEADER_EPOCH: Final = 0


def epoch_error(current_leader_epoch: int) -> int:
    """The error for the epoch that a client takes for the present one; -1 means that it does not say."""
    return ErrorCode.UNKNOWN_LEADER_EPOCH if current_leader_epoch > LEADER_EPOCH else ErrorCode.NONE
