"""Topics over HTTP: making, listing, growing, deleting, terminating, compacting."""

from collections.abc import Callable
from typing import Any

from tests.unit.server.http.admin import Admin, produce

Unique = Callable[[str], str]


def test_a_topic_is_made_listed_and_deleted(admin: Admin, unique: Unique) -> None:
    name = unique("orders")
    admin.done("PUT", f"~/{name}", {"owner": "ada"})
    assert f"persistent://public/default/{name}" in admin("GET", "~")
    assert admin("GET", f"~/{name}/partitions") == {"partitions": 0, "deleted": False}
    assert admin.refused(409, "PUT", f"~/{name}") == "This topic already exists"
    admin.refused(409, "PUT", f"~/{name}/partitions", 2)
    admin.refused(409, "POST", f"~/{name}/partitions", 2)
    admin.refused(404, "DELETE", f"~/{name}/partitions")
    admin.done("DELETE", f"~/{name}")
    admin.refused(404, "DELETE", f"~/{name}")
    assert f"persistent://public/default/{name}" not in admin("GET", "~")


def test_a_partitioned_topic(admin: Admin, unique: Unique) -> None:
    name = unique("parts")
    admin.done("PUT", f"~/{name}/partitions", 2)
    assert admin("GET", f"~/{name}/partitions")["partitions"] == 2
    assert f"persistent://public/default/{name}" in admin("GET", "~/partitioned")
    parts = [f"persistent://public/default/{name}-partition-{index}" for index in range(2)]
    assert [one for one in admin("GET", "~") if name in one] == parts
    assert admin("GET", f"~/{name}-partition-1/partitions")["partitions"] == 0
    admin.refused(422, "POST", f"~/{name}/partitions", 1)
    admin.done("POST", f"~/{name}/partitions", 2)
    admin.done("POST", f"~/{name}/partitions", 3)
    admin.done("POST", f"~/{name}/createMissedPartitions")
    assert admin("GET", f"~/{name}/partitions")["partitions"] == 3
    admin.refused(409, "PUT", f"~/{name}")
    admin.refused(409, "PUT", f"~/{name}-partition-1")
    admin.refused(409, "DELETE", f"~/{name}")
    admin.refused(409, "DELETE", f"~/{name}-partition-1")
    admin.done("DELETE", f"~/{name}/partitions")
    admin.refused(404, "GET", f"~/{name}/partitions")


def test_a_partitioned_topic_may_have_one_partition(admin: Admin, unique: Unique) -> None:
    name = unique("single")
    admin.done("PUT", f"~/{name}/partitions", {"partitions": 1, "properties": {}})
    assert admin("GET", f"~/{name}/partitions")["partitions"] == 1
    assert [one for one in admin("GET", "~") if name in one] == [f"persistent://public/default/{name}-partition-0"]


def test_numbers_of_partitions_that_no_topic_has(admin: Admin, unique: Unique) -> None:
    name = unique("wrong")
    for count in (0, -1, 10**9):
        admin.refused(406, "PUT", f"~/{name}/partitions", count)
    bodies: list[Any] = ["two", True, None, 1.5, 2**70, {}]
    for body in bodies:
        admin.refused(400, "PUT", f"~/{name}/partitions", body)
    admin("PUT", f"~/{name}/partitions", raw=b"[" * 100_000)
    assert admin.status == 400
    admin.refused(412, "PUT", f"~/{name}-partition-0")
    admin.refused(412, "PUT", f"~/{name}-partition-0/partitions", 2)


def test_what_is_not_there(admin: Admin, unique: Unique) -> None:
    name = unique("nothing")
    for method, path in (
        ("GET", "stats"),
        ("GET", "internalStats"),
        ("GET", "partitioned-stats"),
        ("GET", "partitioned-internalStats"),
        ("GET", "subscriptions"),
        ("GET", "lastMessageId"),
        ("GET", "partitions"),
        ("PUT", "unload"),
        ("POST", "terminate"),
        ("POST", "terminate/partitions"),
        ("DELETE", "partitions"),
    ):
        assert name in admin.refused(404, method, f"~/{name}/{path}")
    assert "acme" in admin.refused(404, "PUT", f"/admin/v2/persistent/acme/default/{name}")
    assert "public/acme" in admin.refused(404, "GET", "/admin/v2/persistent/public/acme")


def test_who_asks_for_partitions_may_make_the_topic(admin: Admin, unique: Unique) -> None:
    space, name = unique("made"), unique("t")
    policy = f"/admin/v2/namespaces/public/{space}/autoTopicCreation"
    path = f"/admin/v2/persistent/public/{space}/{name}/partitions?checkAllowAutoCreation=true"
    admin.done("PUT", f"/admin/v2/namespaces/public/{space}")
    assert admin("GET", path)["partitions"] == 0
    admin.done("POST", policy, {"allowAutoTopicCreation": False})
    admin.refused(404, "GET", path)
    admin.done(
        "POST", policy, {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}
    )
    assert admin("GET", path)["partitions"] == 3
    assert len(admin("GET", f"/admin/v2/persistent/public/{space}")) == 3


