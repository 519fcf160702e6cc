"""Schemas that producers bring, and that clients ask for."""

import json

import pytest

from millstream.wire.pulsar.pulsar_pb2 import (
    CommandGetOrCreateSchema,
    CommandGetOrCreateSchemaResponse,
    CommandGetSchema,
    CommandGetSchemaResponse,
    CommandProducer,
    CommandProducerSuccess,
    KeyValue,
    Schema,
    ServerError,
)
from tests.unit.sessions.pulsar.spoken import Client, Conversation


def schema(*fields: str, type_: Schema.Type = Schema.Avro) -> Schema:
    """A record of optional texts."""
    definition = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": name, "type": ["null", "string"], "default": None} for name in fields],
    }
    data = json.dumps(definition).encode()
    return Schema(name="order", type=type_, schema_data=data, properties=[KeyValue(key="a", value="b")])


@pytest.fixture
def there() -> Conversation:
    return Conversation()


def register(client: Client, wanted: Schema) -> CommandGetOrCreateSchemaResponse:
    command = CommandGetOrCreateSchema(request_id=1, topic="orders", schema=wanted)
    return client.ask(command, CommandGetOrCreateSchemaResponse)


def test_versions_count_up_and_are_found(there: Conversation) -> None:
    client = there.client()
    first, second = schema("id"), schema("id", "name")
    versions = [register(client, one).schema_version for one in (first, second, first)]
    assert versions == [bytes(8), bytes(7) + b"\x01", bytes(8)]
    latest = client.ask(CommandGetSchema(request_id=2, topic="orders"), CommandGetSchemaResponse)
    assert (latest.schema_version, latest.schema.schema_data) == (versions[1], second.schema_data)
    assert (latest.schema.type, latest.schema.name, list(latest.schema.properties)) == (
        Schema.Avro,
        "orders",
        list(second.properties),
    )
    command = CommandGetSchema(request_id=2, topic="orders", schema_version=versions[0])
    assert client.ask(command, CommandGetSchemaResponse).schema.schema_data == first.schema_data


def test_a_producer_is_told_the_version_of_its_schema(there: Conversation) -> None:
    client = there.client()
    command = CommandProducer(topic="orders", producer_id=1, request_id=1, schema=schema("id"))
    assert client.ask(command, CommandProducerSuccess).schema_version == bytes(8)
    assert client.produce(number=2).schema_version == b""


def test_a_schema_that_does_not_follow_is_refused(there: Conversation) -> None:
    client = there.client()
    register(client, schema("id"))
    other = Schema(
        name="x",
        type=Schema.Avro,
        schema_data=b'{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}',
    )
    assert register(client, other).error_code == ServerError.IncompatibleSchema
    command = CommandProducer(topic="orders", producer_id=1, request_id=1, schema=other)
    assert client.refused(command).error == ServerError.IncompatibleSchema
    broken = Schema(name="x", type=Schema.Avro, schema_data=b"{")
    assert register(client, broken).error_code == ServerError.IncompatibleSchema


def test_who_has_no_schema_may_be_refused(there: Conversation) -> None:
    client = there.client()
    register(client, schema("id"))
    namespaces = there.broker.namespaces
    there.wait(namespaces.set_policies(namespaces.get("public", "default"), schema_validation_enforced=True))
    refused = client.refused(CommandProducer(topic="orders", producer_id=1, request_id=1))
    assert refused.error == ServerError.IncompatibleSchema


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (None, ServerError.TopicNotFound),
        (bytes(8), ServerError.TopicNotFound),
        (b"", ServerError.TopicNotFound),
    ],
)
def test_a_schema_that_is_not_there(there: Conversation, version: bytes | None, error: ServerError) -> None:
    client = there.client()
    command = CommandGetSchema(request_id=2, topic="orders")
    if version is not None:
        command.schema_version = version
    assert client.ask(command, CommandGetSchemaResponse).error_code == error
    register(client, schema("id"))
    found = client.ask(command, CommandGetSchemaResponse)
    assert found.error_code == (ServerError.IncompatibleSchema if version == b"" else 0)
