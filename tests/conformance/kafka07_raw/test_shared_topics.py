"""Topics that clients of Kafka 0.7 and of today's Kafka use together."""

import tempfile
from collections.abc import Iterator

import pytest

from tests.conformance.kafka07_raw.conftest import Connect
from tests.conformance.kafka07_raw.connection import OldConnection
from tests.conformance.raw.log_client import LogClient
from tests.support.server_process import ServerProcess, start
from tests.unit.wire.kafka07.sets import message_set, wrapper


@pytest.fixture
def modern(any_server: ServerProcess) -> Iterator[LogClient]:
    """A client of today's Kafka."""
    client = LogClient(any_server.addresses["any"])
    yield client
    client.close()


def test_what_each_writes_the_other_reads(any_server: ServerProcess, modern: LogClient, connect: Connect) -> None:
    old = connect(any_server)
    modern.create_topic("shared")
    modern.append("shared", b"new 1", b"new 2")
    old.produce("shared", message_set(b"old 1") + wrapper([b"old 2", b"old 3"]))
    body = message_set(b"new 1", b"new 2", b"old 1") + wrapper([b"old 2", b"old 3"])
    assert old.read_until("shared", len(body)) == body
    modern.append("shared", b"new 3")
    body += message_set(b"new 3")
    assert old.read_until("shared", len(body)) == body
    assert modern.values("shared") == [b"new 1", b"new 2", b"old 1", b"old 2", b"old 3", b"new 3"]


def test_addresses_outlive_a_kill() -> None:
    """The server is killed at any moment; what was told of a record stays true."""
    with tempfile.TemporaryDirectory() as directory:
        data_dir = f"{directory}/data"
        body = b""
        for life in range(4):
            server = start(data_dir, "any=127.0.0.1:0", ["log.segment.bytes=20000"])
            address = server.addresses["any"]
            old, modern = OldConnection(address), LogClient(address)
            if not life:
                modern.create_topic("killed")
            assert old.read_until("killed", len(body)) == body
            for number in range(30):
                value = b"%d %d " % (life, number) * 100
                modern.append("killed", value)
                body += message_set(value)
                old.produce("killed", message_set(b"old"))
                body += message_set(b"old")
                assert old.read_until("killed", len(body)) == body
            assert old.offsets("killed", max_count=1) == [len(body)]
            assert len(old.offsets("killed")) > life + 1
            server.kill()
            old.close()
            modern.close()
            assert server.process.stdout is not None
            server.process.stdout.close()
