"""The requests of real clients, byte for byte, over a socket: the server answers, byte for byte, what they got."""

import contextlib
import tempfile
from collections.abc import Iterator

import pytest

from millstream.wire.kafka07.requests import MultiProduceRequest, ProduceRequest, decode_request
from tests.conformance.kafka07_raw.connection import OldConnection
from tests.golden.kafka07_captures import CAPTURES, Capture
from tests.support.server_process import serving


@contextlib.contextmanager
def fresh_server() -> Iterator[OldConnection]:
    """A connection to a server without topics, which gives each two partitions."""
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(f"{directory}/data", "kafka07=127.0.0.1:0", ["num.partitions=2"]) as server,
    ):
        connection = OldConnection(server.addresses["kafka07"])
        yield connection
        connection.close()


def replay(connection: OldConnection, capture: Capture) -> None:
    """Store what was there, then send each request and compare its answer."""
    for stored in capture.stored:
        connection.produce(stored.topic, stored.messages, stored.partition)
    for exchange in capture.exchanges:
        connection.write(exchange.request)
        if exchange.answer is not None:
            assert connection.receive_frame().hex() == exchange.answer.hex()


def check_stored(connection: OldConnection, capture: Capture) -> None:
    """See that the messages of every produce are stored exactly as they were sent."""
    for exchange in capture.exchanges:
        request = decode_request(memoryview(exchange.request)[4:])
        produces = request.produces if isinstance(request, MultiProduceRequest) else [request]
        for produce in produces:
            if not isinstance(produce, ProduceRequest):
                continue
            partitions = [produce.partition] if produce.partition >= 0 else [0, 1]
            found = [connection.fetch(produce.topic, partition=partition) for partition in partitions]
            assert (0, bytes(produce.messages)) in found


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda capture: capture.name)
def test_a_capture_again(capture: Capture) -> None:
    with fresh_server() as connection:
        replay(connection, capture)
        check_stored(connection, capture)
