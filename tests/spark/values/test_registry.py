"""Schemas registered by Pulsar's own client, and what it has written by them."""

import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pulsar
import pytest
from pulsar.schema import AvroSchema, Integer, JsonSchema, Record, String, StringSchema

from millstream.spark.errors import BadOption, BadSchema, BrokerUnreachable
from millstream.spark.values import decode, registered
from tests.spark.conftest import Read, Topics
from tests.spark.values.conftest import reasons_of, values_of
from tests.support.sample_records import Sample
from tests.support.server_process import ServerProcess

_SCHEMA_VERSION = "pulsar.schema-version"


class Order(Record):  # type: ignore[misc]  # the package has no types
    _avro_namespace = "tests"
    id = Integer(required=True)
    item = String()


def later_order() -> Any:
    """The next version: Avro knows it again by its name."""

    class Order(Record):  # type: ignore[misc]  # the package has no types
        _avro_namespace = "tests"
        id = Integer(required=True)
        item = String()
        country = String(default="NL", required=True, required_default=True)

    return Order


@pytest.fixture(scope="module")
def client(broker: ServerProcess) -> Iterator[Any]:
    made = pulsar.Client(f"pulsar://{broker.kafka}", logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    yield made
    made.close()


def _send(client: Any, topic: str, schema: Any, *values: Any) -> None:
    producer = client.create_producer(topic, schema=schema)
    for value in values:
        producer.send(value)
    producer.close()


def _encoded(definition: str, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(definition)), value)
    return out.getvalue()


def test_avro(client: Any, read: Read, topics: Topics, broker: ServerProcess) -> None:
    topic = topics.create("registered-avro")
    _send(client, topic, AvroSchema(Order), Order(id=1, item="tea"), Order(id=2))
    topics.write(topic, [Sample(None, b"nope", (), 1), Sample(None, None, (), 2)])
    good, bad = decode(read(topic, includeHeaders=True), format="avro", schema=registered(broker.kafka, topic))
    assert values_of(good) == {0: {"id": 1, "item": "tea"}, 1: {"id": 2, "item": None}, 3: None}
    assert list(reasons_of(bad)) == [2]


def test_json_and_its_defaults(client: Any, read: Read, topics: Topics, broker: ServerProcess) -> None:
    topic = topics.create("registered-json")
    _send(client, topic, JsonSchema(Order), Order(id=1, item="tea"))
    later = later_order()
    _send(client, topic, JsonSchema(later), later(id=2, item="b", country="BE"))
    good, bad = decode(read(topic), format="json", schema=registered(broker.kafka, topic))
    assert values_of(good) == {
        0: {"country": "NL", "id": 1, "item": "tea"},
        1: {"country": "BE", "id": 2, "item": "b"},
    }
    assert bad.count() == 0


def test_versions(client: Any, read: Read, topics: Topics, broker: ServerProcess) -> None:
    """Records that tell the version of their schema, and records that do not."""
    topic = topics.create("registered-versions")
    producers = [client.create_producer(topic, schema=AvroSchema(kind)) for kind in (Order, later_order())]
    for producer in producers:
        producer.close()
    schemas = [registered(broker.kafka, topic).get(version).definition.decode() for version in (0, 1)]
    old, new = (
        _encoded(schemas[0], {"id": 1, "item": "tea"}),
        _encoded(schemas[1], {"id": 2, "item": "b", "country": "BE"}),
    )
    told = [((_SCHEMA_VERSION, number.to_bytes(8, "big")),) for number in (0, 1, 9)]
    topics.write(
        topic,
        [
            Sample(None, old, told[0], 1),
            Sample(None, new, told[1], 2),
            Sample(None, new, told[2], 3),
            Sample(None, old, (), 4),
        ],
    )
    table = read(topic, includeHeaders=True)
    good, bad = decode(table, format="avro", schema=registered(broker.kafka, topic))
    latest = {0: {"country": "NL", "id": 1, "item": "tea"}, 1: {"country": "BE", "id": 2, "item": "b"}}
    assert values_of(good) == latest
    reasons = reasons_of(bad)
    assert "has no version 9 of a schema" in reasons[2]
    assert "does not say by which schema" in reasons[3]
    good, bad = decode(table, format="avro", schema=registered(broker.kafka, topic, unversioned=0))
    assert values_of(good) == {**latest, 3: latest[0]}
    good, bad = decode(table, format="avro", schema=registered(broker.kafka, topic, version=0, unversioned=0))
    assert values_of(good)[1] == {"id": 2, "item": "b"}, "of an older version: what is new is left out"


def test_names_of_topics(client: Any, broker: ServerProcess) -> None:
    full = "persistent://public/default/registered.with.dots"
    _send(client, full, AvroSchema(Order), Order(id=1))
    for name in (full, "registered.with.dots"):
        assert registered(broker.kafka, name).get().version == 0


def test_what_cannot_be_asked_for(client: Any, read: Read, topics: Topics, broker: ServerProcess) -> None:
    topic = topics.create("registered-nothing")
    with pytest.raises(BadOption, match="set the option includeHeaders"):
        decode(read(topic), format="avro", schema=registered(broker.kafka, topic))
    with pytest.raises(BadSchema, match="has no schema at"):
        decode(read(topic, includeHeaders=True), format="avro", schema=registered(broker.kafka, topic))
    _send(client, topic, StringSchema(), "text")
    with pytest.raises(BadSchema, match="of the type String registered, which is not avro"):
        decode(read(topic, includeHeaders=True), format="avro", schema=registered(broker.kafka, topic))
    with pytest.raises(BrokerUnreachable, match="cannot connect"):
        decode(read(topic, includeHeaders=True), format="avro", schema=registered("127.0.0.1:1", topic))
    with pytest.raises(BadOption, match="HOST:PORT"):
        registered("localhost", topic)


def test_versions_that_pulsars_client_tells(client: Any, read: Read, topics: Topics, broker: ServerProcess) -> None:
    topic = topics.create("registered-later")
    later = later_order()
    _send(client, topic, AvroSchema(Order), Order(id=1, item="tea"))
    _send(client, topic, AvroSchema(later), later(id=2, item="b", country="BE"))
    for direct in ("always", "never"):
        table = read(topic, includeHeaders=True, direct=direct)
        good, bad = decode(table, format="avro", schema=registered(broker.kafka, topic))
        assert values_of(good) == {
            0: {"country": "NL", "id": 1, "item": "tea"},
            1: {"country": "BE", "id": 2, "item": "b"},
        }
        assert bad.count() == 0
