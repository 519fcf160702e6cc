"""Any client of any protocol on any listener, with TLS and without."""

import contextlib
import shutil
import signal
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from millstream.wire.kafka.messages.fetch import FETCH
from tests.conformance.one_port.clients import CLIENTS
from tests.conformance.one_port.conftest import LISTENERS
from tests.conformance.raw.connection import Connection
from tests.conformance.raw.server_memory import growth_below
from tests.support.certificates import Certificates, make_certificates
from tests.support.server_process import ServerProcess, serving
from tests.support.waiting import eventually
from tests.unit.sessions.kafka.conversation import fetch_request

Unique = Callable[[str], str]


@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_any_client_on_any_listener(one_port: ServerProcess, unique: Unique, client: str, listener: str) -> None:
    CLIENTS[client](one_port.addresses[listener], unique("any"), None)


@pytest.mark.parametrize("listener", ["any", "kafka", "iggy"])
@pytest.mark.parametrize("client", CLIENTS)
def test_any_client_with_tls(
    one_port: ServerProcess, certificates: Certificates, unique: Unique, client: str, listener: str
) -> None:
    CLIENTS[client](one_port.addresses[listener], unique("tls"), certificates)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_a_slow_reader_is_not_sent_more_than_it_takes(
    one_port: ServerProcess, certificates: Certificates, unique: Unique, *, tls: bool
) -> None:
    """Its answers stay within the server's bounds, others are served meanwhile, and in the end it gets them all."""
    address, topic = one_port.addresses["any"], unique("slow")
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for _ in range(10):
        producer.produce(topic, bytes(100_000))
    assert producer.flush(20) == 0
    slow = Connection(address)
    if tls:
        slow.wrap(ssl.create_default_context(cafile=certificates.authority))
    with contextlib.closing(slow):
        with growth_below(one_port.process.pid, 40):
            sent = [slow.send(FETCH, 11, fetch_request(names=[topic])) for _ in range(200)]
            time.sleep(0.5)
        CLIENTS["confluent"](address, unique("other"), certificates)
        for number in sent:
            (answer,) = slow.receive(FETCH, 11, number).responses
            assert len(answer.partitions[0].records) > 500_000


@pytest.mark.parametrize("client", [name for name in CLIENTS if name != "iggy"])
def test_any_client_that_shows_a_certificate(
    demanding: ServerProcess, certificates: Certificates, unique: Unique, client: str
) -> None:
    """The Iggy client has no certificate to show."""
    CLIENTS[client](demanding.addresses["any"], unique("shown"), certificates)


def test_a_signal_has_the_certificate_read_again(tmp_path: Path, unique: Unique) -> None:
    folders = [tmp_path / "old", tmp_path / "new"]
    for folder in folders:
        folder.mkdir()
    old, new = map(make_certificates, folders)
    with serving(str(tmp_path / "data"), settings=old.settings) as server:
        CLIENTS["http"](server.kafka, unique("before"), old)
        shutil.copy(new.certificate, old.certificate)
        shutil.copy(new.key, old.key)
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: "certificate read again" in server.log(), 10)
        CLIENTS["http"](server.kafka, unique("after"), new)
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            CLIENTS["http"](server.kafka, unique("after"), old)


def test_who_shows_no_certificate_or_speaks_no_tls(demanding: ServerProcess, certificates: Certificates) -> None:
    address = demanding.addresses["any"]
    context = ssl.create_default_context(cafile=certificates.authority)
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        urllib.request.urlopen(f"https://{address}/admin/v2/clusters", timeout=10, context=context)
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        urllib.request.urlopen(f"http://{address}/admin/v2/clusters", timeout=10)
    assert "http without TLS, which tls.required asks for" in demanding.log()
