"""Schemas through the Python client's own classes."""

from collections.abc import Callable
from typing import Any

import pulsar
import pytest
from pulsar.schema import (
    Array,
    AvroSchema,
    Boolean,
    BytesSchema,
    Double,
    Integer,
    JsonSchema,
    Map,
    Record,
    String,
    StringSchema,
)

from tests.conformance.pulsar_client.conftest import publish, receive, subscribe, values
from tests.support.pulsar_admin import administer
from tests.support.server_process import ServerProcess

Another = Callable[..., Any]
Unique = Callable[[str], str]


class Address(Record):  # type: ignore[misc]  # the package has no types
    street = String()
    number = Integer()


class User(Record):  # type: ignore[misc]
    _avro_namespace = "tests"
    name = String(required=True)
    age = Integer(default=7)
    score = Double()
    active = Boolean()
    tags = Array(String())
    more = Map(String())
    address = Address()


class Renamed(Record):  # type: ignore[misc]
    _avro_namespace = "tests"
    other = String(required=True)


class Small(Record):  # type: ignore[misc]
    _avro_namespace = "tests"
    name = String(required=True)


def later_version() -> Any:
    """The next version of the record: Avro knows it again by its name."""

    class Small(Record):  # type: ignore[misc]
        _avro_namespace = "tests"
        name = String(required=True)
        email = String(default="none", required=True, required_default=True)

    return Small


def user() -> User:
    return User(
        name="Ada", age=36, score=1.5, active=True, tags=["a", "b"], more={"k": "v"},
        address=Address(street="Main", number=1),
    )  # fmt: skip


@pytest.mark.parametrize("kind", [JsonSchema, AvroSchema])
@pytest.mark.parametrize("batching", [False, True])
def test_records(client: Any, unique: Unique, kind: Any, batching: bool) -> None:
    topic = unique("records")
    producer = client.create_producer(topic, schema=kind(User), batching_enabled=batching)
    producer.send(user())
    message = receive(subscribe(client, topic, schema=kind(User)), 1)[0]
    assert message.value().__dict__ == user().__dict__
    assert message.schema_version().encode() == bytes(8)


@pytest.mark.parametrize(("schema", "value"), [(StringSchema(), "tëxt"), (BytesSchema(), b"\x00\xff")])
def test_simple_schemas(client: Any, unique: Unique, schema: Any, value: Any) -> None:
    topic = unique("simple")
    client.create_producer(topic, schema=schema).send(value)
    assert receive(subscribe(client, topic, schema=schema), 1)[0].value() == value


def test_the_schema_of_a_topic_is_what_was_registered(
    client: Any, pulsar_broker: ServerProcess, unique: Unique
) -> None:
    topic = unique("registered")
    client.create_producer(topic, schema=AvroSchema(Small))
    found = administer(pulsar_broker.addresses["any"], "GET", f"schemas/public/default/{topic}/schema")
    assert (found["type"], found["version"]) == ("AVRO", 0)
    assert '"Small"' in found["data"]


def test_versions(client: Any, another: Another, pulsar_broker: ServerProcess, unique: Unique) -> None:
    """A second one that is compatible is version 1; a message says by which it was written."""
    topic = f"persistent://public/{unique('versions')}/t"
    space = topic.split("/")[3]
    administer(pulsar_broker.addresses["any"], "PUT", f"namespaces/public/{space}")
    grown = later_version()
    first = client.create_producer(topic, schema=AvroSchema(Small))
    second = another().create_producer(topic, schema=AvroSchema(grown))
    again = another().create_producer(topic, schema=AvroSchema(Small))
    first.send(Small(name="one"))
    second.send(grown(name="two", email="a@b"))
    again.send(Small(name="three"))
    messages = receive(subscribe(client, topic, schema=AvroSchema(grown)), 3)
    assert [int.from_bytes(message.schema_version().encode()) for message in messages] == [0, 1, 0]
    assert [(message.value().name, message.value().email) for message in messages] == [
        ("one", "none"),
        ("two", "a@b"),
        ("three", "none"),
    ]


def test_what_is_not_compatible_is_refused_at_once(client: Any, unique: Unique) -> None:
    topic = unique("incompatible")
    client.create_producer(topic, schema=AvroSchema(Small)).send(Small(name="x"))
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic, schema=AvroSchema(Renamed))
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic, schema=StringSchema())
    with pytest.raises(pulsar.IncompatibleSchema):
        subscribe(client, topic, schema=StringSchema())
    with pytest.raises(pulsar.IncompatibleSchema):
        subscribe(client, topic, schema=JsonSchema(Small))
    # Whoever says nothing of what it writes is believed.
    publish(client, topic, [b"anything"])


def test_a_namespace_may_want_schemas(client: Any, pulsar_broker: ServerProcess, unique: Unique) -> None:
    address, space = pulsar_broker.addresses["any"], f"public/{unique('enforced')}"
    administer(address, "PUT", f"namespaces/{space}")
    administer(address, "POST", f"namespaces/{space}/schemaValidationEnforced", True)
    topic = f"persistent://{space}/t"
    client.create_producer(topic).send(b"there is none yet")
    client.create_producer(topic, schema=StringSchema()).send("text")
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic)


def test_a_namespace_says_what_is_compatible(client: Any, pulsar_broker: ServerProcess, unique: Unique) -> None:
    address = pulsar_broker.addresses["any"]
    for strategy, allowed in (("ALWAYS_COMPATIBLE", True), ("ALWAYS_INCOMPATIBLE", False)):
        space = f"public/{unique('strategy')}"
        administer(address, "PUT", f"namespaces/{space}")
        administer(address, "PUT", f"namespaces/{space}/schemaCompatibilityStrategy", strategy)
        topic = f"persistent://{space}/t"
        client.create_producer(topic, schema=AvroSchema(Small))
        if allowed:
            client.create_producer(topic, schema=AvroSchema(Renamed)).send(Renamed(other="x"))
        else:
            with pytest.raises(pulsar.IncompatibleSchema):
                client.create_producer(topic, schema=AvroSchema(later_version()))


def test_what_no_schema_knows_is_read_by_those_without_one(client: Any, unique: Unique) -> None:
    topic = unique("plain")
    client.create_producer(topic, schema=StringSchema()).send("text")
    assert values(receive(subscribe(client, topic), 1)) == [b"text"]
