"""What SUBSCRIBE asks for, and what a namespace allows."""

from typing import Any

import pytest

from millstream.broker.subscriptions import SubscriptionKind
from millstream.sessions.pulsar.errors import NotAllowed
from millstream.sessions.pulsar.subscribe_request import KINDS, check_subscribe, key_shared_policy
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandError,
    CommandSubscribe,
    CommandSuccess,
    IntRange,
    KeySharedMeta,
    KeySharedMode,
    ServerError,
)
from tests.unit.sessions.pulsar.conversation import ConsumingConversation


def test_there_is_a_kind_for_each_of_the_protocols() -> None:
    assert set(KINDS) == set(CommandSubscribe.SubType.values())
    assert set(KINDS.values()) == set(SubscriptionKind)


@pytest.mark.parametrize("count", [1024, 1025])
def test_how_many_ranges_of_keys_there_may_be(count: int) -> None:
    ranges = [IntRange(start=number, end=number) for number in range(count)]
    command = CommandSubscribe(
        topic="orders",
        subscription="s",
        subType=CommandSubscribe.Key_Shared,
        consumer_id=1,
        request_id=1,
        keySharedMeta=KeySharedMeta(keySharedMode=KeySharedMode.STICKY, hashRanges=ranges),
    )
    if count > 1024:
        with pytest.raises(NotAllowed):
            check_subscribe(command)
    else:
        check_subscribe(command)
        assert key_shared_policy(command.keySharedMeta).sticky_ranges == tuple((n, n) for n in range(count))


def test_ranges_count_only_where_keys_stick() -> None:
    meta = KeySharedMeta(keySharedMode=KeySharedMode.AUTO_SPLIT, allowOutOfOrderDelivery=True)
    policy = key_shared_policy(meta)
    assert (policy.sticky_ranges, policy.allow_out_of_order) == (None, True)


def limited(**policies: Any) -> ConsumingConversation:
    """A broker whose default namespace has limits."""
    broker = ConsumingConversation.with_topic()
    namespaces = broker.broker.namespaces
    broker.wait(namespaces.set_policies(namespaces.get("public", "default"), **policies))
    return broker


def refusal(answer: object) -> Any:
    """The code of a refusal, None for a success."""
    if isinstance(answer, CommandSuccess):
        return None
    assert isinstance(answer, CommandError)
    return answer.error


@pytest.mark.parametrize(
    ("policies", "second", "third"),
    [
        ({"consumers_per_topic_max": 1}, ServerError.ConsumerBusy, ServerError.ConsumerBusy),
        ({"consumers_per_subscription_max": 1}, ServerError.ConsumerBusy, None),
        ({"subscriptions_per_topic_max": 1}, None, ServerError.NotAllowedError),
        ({}, None, None),
    ],
)
def test_limits_of_a_namespace(policies: dict[str, Any], second: Any, third: Any) -> None:
    client = limited(**policies).consumer()
    shared = CommandSubscribe.Shared
    assert refusal(client.subscribe(subscription="a", consumer_id=1, subType=shared)) is None
    assert refusal(client.subscribe(subscription="a", consumer_id=2, subType=shared)) == second
    assert refusal(client.subscribe(subscription="b", consumer_id=3, subType=shared)) == third


def test_a_namespace_where_subscriptions_are_made_by_hand() -> None:
    broker = limited(auto_subscription_creation=False)
    client = broker.consumer()
    assert refusal(client.subscribe()) == ServerError.SubscriptionNotFound
    broker.wait(broker.broker.subscriptions.create(broker.topic(), 0, "s", 0))
    assert refusal(client.subscribe()) is None
