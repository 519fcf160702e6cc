"""The names that Kafka allows for topics."""

import pytest

from millstream.broker.errors import InvalidTopicName
from millstream.sessions.kafka.names import check_topic_name


@pytest.mark.parametrize("name", ["a", "orders", "Orders-2_final.v1", "...", "-", "x" * 249, "__consumer_offsets"])
def test_allowed(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        (".", "cannot be named"),
        ("..", "cannot be named"),
        ("x" * 250, "250 characters"),
        ("a b", "other characters"),
        ("späti", "other characters"),
        ("a/b", "other characters"),
        ("a\n", "other characters"),
        ("١", "other characters"),  # a digit, but not of ASCII
    ],
)
def test_refused(name: str, reason: str) -> None:
    with pytest.raises(InvalidTopicName, match=reason):
        check_topic_name(name)
