"""Clients of every protocol that write a record, and read it, by whatever address they are told."""

import contextlib
import json
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import kafka
import pulsar
from confluent_kafka import Consumer, Producer

from millstream.wire.kafka07.requests import FetchRequest, ProduceRequest, encode_request
from millstream.wire.kafka07.responses import decode_fetch
from tests.conformance.kafka07_raw.connection import OldConnection
from tests.support.certificates import Certificates
from tests.support.client_venv import client_venv
from tests.unit.wire.kafka07.sets import message_set

__all__ = ["CLIENTS", "RoundTrip", "TlsWanted"]

ROOT: Final = Path(__file__).parents[3]
PATIENCE_S: Final = 20
VALUE: Final = b"told through any port"
TlsWanted = Certificates | None
"""Whether to speak TLS, and with what."""
RoundTrip = Callable[[str, str, TlsWanted], None]
"""Writes a record to a topic, and reads it, given HOST:PORT and the topic."""


def confluent(address: str, topic: str, tls: TlsWanted) -> None:
    """librdkafka."""
    settings: dict[str, Any] = {"bootstrap.servers": address, "log_level": 0}
    if tls is not None:
        settings |= {
            "security.protocol": "ssl",
            "ssl.ca.location": tls.authority,
            "ssl.certificate.location": tls.client,
            "ssl.key.location": tls.client_key,
        }
    producer = Producer(settings)
    producer.produce(topic, VALUE)
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.value() == VALUE
    finally:
        consumer.close()


def kafka_python(address: str, topic: str, tls: TlsWanted) -> None:
    """kafka-python."""
    settings: dict[str, Any] = {"bootstrap_servers": address}
    if tls is not None:
        settings |= {
            "security_protocol": "SSL",
            "ssl_cafile": tls.authority,
            "ssl_certfile": tls.client,
            "ssl_keyfile": tls.client_key,
        }
    producer = kafka.KafkaProducer(**settings)
    producer.send(topic, VALUE).get(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, auto_offset_reset="earliest", consumer_timeout_ms=PATIENCE_S * 1000, **settings
    )
    assert next(consumer).value == VALUE
    consumer.close()


def kafka07(address: str, topic: str, tls: TlsWanted) -> None:
    """The format of 0.7, on a bare socket."""
    with contextlib.closing(_old_connection(address, tls)) as connection:
        body = message_set(VALUE)
        connection.write(encode_request(ProduceRequest(topic, 0, body)))
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            fetched = decode_fetch(connection.ask(FetchRequest(topic, 0, 0, 1 << 20)))
            if not fetched.error and b"".join(fetched.messages) == body:
                return
            time.sleep(0.01)
        raise AssertionError("what was written did not come back")


def _old_connection(address: str, tls: TlsWanted) -> OldConnection:
    connection = OldConnection(address)
    if tls is not None:
        connection.wrap(_context(tls))
    return connection


def _context(tls: Certificates) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.authority)
    context.load_cert_chain(tls.client_both)
    return context


def pulsar_binary(address: str, topic: str, tls: TlsWanted) -> None:
    """The C++ client, by a service URL of its protocol."""
    _pulsar(f"pulsar://{address}" if tls is None else f"pulsar+ssl://{address}", topic, tls)


def pulsar_lookup(address: str, topic: str, tls: TlsWanted) -> None:
    """The C++ client, which looks topics up over HTTP."""
    _pulsar(f"http://{address}" if tls is None else f"https://{address}", topic, tls)


def _pulsar(url: str, topic: str, tls: TlsWanted) -> None:
    settings: dict[str, Any] = {}
    if tls is not None:
        settings["tls_trust_certs_file_path"] = tls.authority
        settings["tls_validate_hostname"] = True
        settings["authentication"] = pulsar.AuthenticationTLS(tls.client, tls.client_key)
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error), **settings)
    try:
        client.create_producer(topic).send(VALUE)
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        assert reader.read_next(PATIENCE_S * 1000).data() == VALUE
    finally:
        client.close()


def iggy(address: str, topic: str, tls: TlsWanted) -> None:
    """The Rust client."""
    host, _, port = address.rpartition(":")
    url = f"iggy+tcp://iggy:iggy@{host}:{port}"
    if tls is not None:
        url += f"?tls=true&tls_domain=localhost&tls_ca_file={tls.authority}"
    python = client_venv("apache-iggy-0.9.0", ["apache-iggy==0.9.0"])
    command = [str(python), "-m", "tests.conformance.one_port.iggy_client", url, topic, VALUE.decode()]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr


def http(address: str, topic: str, tls: TlsWanted) -> None:
    """Pulsar's REST API."""
    scheme, context = ("http", None) if tls is None else ("https", _context(tls))
    url = f"{scheme}://{address}/admin/v2/persistent/public/default"
    request = urllib.request.Request(f"{url}/{topic}", method="PUT", data=b"")
    with urllib.request.urlopen(request, timeout=PATIENCE_S, context=context) as answer:
        assert answer.status == 204
    with urllib.request.urlopen(url, timeout=PATIENCE_S, context=context) as answer:
        assert f"persistent://public/default/{topic}" in json.loads(answer.read())


CLIENTS: Final[dict[str, RoundTrip]] = {
    "confluent": confluent,
    "kafka-python": kafka_python,
    "kafka07": kafka07,
    "pulsar": pulsar_binary,
    "pulsar-lookup": pulsar_lookup,
    "iggy": iggy,
    "http": http,
}
