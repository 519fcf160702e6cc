"""The names that Kafka allows for topics."""

import string
from typing import Final

from millstream.broker.errors import InvalidTopicName

__all__ = ["check_topic_name"]

_LENGTH_MAX: Final = 249
_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "._-")


def check_topic_name(name: str) -> None:
    """Check the name of a topic that is to be made.

    Raises:
        InvalidTopicName: empty, "." or "..", longer than 249 characters, or with other characters than ASCII
            letters and digits, ".", "_" and "-".
    """
    if not name:
        raise InvalidTopicName("a topic name is empty")
    if name in {".", ".."}:
        raise InvalidTopicName('a topic cannot be named "." or ".."')
    if len(name) > _LENGTH_MAX:
        raise InvalidTopicName(f"a topic name has {len(name)} characters, where {_LENGTH_MAX} are allowed")
    if not _CHARACTERS.issuperset(name):
        raise InvalidTopicName(f'the topic name {name!r} has other characters than ASCII letters, digits, ". _ -"')
