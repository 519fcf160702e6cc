"""The policies of a single topic, which are its settings in every protocol."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.unit.server.http.admin import Admin

Unique = Callable[[str], str]


@pytest.fixture
def topic(admin: Admin, unique: Unique) -> str:
    name = unique("policies")
    admin.done("PUT", f"~/{name}")
    return name


def configs_of(admin: Admin, topic: str) -> dict[str, str]:
    """What a Kafka client is told."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    kafka: Any = AdminClient({"bootstrap.servers": admin.broker.kafka})
    found = kafka.describe_configs([resource])[resource].result(10)
    return {name: entry.value for name, entry in found.items()}


def test_retention(admin: Admin, topic: str) -> None:
    admin.done("GET", f"~/{topic}/retention")
    week = {"retentionTimeInMinutes": 7 * 24 * 60, "retentionSizeInMB": -1}
    assert admin("GET", f"~/{topic}/retention?applied=true") == week
    admin.done("POST", f"~/{topic}/retention", {"retentionTimeInMinutes": 3, "retentionSizeInMB": 2})
    configs = configs_of(admin, topic)
    assert (configs["retention.ms"], configs["retention.bytes"]) == ("180000", "2097152")
    assert admin("GET", f"~/{topic}/retention") == {"retentionTimeInMinutes": 3, "retentionSizeInMB": 2}
    admin.done("POST", f"~/{topic}/retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
    assert admin("GET", f"~/{topic}/retention") == {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    admin.refused(412, "POST", f"~/{topic}/retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 5})
    admin.done("DELETE", f"~/{topic}/retention")
    admin.done("GET", f"~/{topic}/retention")
    admin.refused(404, "GET", "~/nobody-s/retention")


def test_what_the_namespace_says_counts_where_the_topic_says_nothing(admin: Admin, topic: str) -> None:
    policies = "/admin/v2/namespaces/public/default/retention"
    admin.done("POST", policies, {"retentionTimeInMinutes": 5, "retentionSizeInMB": 6})
    try:
        applied = admin("GET", f"~/{topic}/retention?applied=true")
        assert applied == {"retentionTimeInMinutes": 5, "retentionSizeInMB": 6}
        admin.done("GET", f"~/{topic}/retention")
    finally:
        admin.done("DELETE", policies)


def test_the_largest_message(admin: Admin, topic: str) -> None:
    admin.done("GET", f"~/{topic}/maxMessageSize")
    assert admin("GET", f"~/{topic}/maxMessageSize?applied=true") == 1048588
    admin.done("POST", f"~/{topic}/maxMessageSize", 5000)
    assert admin("GET", f"~/{topic}/maxMessageSize") == 5000
    assert configs_of(admin, topic)["max.message.bytes"] == "5000"
    admin.refused(412, "POST", f"~/{topic}/maxMessageSize", -1)
    admin.refused(400, "POST", f"~/{topic}/maxMessageSize", "much")
    admin.done("DELETE", f"~/{topic}/maxMessageSize")
    admin.done("GET", f"~/{topic}/maxMessageSize")
