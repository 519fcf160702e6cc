"""The C++ client with an http:// service URL: it looks topics, partitions and schemas up over HTTP."""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pulsar
import pytest
from pulsar.schema import Integer, JsonSchema, Record, String

from tests.conformance.pulsar_http.conftest import TIMEOUT_MS

Connect = Callable[[], Any]
Unique = Callable[[str], str]


class User(Record):  # type: ignore[misc]  # the package has no types
    name = String()
    age = Integer()


class Admin:
    """Calls the HTTP API as scripts do."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.address}/admin/v2/{path}", content, method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            text = answer.read()
        return json.loads(text) if text else None


@pytest.fixture
def admin(address: str) -> Admin:
    return Admin(address)


def subscribe(client: Any, topic: Any, **settings: Any) -> Any:
    return client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest, **settings)


def await_backlog(admin: Admin, topic: str, count: int) -> Any:
    """The figures of the subscription once so many messages are left: acknowledgements are sent in groups."""
    deadline_s = time.monotonic() + 10
    while True:
        figures = admin("GET", f"persistent/public/default/{topic}/stats")["subscriptions"]["s"]
        if figures["msgBacklog"] == count or time.monotonic() > deadline_s:
            return figures
        time.sleep(0.05)


def round_trip(client: Any, topic: str, count: int = 6) -> None:
    consumer, producer = subscribe(client, topic), client.create_producer(topic)
    for number in range(count):
        producer.send(b"%d" % number)
    got = set()
    for _ in range(count):
        message = consumer.receive(TIMEOUT_MS)
        got.add(message.data())
        consumer.acknowledge(message)
    assert got == {b"%d" % number for number in range(count)}
    consumer.close()
    producer.close()


def test_a_topic_that_comes_to_be(connect: Connect, unique: Unique) -> None:
    round_trip(connect(), unique("plain"))


def test_a_partitioned_topic(connect: Connect, admin: Admin, unique: Unique) -> None:
    name = unique("parts")
    admin("PUT", f"persistent/public/default/{name}/partitions", 3)
    client = connect()
    assert len(client.get_topic_partitions(name)) == 3
    round_trip(client, name)


def test_the_old_form_of_a_name(connect: Connect, admin: Admin, unique: Unique) -> None:
    name = unique("old")
    round_trip(connect(), f"persistent://public/standalone/default/{name}")
    assert f"persistent://public/default/{name}" in admin("GET", "persistent/public/default")


def test_names_that_are_encoded(connect: Connect, admin: Admin, unique: Unique) -> None:
    name = unique("a b%c")
    round_trip(connect(), f"persistent://public/default/{name}")
    assert f"persistent://public/default/{name}" in admin("GET", "persistent/public/default")


def test_a_pattern_of_topics(connect: Connect, unique: Unique) -> None:
    stem, client = unique("pattern"), connect()
    for number in range(2):
        client.create_producer(f"{stem}-{number}").send(b"%d" % number)
    consumer = subscribe(client, re.compile(f"persistent://public/default/{stem}-.*"))
    assert {consumer.receive(TIMEOUT_MS).data() for _ in range(2)} == {b"0", b"1"}


def test_a_schema_of_an_older_version_is_fetched(connect: Connect, admin: Admin, unique: Unique) -> None:
    name, client = unique("typed"), connect()
    producer = client.create_producer(name, schema=JsonSchema(User))
    producer.send(User(name="ada", age=36))
    schema = admin("GET", f"schemas/public/default/{name}/schema")
    assert (schema["version"], schema["type"]) == (0, "JSON")
    grown = json.loads(schema["data"])
    grown["fields"].append({"name": "email", "type": ["null", "string"], "default": None})
    body = {"type": "JSON", "schema": json.dumps(grown), "properties": {}}
    assert admin("POST", f"schemas/public/default/{name}/schema", body) == {"version": {"version": 1}}
    message = subscribe(client, name, schema=JsonSchema(User)).receive(TIMEOUT_MS)
    assert (message.value().name, message.value().age) == ("ada", 36)


def test_unloading_closes_clients_that_come_back(connect: Connect, admin: Admin, unique: Unique) -> None:
    name, client = unique("unloaded"), connect()
    consumer, producer = subscribe(client, name), client.create_producer(name)
    producer.send(b"before")
    consumer.acknowledge(consumer.receive(TIMEOUT_MS))
    await_backlog(admin, name, 0)
    admin("PUT", f"persistent/public/default/{name}/unload")
    producer.send(b"after")
    message = consumer.receive(TIMEOUT_MS)
    assert message.data() == b"after"
    figures = admin("GET", f"persistent/public/default/{name}/stats")
    assert len(figures["publishers"]) == len(figures["subscriptions"]["s"]["consumers"]) == 1


def test_a_topic_in_use_is_deleted_only_by_force(connect: Connect, admin: Admin, unique: Unique) -> None:
    name, client = unique("used"), connect()
    producer = client.create_producer(name)
    with pytest.raises(urllib.error.HTTPError) as refused:
        admin("DELETE", f"persistent/public/default/{name}")
    assert refused.value.code == 412
    producer.close()
    admin("DELETE", f"persistent/public/default/{name}")
    assert f"persistent://public/default/{name}" not in admin("GET", "persistent/public/default")


def test_a_topic_deleted_by_force_comes_to_be_anew_with_its_clients(
    connect: Connect, admin: Admin, unique: Unique
) -> None:
    name, client = unique("forced"), connect()
    consumer, producer = subscribe(client, name), client.create_producer(name)
    producer.send(b"before")
    before = admin("GET", f"persistent/public/default/{name}/internalStats")["ledgers"][0]["ledgerId"]
    admin("DELETE", f"persistent/public/default/{name}?force=true")
    producer.send(b"after")
    while consumer.receive(TIMEOUT_MS).data() != b"after":
        pass
    anew = admin("GET", f"persistent/public/default/{name}/internalStats")
    assert (anew["numberOfEntries"], anew["ledgers"][0]["ledgerId"] == before) == (1, False)


def test_the_figures_of_a_consumer(connect: Connect, admin: Admin, unique: Unique) -> None:
    name, client = unique("counted"), connect()
    consumer = subscribe(client, name, consumer_type=pulsar.ConsumerType.Shared, consumer_name="ada")
    producer = client.create_producer(name)
    for number in range(5):
        producer.send(b"%d" % number)
    for _ in range(5):
        message = consumer.receive(TIMEOUT_MS)
    consumer.acknowledge(message)

    told = await_backlog(admin, name, 4)
    assert (told["type"], told["msgBacklog"], told["unackedMessages"]) == ("Shared", 4, 4)
    assert (told["consumers"][0]["consumerName"], told["consumers"][0]["msgOutCounter"]) == ("ada", 5)


def test_a_subscription_that_was_made_and_moved_over_http(connect: Connect, admin: Admin, unique: Unique) -> None:
    name, client = unique("moved"), connect()
    producer = client.create_producer(name)
    ids = [producer.send(b"%d" % number) for number in range(5)]
    path = f"persistent/public/default/{name}/subscription/s"
    admin("PUT", path)
    third = {"ledgerId": ids[3].ledger_id(), "entryId": ids[3].entry_id(), "partitionIndex": -1}
    admin("POST", f"{path}/resetcursor", third)
    assert subscribe(client, name).receive(TIMEOUT_MS).data() == b"3"


def test_a_producer_with_another_schema_is_refused_by_the_rule_over_http(
    connect: Connect, admin: Admin, unique: Unique
) -> None:
    space, client = unique("rule"), connect()
    admin("PUT", f"namespaces/public/{space}")
    admin("PUT", f"namespaces/public/{space}/schemaCompatibilityStrategy", "ALWAYS_INCOMPATIBLE")
    topic = f"public/{space}/t"
    client.create_producer(topic, schema=JsonSchema(User)).close()
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic, schema=pulsar.schema.StringSchema())


def test_a_topic_that_keeps_nothing(connect: Connect, admin: Admin, unique: Unique) -> None:
    name, client = unique("volatile"), connect()
    topic, path = f"non-persistent://public/default/{name}", f"non-persistent/public/default/{name}"
    consumer, producer = client.subscribe(topic, "s"), client.create_producer(topic)
    producer.send(b"now")
    assert consumer.receive(TIMEOUT_MS).data() == b"now"
    assert topic in admin("GET", "non-persistent/public/default")
    assert topic in admin("GET", "namespaces/public/default/topics?mode=NON_PERSISTENT")
    assert topic not in admin("GET", "namespaces/public/default/topics")
    figures = admin("GET", f"{path}/stats")
    assert (figures["msgInCounter"], figures["msgOutCounter"], len(figures["publishers"])) == (1, 1, 1)
    assert admin("GET", f"{path}/subscriptions") == ["s"]
    admin("PUT", f"{path}/unload")
    deadline_s = time.monotonic() + 10
    while not (client.get_topic_partitions(topic) and topic in admin("GET", "non-persistent/public/default")):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    consumer.close()
    producer.close()
    assert topic not in admin("GET", "non-persistent/public/default")


def test_a_namespace_that_is_not_there(connect: Connect) -> None:
    with pytest.raises(pulsar.PulsarException):
        connect().create_producer("public/nowhere/t")
