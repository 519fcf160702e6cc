"""Tenants, namespaces and their policies over HTTP."""

from collections.abc import Callable
from typing import Any

import pytest

from millstream.broker.namespaces import Policies
from millstream.server.http.policies import POLICIES
from millstream.server.http.policy_forms import policies_form, read_policies
from tests.unit.server.http.admin import Admin

Unique = Callable[[str], str]
TENANTS, SPACES = "/admin/v2/tenants", "/admin/v2/namespaces"


@pytest.fixture
def space(admin: Admin, unique: Unique) -> str:
    path = f"{SPACES}/public/{unique('space')}"
    admin.done("PUT", path)
    return path


def test_a_tenant_is_made_changed_and_deleted(admin: Admin, unique: Unique) -> None:
    name = unique("acme")
    path = f"{TENANTS}/{name}"
    admin.done("PUT", path, {"adminRoles": ["ada"], "allowedClusters": ["standalone"]})
    assert name in admin("GET", TENANTS)
    assert admin("GET", path) == {"adminRoles": ["ada"], "allowedClusters": ["standalone"]}
    admin.refused(409, "PUT", path)
    admin.done("POST", path, {"adminRoles": ["bob"]})
    assert admin("GET", path)["adminRoles"] == ["bob"]
    assert admin("GET", f"{SPACES}/{name}") == []
    admin.done("DELETE", path)
    for method, body in (("GET", None), ("POST", {}), ("DELETE", None)):
        admin.refused(404, method, path, body)
    admin.refused(404, "GET", f"{SPACES}/{name}")


def test_tenants_that_are_refused(admin: Admin) -> None:
    admin.refused(412, "PUT", f"{TENANTS}/a%20b")
    admin.refused(412, "PUT", f"{TENANTS}/a%2Fb")
    admin.refused(412, "PUT", f"{TENANTS}/acme", {"allowedClusters": ["elsewhere"]})
    admin.refused(400, "PUT", f"{TENANTS}/acme", {"adminRoles": "ada"})
    admin.refused(400, "PUT", f"{TENANTS}/acme", [])
    admin.refused(409, "DELETE", f"{TENANTS}/public")


def test_a_namespace_is_made_and_deleted(admin: Admin, unique: Unique) -> None:
    name = f"public/{unique('sales')}"
    admin.done("PUT", f"{SPACES}/{name}", {"message_ttl_in_seconds": 5, "something": "else"})
    assert name in admin("GET", f"{SPACES}/public")
    assert admin("GET", f"{SPACES}/{name}")["message_ttl_in_seconds"] == 5
    assert admin("GET", f"{SPACES}/{name}/bundles")["numBundles"] == 1
    assert admin("GET", f"{SPACES}/{name}/replication") == ["standalone"]
    admin.refused(409, "PUT", f"{SPACES}/{name}")
    admin.done("PUT", f"/admin/v2/persistent/{name}/t")
    assert admin("GET", f"{SPACES}/{name}/topics") == [f"persistent://{name}/t"]
    assert admin("GET", f"{SPACES}/{name}/topics?mode=ALL") == [f"persistent://{name}/t"]
    assert admin("GET", f"{SPACES}/{name}/topics?mode=NON_PERSISTENT") == []
    admin.refused(400, "GET", f"{SPACES}/{name}/topics?mode=OTHER")
    admin.refused(409, "DELETE", f"{SPACES}/{name}")
    admin.done("DELETE", f"{SPACES}/{name}?force=true")
    admin.refused(404, "GET", f"{SPACES}/{name}")
    admin.refused(404, "PUT", f"{SPACES}/nobody/sales")
    admin.refused(409, "DELETE", f"{SPACES}/public/default")


def test_a_tenant_is_deleted_with_all_that_is_in_it(admin: Admin, unique: Unique) -> None:
    name = unique("whole")
    admin.done("PUT", f"{TENANTS}/{name}")
    admin.done("PUT", f"{SPACES}/{name}/a")
    admin.done("PUT", f"/admin/v2/persistent/{name}/a/t/partitions", 2)
    admin.refused(409, "DELETE", f"{TENANTS}/{name}")
    admin.done("DELETE", f"{TENANTS}/{name}?force=true")
    assert name not in admin("GET", TENANTS)


