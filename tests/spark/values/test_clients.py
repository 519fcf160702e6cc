"""What real clients and their serializers have written, in every format that is not in test_registry.py."""

import base64
import json
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.serialization import DoubleSerializer, IntegerSerializer, StringSerializer

from millstream.spark.values import decode, registered
from tests.spark.conftest import Read, Topics
from tests.spark.values.conftest import Rows, reasons_of, values_of
from tests.spark.values.test_protobuf import DESCRIPTORS, Flight, flight
from tests.support.pulsar_admin import administer
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.timeout(300)

_AVRO = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "number", "type": "int"},
        {"name": "carrier", "type": ["null", "string"], "default": None},
    ],
}
_BY_CONFLUENT = {
    # AvroSerializer, JSONSerializer, ProtobufSerializer of confluent-kafka 2.16: schema ids 1 to 5.
    "avro": "00000000010e02044b4c",
    "json": b'\x00\x00\x00\x00\x02{"number":7}'.hex(),
    "protobuf": "000000000402020807",
    "nested": "00000000050402000a03414d53",
}


def _golden(name: str) -> bytes:
    return bytes.fromhex(_BY_CONFLUENT[name])


def test_the_bytes_of_confluents_serializers(rows: Rows) -> None:
    found = decode(rows([_golden("avro")]), format="avro", schema=_AVRO, framing="confluent").good
    assert values_of(found) == {0: {"number": 7, "carrier": "KL"}}
    found = decode(rows([_golden("json")]), format="json", schema="number INT", framing="confluent").good
    assert values_of(found) == {0: {"number": 7}}
    found = decode(rows([_golden("protobuf")]), format="protobuf", schema=Flight, framing="confluent").good
    assert values_of(found)[0]["number"] == 7
    nested = decode(
        rows([_golden("nested")]),
        format="protobuf",
        schema=DESCRIPTORS,
        message="tests.Flight.Leg",
        framing="confluent",
    )
    assert values_of(nested.good) == {0: {"to": "AMS"}}


def test_kafkas_serializers(read: Read, topics: Topics, broker: ServerProcess) -> None:
    topic = topics.create("serialized", partitions=4)
    producer = Producer({"bootstrap.servers": broker.kafka, "log_level": 0})
    written: list[list[tuple[Any, Any]]] = [
        [(IntegerSerializer(), -7), (IntegerSerializer(), 2**31 - 1)],
        [(DoubleSerializer(), 1.5)],
        [(StringSerializer("utf_8"), "1,Adé"), (StringSerializer("utf_8"), "x,y")],
        [(None, flight().SerializeToString())],
    ]
    for partition, values in enumerate(written):
        for serializer, value in values:
            producer.produce(topic, value if serializer is None else serializer(value, None), b"k", partition)
    assert producer.flush(30) == 0
    table = read(topic)

    def part(number: int) -> Any:
        return table.where(f"partition = {number}")

    assert values_of(decode(part(0), format="bytes", schema="INT").good) == {0: -7, 1: 2**31 - 1}
    assert values_of(decode(part(1), format="bytes", schema="DOUBLE").good) == {0: 1.5}
    assert values_of(decode(part(2), format="text").good) == {0: "1,Adé", 1: "x,y"}
    good, bad = decode(part(2), format="csv", schema="id INT, name STRING")
    assert values_of(good) == {0: {"id": 1, "name": "Adé"}}
    [row] = bad.collect()
    assert (row.topic, row.partition, row.offset, bytes(row.raw)) == (topic, 2, 1, b"x,y")
    assert row.timestamp is not None
    assert values_of(decode(part(3), format="protobuf", schema=Flight).good)[0]["carrier"] == "KL"
    assert values_of(decode(part(3), format="text", column="key").good, "key") == {0: "k"}
    assert set(reasons_of(decode(part(1), format="avro", schema=_AVRO).bad)) == {0}


def test_protobuf_that_is_registered(read: Read, topics: Topics, broker: ServerProcess) -> None:
    topic = topics.create("registered-protobuf")
    definition = {
        "fileDescriptorSet": base64.b64encode(DESCRIPTORS).decode(),
        "rootMessageTypeName": "tests.Flight",
        "rootFileDescriptorName": "flights.proto",
    }
    body = {"type": "PROTOBUF_NATIVE", "schema": json.dumps(definition), "properties": {}}
    administer(broker.kafka, "POST", f"schemas/public/default/{topic}/schema", body)
    producer = Producer({"bootstrap.servers": broker.kafka, "log_level": 0})
    producer.produce(topic, flight().SerializeToString())
    assert producer.flush(30) == 0
    good, _ = decode(read(topic), format="protobuf", schema=registered(broker.kafka, topic))
    assert values_of(good)[0]["carrier"] == "KL"
