"""What the routes know of compaction, on top of the broker's."""

from typing import Final

from millstream.broker.broker import Broker
from millstream.broker.compaction import CompactionRunning, CompactionState
from millstream.broker.topics import Topic
from millstream.server.http.site import CompactionStatus
from millstream.sessions.pulsar.compaction import PulsarFrameRecords

__all__ = ["BrokerCompaction"]

_NAMES: Final = {
    CompactionState.NOT_RUN: "NOT_RUN",
    CompactionState.RUNNING: "RUNNING",
    CompactionState.SUCCESS: "SUCCESS",
    CompactionState.ERROR: "ERROR",
}
"""What Pulsar's tools call the states."""


class BrokerCompaction:
    """Compacts topics; see `site.Compaction`.

    Args:
        broker: the broker.
    """

    def __init__(self, broker: Broker) -> None:
        self._compaction = broker.compaction
        self._records = PulsarFrameRecords()

    def start(self, topic: Topic, index: int) -> None:
        """Begin to compact a partition. Raises CompactionRunning if that is under way already."""
        if self._compaction.status(topic, index).state is CompactionState.RUNNING:
            raise CompactionRunning(f"partition {index} is being compacted already")
        self._compaction.compact(topic, index, self._records)

    def status(self, topic: Topic, index: int) -> CompactionStatus:
        """How it stands."""
        status = self._compaction.status(topic, index)
        return CompactionStatus(_NAMES[status.state], status.error)
