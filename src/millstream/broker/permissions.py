"""What a user may do: everywhere, in a stream, in a topic.

A right to manage implies the right to read; a right in a stream holds in all its topics.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from itertools import repeat
from typing import Any

__all__ = ["Action", "Everywhere", "InStream", "InTopic", "Permissions", "may"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Everywhere:
    """Rights everywhere."""

    manage_servers: bool = False
    read_servers: bool = False
    manage_users: bool = False
    read_users: bool = False
    manage_streams: bool = False
    read_streams: bool = False
    manage_topics: bool = False
    read_topics: bool = False
    poll_messages: bool = False
    send_messages: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InTopic:
    """Rights in one topic."""

    manage_topic: bool = False
    read_topic: bool = False
    poll_messages: bool = False
    send_messages: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InStream:
    """Rights in one stream, and in its topics by their numbers."""

    manage_stream: bool = False
    read_stream: bool = False
    manage_topics: bool = False
    read_topics: bool = False
    poll_messages: bool = False
    send_messages: bool = False
    topics: Mapping[int, InTopic] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """All rights of a user; of streams by their numbers."""

    everywhere: Everywhere = Everywhere()
    streams: Mapping[int, InStream] = field(default_factory=dict)

    @classmethod
    def all(cls) -> "Permissions":
        """Every right there is."""
        return cls(everywhere=Everywhere(**dict.fromkeys(Everywhere.__slots__, True)))

    def document(self) -> dict[str, Any]:
        """What is stored of it."""
        return asdict(self)

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> "Permissions":
        """Read back what was stored; the numbers were made text on the way."""
        streams = {}
        for number, rights in document["streams"].items():
            topics = {int(topic): InTopic(**one) for topic, one in rights["topics"].items()}
            streams[int(number)] = InStream(**{**rights, "topics": topics})
        return cls(everywhere=Everywhere(**document["everywhere"]), streams=streams)


class Action(Enum):
    """What somebody may do. The values are the rights that allow it: everywhere, in its stream, in its topic."""

    READ_SERVER = ("manage_servers read_servers", "", "")
    READ_USERS = ("manage_users read_users", "", "")
    MANAGE_USERS = ("manage_users", "", "")
    LIST_STREAMS = ("manage_streams read_streams", "", "")
    CREATE_STREAM = ("manage_streams", "", "")
    READ_STREAM = ("manage_streams read_streams", "manage_stream read_stream", "")
    MANAGE_STREAM = ("manage_streams", "manage_stream", "")
    LIST_TOPICS = (
        "manage_streams read_streams manage_topics read_topics",
        "manage_stream read_stream manage_topics read_topics",
        "",
    )
    CREATE_TOPIC = ("manage_streams manage_topics", "manage_stream manage_topics", "")
    READ_TOPIC = (
        "manage_streams read_streams manage_topics read_topics",
        "manage_stream read_stream manage_topics read_topics",
        "manage_topic read_topic",
    )
    MANAGE_TOPIC = ("manage_streams manage_topics", "manage_stream manage_topics", "manage_topic")
    POLL = (
        "manage_streams read_streams manage_topics read_topics poll_messages",
        "manage_stream read_stream manage_topics read_topics poll_messages",
        "manage_topic read_topic poll_messages",
    )
    SEND = (
        "manage_streams manage_topics send_messages",
        "manage_stream manage_topics send_messages",
        "manage_topic send_messages",
    )

    def __init__(self, everywhere: str, in_stream: str, in_topic: str) -> None:
        self.everywhere = tuple(everywhere.split())
        self.in_stream = tuple(in_stream.split())
        self.in_topic = tuple(in_topic.split())


def may(permissions: Permissions, action: Action, stream: int | None = None, topic: int | None = None) -> bool:
    """Whether rights allow an action.

    Args:
        permissions: somebody's.
        action: what is to be done.
        stream, topic: where, by number; None where that does not matter.
    """
    if _has_any(permissions.everywhere, action.everywhere):
        return True
    in_stream = permissions.streams.get(-1 if stream is None else stream)
    if in_stream is None:
        return False
    if _has_any(in_stream, action.in_stream):
        return True
    in_topic = in_stream.topics.get(-1 if topic is None else topic)
    return in_topic is not None and _has_any(in_topic, action.in_topic)


def _has_any(rights: object, names: tuple[str, ...]) -> bool:
    """Whether any of the rights of some names is given."""
    return any(map(getattr, repeat(rights), names))
