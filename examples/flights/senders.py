"""Four ways into the topics, each in the protocol of another decade: Kafka, Kafka 0.7, Pulsar, and Iggy over HTTP.

Each airport's flights come through another one, and the weather through the fourth. Some records are
broken on purpose.
"""

import base64
import http.client
import itertools
import json
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from examples.flights.load import FLIGHTS, WEATHER, Row, send
from millstream.wire.kafka07.messages import encode_message
from millstream.wire.kafka07.requests import OffsetsRequest, ProduceRequest, encode_request

__all__ = ["FAULT_EVERY", "WAYS", "SendingFailed", "Way", "with_faults"]

FAULT_EVERY: Final = 1000
"""Behind so many good records comes a broken one."""
_BATCH: Final = 1000
_PARTITIONS: Final = 2
_TIMEOUT_S: Final = 60
_LATEST: Final = -1

Delivered = Callable[[int], None]


class SendingFailed(Exception):
    """A record was refused, or not confirmed."""


@dataclass(frozen=True)
class Way:
    """One of the ways.

    Args:
        name: of the protocol, as shown.
        listener: of the broker.
        topic, origins: which records come this way: those of a topic and of some airports.
        send: sends records to a topic of the broker at an address, and tells how many have got there.
    """

    name: str
    listener: str
    topic: str
    origins: tuple[str, ...]
    send: Callable[[str, str, Sequence[Row], Delivered], None]


def with_faults(rows: Iterable[Row]) -> Iterator[Row]:
    """Records, and now and then one that is cut off, one that is no JSON, or one with a word for a number."""
    kinds = itertools.cycle((_cut_off, _no_json, _word_for_number))
    for number, row in enumerate(rows, 1):
        yield row
        if number % FAULT_EVERY == 0:
            yield row._replace(value=next(kinds)(row.value))


def _cut_off(value: bytes) -> bytes:
    return value[: len(value) // 2]


def _no_json(value: bytes) -> bytes:
    return b"\x00\x01 flight plan"


def _word_for_number(value: bytes) -> bytes:
    return json.dumps(json.loads(value) | {"hour": "noon", "temp": "warm"}).encode()


def _through_kafka(address: str, topic: str, rows: Sequence[Row], delivered: Delivered) -> None:
    """With librdkafka, as producers of today do."""
    send(address, topic, rows, delivered)


def _through_kafka07(address: str, topic: str, rows: Sequence[Row], delivered: Delivered) -> None:
    """With a bare socket, as producers of 2011 did: there are no keys, no times and no receipts."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), _TIMEOUT_S) as connection:
        for start, partition in zip(range(0, len(rows), _BATCH), itertools.cycle(range(_PARTITIONS)), strict=False):
            messages = b"".join(encode_message(row.value) for row in rows[start : start + _BATCH])
            connection.sendall(encode_request(ProduceRequest(topic, partition, messages)))
            # Requests are served in order: the answer to this one says that those before it have been.
            connection.sendall(encode_request(OffsetsRequest(topic, partition, _LATEST, 1)))
            (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            (code,) = struct.unpack_from(">h", connection.recv(size, socket.MSG_WAITALL))
            if code:
                raise SendingFailed(f"the broker answered a Kafka 0.7 request with code {code}")
            delivered(min(start + _BATCH, len(rows)))


def _through_pulsar(address: str, topic: str, rows: Sequence[Row], delivered: Delivered) -> None:
    """With the C++ client of Apache Pulsar."""
    import pulsar

    got, refused = itertools.count(1), []

    def note(result: Any, _: Any) -> None:
        if result != pulsar.Result.Ok:
            refused.append(result)
        elif (count := next(got)) % _BATCH == 0:
            delivered(count)

    client = pulsar.Client(f"pulsar://{address}", logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        producer = client.create_producer(
            topic,
            block_if_queue_full=True,
            batching_enabled=True,
            batching_max_messages=_BATCH,
            batching_max_publish_delay_ms=10,
        )
        for row in rows:
            producer.send_async(row.value, note, partition_key=row.key, event_timestamp=row.time_ms)
        producer.flush()
    except pulsar.PulsarException as error:
        raise SendingFailed(f"the Pulsar client says: {error}") from None
    finally:
        client.close()
    if refused:
        raise SendingFailed(f"the broker refused {len(refused)} messages of Pulsar's: {refused[0]}")
    delivered(len(rows))


def _through_iggy(address: str, topic: str, rows: Sequence[Row], delivered: Delivered) -> None:
    """With Iggy's HTTP API."""
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_S)

    def call(path: str, body: Any, headers: dict[str, str]) -> Any:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SendingFailed(f"Iggy's HTTP API answered {answer.status}: {text.decode(errors='replace')[:200]}")
        return json.loads(text or b"null")

    identity = call("/users/login", {"username": "iggy", "password": "iggy"}, {})
    login = {"Authorization": f"Bearer {identity['access_token']['token']}"}
    for start in range(0, len(rows), _BATCH):
        messages = [{"payload": base64.b64encode(row.value).decode()} for row in rows[start : start + _BATCH]]
        body = {"partitioning": {"kind": "balanced"}, "messages": messages}
        call(f"/streams/default/topics/{topic}/messages", body, login)
        delivered(min(start + _BATCH, len(rows)))
    connection.close()


WAYS: Final = (
    Way("Kafka", "kafka", FLIGHTS.topic, ("EWR",), _through_kafka),
    Way("Pulsar", "pulsar", FLIGHTS.topic, ("JFK",), _through_pulsar),
    Way("Kafka 0.7", "kafka07", FLIGHTS.topic, ("LGA",), _through_kafka07),
    Way("Iggy", "http", WEATHER.topic, ("EWR", "JFK", "LGA"), _through_iggy),
)
