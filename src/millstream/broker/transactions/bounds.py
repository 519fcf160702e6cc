"""How far subscriptions may read partitions where there are transactions."""

from millstream.broker.partition import Partition
from millstream.broker.subscriptions.turns import PartitionBounds

__all__ = ["TransactionBounds"]


class TransactionBounds(PartitionBounds):
    """What is not decided is for no consumer yet; a partition that was terminated has an end."""

    def stable_offset(self, partition: Partition) -> int:
        """See `PartitionBounds.stable_offset`."""
        return partition.stable_offset

    def is_terminated(self, partition: Partition) -> bool:
        """See `PartitionBounds.is_terminated`: once there is nothing more to be decided, either."""
        return partition.terminated and partition.stable_offset == partition.log.end_offset
