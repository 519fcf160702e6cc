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
from millstream.wire.pulsar.pulsar_pb2 import CommandGetOrCreateSchema, KeyValue, Schema
from tests.spark.conftest import Read, Topics
from tests.spark.values.conftest import reasons_of, values_of
from tests.support.pulsar_commands import ask_pulsar
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


_KEY = json.dumps({"type": "record", "name": "Id", "fields": [{"name": "id", "type": "long"}]}).encode()
_VALUE = json.dumps({"type": "record", "name": "Item", "fields": [{"name": "item", "type": "string"}]}).encode()


def _register_key_value(broker: ServerProcess, topic: str, encoding: str | None, value_type: str = "AVRO") -> None:
    types = {"key.schema.type": "AVRO", "value.schema.type": value_type}
    properties = types if encoding is None else types | {"kv.encoding.type": encoding}
    schema = Schema(
        name="",
        type=Schema.KeyValuePair,
        schema_data=_together(_KEY, _VALUE),
        properties=[KeyValue(key=key, value=value) for key, value in properties.items()],
    )
    full = f"persistent://public/default/{topic}"
    answer = ask_pulsar(broker.kafka, CommandGetOrCreateSchema(request_id=1, topic=full, schema=schema))
    assert not answer.error_message


def _together(*parts: bytes | None) -> bytes:
    """As Pulsar's Java client writes a key and a value, and their schemas: each behind its length, -1 for null."""
    return b"".join(
        (-1 if part is None else len(part)).to_bytes(4, "big", signed=True) + (part or b"") for part in parts
    )


def test_keys_and_values_that_stand_apart(read: Read, topics: Topics, broker: ServerProcess) -> None:
    topic = topics.create("registered-apart")
    _register_key_value(broker, topic, "SEPARATED")
    key, value = _encoded(_KEY.decode(), {"id": 1}), _encoded(_VALUE.decode(), {"item": "tea"})
    topics.write(topic, [Sample(key, value, (), 1), Sample(None, value, (), 2), Sample(b"", None, (), 3)])
    schema = registered(broker.kafka, topic)
    keys = decode(read(topic, includeHeaders=True), format="avro", schema=schema, column="key")
    assert list(reasons_of(keys.bad)) == [2]
    good, bad = decode(keys.good, format="avro", schema=schema)
    assert values_of(good, "key") == {0: {"id": 1}, 1: None}
    assert values_of(good) == {0: {"item": "tea"}, 1: {"item": "tea"}}
    assert bad.count() == 0


def test_keys_and_values_that_stand_together(read: Read, topics: Topics, broker: ServerProcess) -> None:
    topic = topics.create("registered-together")
    _register_key_value(broker, topic, None)
    key, value = _encoded(_KEY.decode(), {"id": 1}), _encoded(_VALUE.decode(), {"item": "tea"})
    whole = [_together(key, value), _together(None, value), _together(key, None), None]
    damaged = [b"", b"\0\0", _together(key), _together(key, value) + b"x", _together(key, value)[:-1], b"\xff" * 9]
    topics.write(topic, [Sample(None, one, (), n) for n, one in enumerate([*whole, *damaged])])
    schema = registered(broker.kafka, topic)
    for direct in ("always", "never"):
        keys = decode(read(topic, includeHeaders=True, direct=direct), format="avro", schema=schema, column="key")
        reasons = reasons_of(keys.bad)
        assert sorted(reasons) == list(range(len(whole), len(whole) + len(damaged)))
        assert set(reasons.values()) == {"it is no key and value as Pulsar writes them together"}
        assert {row.offset: row.raw for row in keys.bad.collect()}[5] == damaged[1]
        good, bad = decode(keys.good, format="avro", schema=schema)
        assert values_of(good, "key") == {0: {"id": 1}, 1: None, 2: {"id": 1}, 3: None}
        assert values_of(good) == {0: {"item": "tea"}, 1: {"item": "tea"}, 2: None, 3: None}
        assert bad.count() == 0


def test_parts_of_other_types(read: Read, topics: Topics, broker: ServerProcess) -> None:
    topic = topics.create("registered-json-value")
    _register_key_value(broker, topic, "INLINE", "JSON")
    key = _encoded(_KEY.decode(), {"id": 7})
    topics.write(topic, [Sample(None, _together(key, b'{"item": "tea"}'), (), 1)])
    schema = registered(broker.kafka, topic)
    keys = decode(read(topic, includeHeaders=True), format="avro", schema=schema, column="key")
    good, _ = decode(keys.good, format="json", schema=schema)
    assert [(row.key.id, row.value.item) for row in good.collect()] == [(7, "tea")]
    with pytest.raises(BadSchema, match="of the type Json registered, which is not avro"):
        decode(read(topic, includeHeaders=True), format="avro", schema=schema)
