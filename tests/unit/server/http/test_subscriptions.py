"""Subscriptions over HTTP: making and deleting them, and moving their cursors."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.server.http.admin import Admin, produce

Unique = Callable[[str], str]


@pytest.fixture
def topic(admin: Admin, unique: Unique) -> str:
    name = unique("subscribed")
    admin.done("PUT", f"~/{name}")
    produce(admin.broker, name, 10)
    return name


def figures(admin: Admin, topic: str, subscription: str = "s") -> Any:
    return admin("GET", f"~/{topic}/stats")["subscriptions"][subscription]


def backlog(admin: Admin, topic: str, subscription: str = "s") -> int:
    return int(figures(admin, topic, subscription)["msgBacklog"])


def id_of(admin: Admin, topic: str, entry: int, **more: Any) -> dict[str, Any]:
    last = admin("GET", f"~/{topic}/lastMessageId")
    return {**last, "entryId": entry, **more}


def test_a_subscription_begins_at_the_end_or_where_it_is_told(admin: Admin, topic: str) -> None:
    admin.done("PUT", f"~/{topic}/subscription/s")
    admin.done("PUT", f"~/{topic}/subscription/first", {"ledgerId": -1, "entryId": -1, "partitionIndex": -1})
    admin.done("PUT", f"~/{topic}/subscription/last", {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1})
    admin.done("PUT", f"~/{topic}/subscription/third", id_of(admin, topic, 3))
    assert admin("GET", f"~/{topic}/subscriptions") == ["first", "last", "s", "third"]
    assert [backlog(admin, topic, name) for name in ("s", "first", "last", "third")] == [0, 10, 0, 7]
    admin.refused(409, "PUT", f"~/{topic}/subscription/s")
    admin.done("DELETE", f"~/{topic}/subscription/s")
    admin.refused(404, "DELETE", f"~/{topic}/subscription/s")
    assert admin("GET", f"~/{topic}/subscriptions") == ["first", "last", "third"]


def test_a_cursor_is_moved_to_a_message(admin: Admin, topic: str) -> None:
    admin.done("PUT", f"~/{topic}/subscription/s")
    path = f"~/{topic}/subscription/s/resetcursor"
    for message_id, left in (
        (id_of(admin, topic, 4), 6),
        (id_of(admin, topic, 4, isExcluded=True), 5),
        (id_of(admin, topic, 4, batchIndex=0, isExcluded=True), 5),
        (id_of(admin, topic, 1, batchIndex=2), 7),
        ({"ledgerId": -1, "entryId": -1}, 10),
        ({"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}, 0),
        ({"ledgerId": 1, "entryId": 5}, 10),
        (id_of(admin, topic, 100, isExcluded=True), 0),
    ):
        admin.done("POST", path, message_id)
        assert backlog(admin, topic) == left, message_id
    admin.refused(400, "POST", path, {"ledgerId": "1"})
    admin.refused(400, "POST", path, [1])
    admin.refused(404, "POST", f"~/{topic}/subscription/nobody/resetcursor", {})


def test_a_cursor_is_moved_to_a_time(admin: Admin, topic: str) -> None:
    admin.done("PUT", f"~/{topic}/subscription/s")
    admin.done("POST", f"~/{topic}/subscription/s/resetcursor/1")
    assert backlog(admin, topic) == 10
    admin.done("POST", f"~/{topic}/subscription/s/resetcursor/{2**62}")
    assert backlog(admin, topic) == 0
    admin.refused(400, "POST", f"~/{topic}/subscription/s/resetcursor/yesterday")
    admin.refused(400, "POST", f"~/{topic}/subscription/s/resetcursor/{2**80}")


def test_messages_are_skipped(admin: Admin, topic: str) -> None:
    admin.done("PUT", f"~/{topic}/subscription/s", {"ledgerId": -1, "entryId": -1})
    admin.done("POST", f"~/{topic}/subscription/s/skip/3")
    assert backlog(admin, topic) == 7
    admin.done("POST", f"~/{topic}/subscription/s/skip_all")
    assert backlog(admin, topic) == 0
    admin.done("POST", f"~/{topic}/subscription/s/skip/100")
    admin.refused(400, "POST", f"~/{topic}/subscription/s/skip/0")


def test_old_messages_expire(admin: Admin, topic: str) -> None:
    for name in ("s", "t"):
        admin.done("PUT", f"~/{topic}/subscription/{name}", {"ledgerId": -1, "entryId": -1})
    admin.done("POST", f"~/{topic}/subscription/s/expireMessages/1000")
    assert backlog(admin, topic) == 10
    admin.done("POST", f"~/{topic}/subscription/s/expireMessages/0")
    assert (backlog(admin, topic), figures(admin, topic)["totalMsgExpired"]) == (0, 10)
    admin.done("POST", f"~/{topic}/all_subscription/expireMessages/0")
    assert backlog(admin, topic, "t") == 0


def test_a_partitioned_topic_has_the_subscription_in_each_partition(admin: Admin, unique: Unique) -> None:
    name = unique("parts")
    admin.done("PUT", f"~/{name}/partitions", 2)
    for partition in (0, 1):
        produce(admin.broker, name, 4, partition)
    admin.done("PUT", f"~/{name}/subscription/s", {"ledgerId": -1, "entryId": -1})
    total = admin("GET", f"~/{name}/partitioned-stats?perPartition=false")
    assert (total["subscriptions"]["s"]["msgBacklog"], total["msgInCounter"], total["partitions"]) == (8, 8, {})
    admin.done("POST", f"~/{name}-partition-0/subscription/s/skip/1")
    admin.refused(404, "POST", f"~/{name}/subscription/s/skip/1")
    admin.refused(404, "POST", f"~/{name}/subscription/s/resetcursor", {})
    each = admin("GET", f"~/{name}/partitioned-stats")["partitions"]
    assert [one["subscriptions"]["s"]["msgBacklog"] for one in each.values()] == [3, 4]
    internal = admin("GET", f"~/{name}/partitioned-internalStats")["partitions"]
    assert [one["numberOfEntries"] for one in internal.values()] == [4, 4]
    admin.done("POST", f"~/{name}/subscription/s/skip_all")
    assert admin("GET", f"~/{name}/partitioned-stats")["subscriptions"]["s"]["msgBacklog"] == 0
    admin.done("DELETE", f"~/{name}/subscription/s")
    assert admin("GET", f"~/{name}/subscriptions") == []


def test_names_of_subscriptions_are_decoded(admin: Admin, topic: str) -> None:
    admin.done("PUT", f"~/{topic}/subscription/a%2Fb%20c")
    assert admin("GET", f"~/{topic}/subscriptions") == ["a/b c"]
    admin.done("DELETE", f"~/{topic}/subscription/a%2Fb%20c")


def test_the_figures_of_a_topic(admin: Admin, topic: str) -> None:
    admin.done("PUT", f"~/{topic}/subscription/s", {"ledgerId": -1, "entryId": -1})
    stats = admin("GET", f"~/{topic}/stats")
    assert (stats["msgInCounter"], stats["publishers"]) == (10, [])
    assert stats["storageSize"] == stats["bytesInCounter"] == stats["backlogSize"] > 0
    assert stats["averageMsgSize"] == stats["storageSize"] / 10
    assert (stats["subscriptions"]["s"]["type"], stats["subscriptions"]["s"]["consumers"]) == (None, [])
    assert stats["deduplicationStatus"] == "Disabled"
    internal = admin("GET", f"~/{topic}/internalStats")
    ledger = internal["ledgers"][0]["ledgerId"]
    assert (internal["numberOfEntries"], internal["lastConfirmedEntry"]) == (10, f"{ledger}:9")
    assert internal["cursors"]["s"]["markDeletePosition"] == f"{ledger}:-1"
