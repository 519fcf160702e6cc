"""The topics in what a consumer says of itself, and that nothing else in it does harm."""

import pytest

from millstream.sessions.kafka.consumer_subscription import subscribed_topics

V0 = bytes.fromhex("0000 00000002 0001 61 0002 c3a4 ffffffff")
V3 = bytes.fromhex("0003 00000001 0001 61 ffffffff 00000000 00000005 ffff")


def test_topics_of_all_versions() -> None:
    assert subscribed_topics(V0) == {"a", "ä"}
    assert subscribed_topics(V3) == {"a"}
    assert subscribed_topics(bytes.fromhex("0000 00000000")) == set()


@pytest.mark.parametrize("cut", range(13))
def test_what_is_cut_off_has_no_topics_that_are_not_there(cut: int) -> None:
    assert subscribed_topics(V0[:cut]) <= {"a", "ä", "", "\x00"}


@pytest.mark.parametrize(
    "rubbish",
    [
        b"",
        b"x",
        b"\xff" * 40,
        bytes.fromhex("0000 7fffffff 0001 61"),
        bytes.fromhex("0000 00000001 0001 ff"),
        bytes.fromhex("0000 7fffffff fffe"),  # a length that leads back to itself: this would never end
    ],
)
def test_what_is_no_subscription_has_no_topics(rubbish: bytes) -> None:
    assert subscribed_topics(rubbish) == set()