def test_a_namespace_may_bound_its_topics(admin: Admin, unique: Unique) -> None:
    space = unique("small")
    admin.done("PUT", f"/admin/v2/namespaces/public/{space}")
    admin.done("POST", f"/admin/v2/namespaces/public/{space}/maxTopicsPerNamespace", 1)
    admin.done("PUT", f"/admin/v2/persistent/public/{space}/a")
    admin.refused(412, "PUT", f"/admin/v2/persistent/public/{space}/b")


def test_a_terminated_topic_tells_its_last_message(admin: Admin, unique: Unique) -> None:
    name = unique("ended")
    admin.done("PUT", f"~/{name}")
    assert admin("GET", f"~/{name}/lastMessageId")["entryId"] == -1
    produce(admin.broker, name, 3)
    last = admin("GET", f"~/{name}/lastMessageId")
    assert (last["entryId"], last["partitionIndex"]) == (2, -1)
    assert admin("POST", f"~/{name}/terminate") == last
    assert admin("GET", f"~/{name}/internalStats")["state"] == "Terminated"


def test_a_partitioned_topic_is_terminated_with_all_its_partitions(admin: Admin, unique: Unique) -> None:
    name = unique("ended")
    admin.done("PUT", f"~/{name}/partitions", 2)
    produce(admin.broker, name, 1, partition=1)
    admin.refused(405, "POST", f"~/{name}/terminate")
    answer = admin("POST", f"~/{name}/terminate/partitions")
    assert {index: one["entryId"] for index, one in answer.items()} == {"0": -1, "1": 0}


def test_nothing_compacts_yet_unless_something_does(admin: Admin, unique: Unique) -> None:
    name = unique("compact")
    admin.done("PUT", f"~/{name}")
    admin("GET", f"~/{name}/compaction")
    if admin.status == 501:
        admin.refused(501, "PUT", f"~/{name}/compaction")
    else:
        admin.done("PUT", f"~/{name}/compaction")


def test_topics_that_are_not_persistent_are_there_while_anybody_is_connected(admin: Admin) -> None:
    base = "/admin/v2/non-persistent/public/default"
    assert admin("GET", base) == []
    assert admin("GET", f"{base}/t/partitions")["partitions"] == 0
    admin.done("PUT", f"{base}/t")
    admin.refused(404, "GET", f"{base}/t/stats")
    admin.refused(404, "GET", "/admin/v2/non-persistent/public/nowhere/t/partitions")


def test_a_partitioned_topic_that_keeps_nothing(admin: Admin, unique: Unique) -> None:
    base, name = "/admin/v2/non-persistent/public/default", unique("volatile")
    admin.refused(409, "POST", f"{base}/{name}/partitions", 3)
    admin.refused(406, "PUT", f"{base}/{name}/partitions", 0)
    admin.refused(406, "PUT", f"{base}/{name}/partitions", 10**9)
    admin.done("PUT", f"{base}/{name}/partitions", 2)
    admin.refused(409, "PUT", f"{base}/{name}/partitions", 2)
    admin.refused(409, "PUT", f"{base}/{name}")
    assert admin("GET", f"{base}/{name}/partitions")["partitions"] == 2
    assert f"non-persistent://public/default/{name}" in admin("GET", f"{base}/partitioned")
    admin.refused(422, "POST", f"{base}/{name}/partitions", 1)
    admin.done("POST", f"{base}/{name}/partitions", 3)
    assert admin("GET", f"{base}/{name}/partitions")["partitions"] == 3
    admin.done("DELETE", f"{base}/{name}/partitions")
    admin.refused(404, "DELETE", f"{base}/{name}/partitions")
    assert admin("GET", f"{base}/{name}/partitions")["partitions"] == 0


def test_a_namespace_with_a_partitioned_topic_that_keeps_nothing(admin: Admin, unique: Unique) -> None:
    space = unique("volatile-space")
    admin.done("PUT", f"/admin/v2/namespaces/public/{space}")
    admin.done("PUT", f"/admin/v2/non-persistent/public/{space}/t/partitions", 2)
    admin.refused(409, "DELETE", f"/admin/v2/namespaces/public/{space}")
    admin.done("DELETE", f"/admin/v2/namespaces/public/{space}?force=true")
    admin.done("PUT", f"/admin/v2/namespaces/public/{space}")
    assert admin("GET", f"/admin/v2/non-persistent/public/{space}/partitioned") == []


def test_names_with_anything_in_them(admin: Admin, unique: Unique) -> None:
    name = unique("a b€")
    quoted = name.replace(" ", "%20").replace("€", "%E2%82%AC")
    admin.done("PUT", f"~/{quoted}")
    assert f"persistent://public/default/{name}" in admin("GET", "~")
    assert admin("GET", f"~/{quoted}/stats")["storageSize"] == 0
    admin.refused(412, "PUT", "~/a%2Fb")
    admin.refused(404, "PUT", "/admin/v2/persistent/pub%20lic/default/a")
    admin.refused(412, "PUT", f"~/{'x' * 2000}")


def test_a_name_that_another_topic_has_where_names_are_flat(admin: Admin, unique: Unique) -> None:
    space = unique("flat")
    admin.done("PUT", f"/admin/v2/namespaces/public/{space}")
    admin.done("PUT", f"/admin/v2/persistent/public/{space}/t")
    admin.refused(409, "PUT", f"~/{space}.t")
