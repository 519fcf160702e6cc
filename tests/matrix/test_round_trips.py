"""What rides along under documented names becomes again what it was, when a program copies it back."""

from collections.abc import Callable
from dataclasses import replace

from tests.matrix.conftest import Clients
from tests.matrix.message import Message

Unique = Callable[[str], str]


def test_iggy_through_kafka(clients: Clients, unique: Unique) -> None:
    there, back = unique("iggy-there"), unique("iggy-back")
    clients.kafka.create(there, back)
    headers = (("count", b"\1\2\0\0"), ("millstream.key", b"\xff"), ("text", b"t"))
    kinds = {"count": "int32", "millstream.key": "raw", "text": "string"}
    clients.iggy.write(there, [Message(value=b"v", headers=headers, kinds=kinds, number=2**100 + 1)])
    clients.kafka.write(back, clients.kafka.read({there: 1})[there])
    (before,), (after,) = clients.iggy.poll(there), clients.iggy.poll(back)
    assert sorted(after.headers) == sorted(before.headers)
    assert (after.value, after.number, after.time_us) == (before.value, before.number, before.time_us)
    assert after.kinds == before.kinds


def test_kafka_through_pulsar(clients: Clients, unique: Unique) -> None:
    there, back = unique("kafka-there"), unique("kafka-back")
    clients.kafka.create(there, back)
    headers = (("bytes", b"\xff\x00"), ("empty", b""), ("ends:b64", b"!"), ("null", None), ("text", b"t"))
    sent = Message(value=b"v", key=b"key", headers=headers, time_us=1_600_000_000_000_000)
    clients.kafka.write(there, [sent, replace(sent, value=None)])
    copied = [replace(one, more={}) for one in clients.pulsar.read({there: 2}, 1)[there]]
    clients.pulsar.write(back, copied)
    for before, after in zip(clients.kafka.read({there: 2})[there], clients.kafka.read({back: 2})[back], strict=True):
        own = [one for one in after.headers if one[0] != "pulsar.publish-time"]
        assert (after.value, after.key, after.time_us) == (before.value, before.key, before.time_us)
        assert sorted(own) == sorted(before.headers)


def test_pulsar_through_kafka(clients: Clients, unique: Unique) -> None:
    there, back = unique("pulsar-there"), unique("pulsar-back")
    clients.kafka.create(there, back)
    sent = Message(
        value=b"v",
        key=b"key",
        headers=(("name", b"value"),),
        time_us=1_600_000_000_000_000,
        more={"ordering_key": "order"},
    )
    clients.pulsar.write(there, [sent])
    clients.kafka.write(back, clients.kafka.read({there: 1})[there], batch_num_messages=1)
    topics = {there: 1, back: 1}
    found = clients.pulsar.read(topics, 1)
    assert replace(found[back][0], offset=0) == replace(found[there][0], offset=0)
    assert found[back][0].more["ordering_key"] == "order"
