"""Regular expressions of the topics that members of consumer groups subscribe to (ConsumerGroupHeartbeat 1)."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.authorizer import Authorizer
from millstream.broker.consumer_groups import EMPTY_PATTERN, TopicPattern
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.patterns import compile_pattern

__all__ = ["TopicPatterns", "topic_pattern"]

_COMPILED_MAX: Final = 100
"""Patterns that are kept compiled."""
_compiled = lru_cache(_COMPILED_MAX)(compile_pattern)


class TopicPatterns:
    """Implements `PatternReader` for Kafka's consumers.

    Args:
        authorizer: who decides what clients may know of; None where everybody may know of everything.
    """

    def __init__(self, authorizer: Authorizer | None) -> None:
        self._authorizer = authorizer

    @property
    def rights(self) -> int:
        """Another number whenever the ACLs have been changed."""
        return 0 if self._authorizer is None else self._authorizer.changes

    def matching(self, patterns: Iterable[TopicPattern], names: Sequence[str]) -> dict[TopicPattern, frozenset[str]]:
        """Those names that match each pattern as a whole, as in Apache Kafka, and that its client may know of."""
        authorizer = self._authorizer
        by_host = authorizer is not None and not authorizer.is_same_for_all_hosts(ResourceType.TOPIC)
        by_text: dict[str, frozenset[str]] = {}
        by_client: dict[tuple[str, str, str], frozenset[str]] = {}
        found: dict[TopicPattern, frozenset[str]] = {}
        for pattern in patterns:
            text, principal, host = pattern
            if text not in by_text:
                matches = _compiled(text).fullmatch
                by_text[text] = frozenset(name for name in names if matches(name) is not None)
            client = text, principal, host if by_host else ""
            if client not in by_client:
                named = by_text[text]
                by_client[client] = named if authorizer is None else _known(authorizer, pattern, named)
            found[pattern] = by_client[client]
        return found


def _known(authorizer: Authorizer, pattern: TopicPattern, names: Iterable[str]) -> frozenset[str]:
    return frozenset(
        name
        for name in names
        if authorizer.may(pattern.principal, pattern.host, Operation.DESCRIBE, ResourceType.TOPIC, name)
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
    if not text:
        return EMPTY_PATTERN
    _compiled(text)
    return TopicPattern(text, call.client.principal, call.client.host)