VALUES: dict[str, tuple[Any, Any]] = {
    # what is set by each path, and something it refuses
    "deduplication": (True, 1),
    "retention": ({"retentionTimeInMinutes": 60, "retentionSizeInMB": -1}, {"retentionTimeInMinutes": "x"}),
    "messageTTL": (30, True),
    "schemaCompatibilityStrategy": ("BACKWARD_TRANSITIVE", 7),
    "schemaValidationEnforced": (True, "true"),
    "isAllowAutoUpdateSchema": (False, 0),
    "autoTopicCreation": (
        {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3},
        {"allowAutoTopicCreation": "yes"},
    ),
    "autoSubscriptionCreation": ({"allowAutoSubscriptionCreation": False}, {"allowAutoSubscriptionCreation": 1}),
}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.path)
def test_each_policy_is_set_shown_and_taken_back(admin: Admin, space: str, policy: Any) -> None:
    path = f"{space}/{policy.path}"
    value, wrong = VALUES.get(policy.path, (5, "five"))
    unset = admin("GET", path)
    assert admin.status == (204 if unset is None else 200)
    admin.refused(400, policy.verb, path, wrong)
    admin.done(policy.verb, path, value)
    assert admin("GET", path) == value
    if policy.removable:
        admin.done("DELETE", path)
        assert admin("GET", path) == unset
    else:
        admin.refused(405, "DELETE", path)
    admin.refused(404, "GET", f"{SPACES}/public/nowhere/{policy.path}")


@pytest.mark.parametrize(
    ("path", "verb", "body"),
    [
        ("messageTTL", "POST", -1),
        ("retention", "POST", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 5}),
        ("schemaCompatibilityStrategy", "PUT", "SOMETIMES"),
        ("autoTopicCreation", "POST", {"topicType": "other"}),
        ("autoTopicCreation", "POST", {"topicType": "partitioned", "defaultNumPartitions": 0}),
        ("backlogQuota", "POST", {"limitSize": 5, "policy": "panic"}),
        ("backlogQuota?backlogQuotaType=other", "POST", {"limitSize": 5, "policy": "producer_exception"}),
        ("replication", "POST", ["elsewhere"]),
    ],
)
def test_policies_that_nothing_can_have(admin: Admin, space: str, path: str, verb: str, body: Any) -> None:
    admin.refused(412, verb, f"{space}/{path}", body)


def test_undefined_stands_for_the_default(admin: Admin, space: str) -> None:
    admin.done("PUT", f"{space}/schemaCompatibilityStrategy", "UNDEFINED")
    assert admin("GET", f"{space}/schemaCompatibilityStrategy") == "FULL"


def test_backlog_quotas(admin: Admin, space: str) -> None:
    admin.done("POST", f"{space}/backlogQuota", {"limitSize": 1000, "policy": "producer_exception"})
    old = {"limit": 7, "limitTime": 60, "policy": "consumer_backlog_eviction"}
    admin.done("POST", f"{space}/backlogQuota?backlogQuotaType=message_age", old)
    quotas = admin("GET", f"{space}/backlogQuotaMap")
    assert quotas["destination_storage"]["limitSize"] == 1000
    assert (quotas["message_age"]["limitSize"], quotas["message_age"]["limitTime"]) == (7, 60)
    admin.done("DELETE", f"{space}/backlogQuota?backlogQuotaType=message_age")
    assert list(admin("GET", f"{space}/backlogQuotaMap")) == ["destination_storage"]


def test_permissions_are_kept(admin: Admin, space: str) -> None:
    admin.done("POST", f"{space}/permissions/ada", ["produce", "consume"])
    assert admin("GET", f"{space}/permissions") == {"ada": ["produce", "consume"]}
    admin.done("POST", f"{space}/permissions/a%2Fb%20c", ["produce"])
    assert admin("GET", f"{space}/permissions")["a/b c"] == ["produce"]
    admin.done("DELETE", f"{space}/permissions/a%2Fb%20c")
    admin.refused(400, "POST", f"{space}/permissions/ada", "produce")
    admin.done("DELETE", f"{space}/permissions/ada")
    assert admin("GET", f"{space}/permissions") == {}


def test_what_a_namespace_shows_makes_another_like_it(admin: Admin, space: str, unique: Unique) -> None:
    for policy in POLICIES:
        admin.done(policy.verb, f"{space}/{policy.path}", VALUES.get(policy.path, (5, None))[0])
    admin.done("POST", f"{space}/backlogQuota", {"limitSize": 1000, "policy": "producer_exception"})
    shown = admin("GET", space)
    other = f"{SPACES}/public/{unique('copy')}"
    admin.done("PUT", other, shown)
    assert admin("GET", other) == shown
    assert policies_form(read_policies(shown)) == shown
    assert read_policies({}) == Policies()
