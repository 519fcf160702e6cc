"""The names that Kafka 0.7 allows for topics. Source: kafka.utils.TopicNameValidator of its 0.7 branch."""

import re
from typing import Final

from millstream.broker.errors import InvalidTopicName

__all__ = ["check_topic_name"]

_LENGTH_MAX: Final = 255
_FORBIDDEN: Final = re.compile("[/\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\uf8ff\\ufff0-\\uffff]")


def check_topic_name(name: str) -> None:
    """Check the name of a topic that is to be made.

    Raises:
        InvalidTopicName: empty, "." or "..", longer than 255 characters, or with "/", a control character or one for
            private use.
    """
    if not name:
        raise InvalidTopicName("a topic name is empty")
    if name in {".", ".."}:
        raise InvalidTopicName('a topic cannot be named "." or ".."')
    if len(name) > _LENGTH_MAX:
        raise InvalidTopicName(f"a topic name has {len(name)} characters, where {_LENGTH_MAX} are allowed")
    if _FORBIDDEN.search(name):
        raise InvalidTopicName(f'the topic name {name!r} has "/", a control character or one for private use')
