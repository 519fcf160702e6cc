"""A regular expression of the topics that a member of a consumer group subscribes to (ConsumerGroupHeartbeat 1)."""

from collections.abc import Iterable

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.consumer_groups import EMPTY_PATTERN, TopicPattern
from millstream.sessions.kafka.authorization import may
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.patterns import compile_pattern

__all__ = ["topic_pattern"]


class _RegularExpression:
    def __init__(self, call: Call, text: str) -> None:
        self.text = text
        self._call = call
        self._pattern = compile_pattern(text)

    def matching(self, names: Iterable[str]) -> frozenset[str]:
        """Those names that match it as a whole, as in Apache Kafka, and that its client may know of."""
        return frozenset(
            name
            for name in names
            if self._pattern.fullmatch(name) is not None
            and may(self._call, Operation.DESCRIBE, ResourceType.TOPIC, name)
        )


def topic_pattern(call: Call, text: str | None) -> TopicPattern | None:
    """What a member says of its pattern.

    Args:
        call: by which it says so.
        text: None for nothing new, empty for that it has none any more.

    Raises:
        InvalidPattern: it is not a regular expression.
    """
    if text is None:
        return None
    return _RegularExpression(call, text) if text else EMPTY_PATTERN
