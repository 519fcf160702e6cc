"""What consumers of the classic protocol tell each other, as a consumer group reads and writes it."""

from collections.abc import Mapping, Sequence
from typing import Final

from millstream.broker.consumer_groups import Subscription
from millstream.sessions.kafka.consumer_assignment import decode_assignment, encode_assignment
from millstream.sessions.kafka.consumer_subscription import decode_subscription, subscription_version

__all__ = ["ConsumerProtocol"]

_PARTITIONS_ALONE: Final = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
"""The assignors that clients bring along, whose members look at nothing but partitions. librdkafka returns to members
what they have said to the two last, and Apache Kafka takes that for what others tell them, such as Kafka Streams'."""


class ConsumerProtocol:
    """Implements `EmbeddedProtocol` for Kafka's consumers."""

    type = "consumer"

    def read_subscription(self, metadata: bytes) -> Subscription | None:
        """What a member says of itself; None if that cannot be read."""
        return decode_subscription(metadata)

    def read_assignment(self, protocol_name: str | None, content: bytes) -> frozenset[tuple[str, int]] | None:
        """The partitions that a member was assigned; None if that cannot be read, or is not all that it was told."""
        assigned = decode_assignment(content)
        if assigned is None or (assigned.has_user_data and protocol_name not in _PARTITIONS_ALONE):
            return None
        return assigned.partitions

    def write_assignment(self, metadata: bytes, partitions: Mapping[str, Sequence[int]]) -> bytes:
        """An assignment, in the version of what the member says of itself."""
        return encode_assignment(partitions, subscription_version(metadata))
