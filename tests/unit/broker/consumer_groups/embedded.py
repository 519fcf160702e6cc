"""What members of the classic protocol tell each other in tests: text, so that no protocol's bytes are needed."""

from collections.abc import Mapping, Sequence

from millstream.broker.any_group import Joining, Protocol
from millstream.broker.consumer_groups import Subscription

__all__ = ["TextProtocol", "classic_joining", "metadata"]


def metadata(topics: str, owned: str = "") -> bytes:
    """What a member says of itself: topics, and partitions like "orders:0", with spaces between."""
    return f"{topics}/{owned}".encode()


class TextProtocol:
    """Reads and writes it. What begins with "?" cannot be read."""

    type = "consumer"

    def read_subscription(self, metadata: bytes) -> Subscription | None:
        """Topics and partitions."""
        if metadata.startswith(b"?"):
            return None
        topics, owned = metadata.decode().split("/")
        return Subscription(frozenset(topics.split()), self._partitions(owned))

    def read_assignment(self, protocol_name: str | None, content: bytes) -> frozenset[tuple[str, int]] | None:
        """Partitions."""
        return None if content.startswith(b"?") else self._partitions(content.decode())

    def write_assignment(self, metadata: bytes, partitions: Mapping[str, Sequence[int]]) -> bytes:
        """Partitions in order."""
        return " ".join(f"{topic}:{index}" for topic, indexes in partitions.items() for index in indexes).encode()

    @staticmethod
    def _partitions(text: str) -> frozenset[tuple[str, int]]:
        pairs = (one.split(":") for one in text.split())
        return frozenset((topic, int(index)) for topic, index in pairs)


def classic_joining(
    member_id: str = "",
    instance_id: str | None = None,
    *,
    topics: str = "orders",
    owned: str = "",
    protocols: Sequence[str] = ("cooperative",),
    protocol_type: str = "consumer",
    said: bytes | None = None,
    id_required: bool = False,
) -> Joining:
    """A request to join by the classic protocol."""
    content = metadata(topics, owned) if said is None else said
    return Joining(
        member_id=member_id,
        instance_id=instance_id,
        client_id="classic",
        client_host="/127.0.0.1",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=30_000,
        protocol_type=protocol_type,
        protocols=tuple(Protocol(name, content) for name in protocols),
        id_required=id_required,
        may_skip_assignment=False,
        topics=frozenset(topics.split()),
    )
