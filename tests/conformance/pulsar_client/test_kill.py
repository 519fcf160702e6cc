"""kill -9: what was acknowledged with a receipt stays acknowledged, holes included, and nothing else is."""

import contextlib
import time
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.conformance.pulsar_client.conftest import (
    ANY,
    connect,
    drain,
    numbered,
    publish,
    receive,
    subscribe,
    values,
)
from tests.support.server_process import start

SETTLED_S = 0.6
"""Acknowledgements without receipts go out in groups, and are stored in groups."""


@pytest.mark.parametrize("kind", [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared])
def test_cursors_survive(tmp_path: Path, kind: Any) -> None:
    data_dir = str(tmp_path / "data")
    server = start(data_dir, ANY)
    try:
        client = connect(server)
        publish(client, "single", numbered(100))
        publish(client, "batches", numbered(100), batch=10)
        by_index = {"consumer_type": kind, "batch_index_ack_enabled": True}
        for topic in ("single", "batches"):
            consumer = subscribe(client, topic, **by_index)
            for message in receive(consumer, 100):
                if int(message.data()) % 7:
                    consumer.acknowledge(message)
        time.sleep(SETTLED_S)
        server.kill()
        assert server.process.stdout is not None
        server.process.stdout.close()
        with contextlib.suppress(pulsar.PulsarException):
            client.close()
        server = start(data_dir, ANY)
        client = connect(server)
        for topic in ("single", "batches"):
            left = drain(subscribe(client, topic, **by_index))
            assert sorted(values(left)) == [b"%06d" % number for number in range(0, 100, 7)]
        client.close()
        assert server.stop() == 0
        assert "Traceback" not in server.log()
    finally:
        if server.process.poll() is None:
            server.kill()
        assert server.process.stdout is not None
        server.process.stdout.close()


def test_a_client_goes_on_by_itself(tmp_path: Path) -> None:
    """A consumer that sees its server die and come back: nothing is missing, and little comes twice."""
    data_dir = str(tmp_path / "data")
    server = start(data_dir, ANY)
    listen = f"any={server.addresses['any']}"
    client = connect(server)
    try:
        publish(client, "orders", numbered(50))
        consumer = subscribe(client, "orders")
        for message in receive(consumer, 30):
            consumer.acknowledge(message)
        time.sleep(SETTLED_S)
        server.kill()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server = start(data_dir, listen)
        publish(client, "orders", numbered(50, 50))
        got: list[bytes] = []
        while b"000099" not in got:
            message = consumer.receive(20_000)
            got.append(message.data())
            consumer.acknowledge(message)
        assert sorted(set(got) - set(numbered(30))) == numbered(70, 30)
    finally:
        client.close()
        server.kill()
        assert server.process.stdout is not None
        server.process.stdout.close()
