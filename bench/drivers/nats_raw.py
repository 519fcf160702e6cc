"""Pre-encoded publishes to a JetStream stream, and a bare push subscription to it.

A batch is as many publishes as it has records, sent together; JetStream acknowledges each of them.
"""

import itertools
import json
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Final

from bench.drivers.driver import Endpoint
from bench.drivers.pipeline import DriverError, Lane, connect, run_lanes
from bench.drivers.text_protocol import MarkCounter
from bench.load import MARK, Budget, Load, Work

__all__ = ["NatsRaw"]

_RECEIVE_BYTES: Final = 1 << 20
_INBOX: Final = b"_INBOX.bench"
_CONNECT: Final = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"protocol":1}\r\n'
_TIMEOUT_SECONDS: Final = 20.0

_inbox_numbers = itertools.count()


def _publish(subject: bytes, reply: bytes, payload: bytes) -> bytes:
    return b"PUB %s %s %d\r\n%s\r\n" % (subject, reply, len(payload), payload)


class NatsRaw:
    """A `Driver` over the protocol of NATS.

    Args:
        endpoint: the server.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def create(self, topic: str) -> None:
        """Create a stream on files, with one subject of the same name."""
        settings = {"name": topic, "subjects": [topic], "storage": "file", "retention": "limits", "num_replicas": 1}
        self._request(f"$JS.API.STREAM.CREATE.{topic}", settings)

    def drop(self, topic: str) -> None:
        """Delete a stream."""
        self._request(f"$JS.API.STREAM.DELETE.{topic}", {})

    def produce(self, topics: Sequence[str], load: Load, budget: Budget) -> Work:
        """See `Driver`."""
        lanes = []
        for topic in topics:
            sock, inbox = self._connected()
            unit = _publish(topic.encode(), inbox, load.value) * load.batch_records
            counter = MarkCounter(b'"seq":', [b'"error":', b"-ERR", b"NATS/1.0 503"])
            lanes.append(Lane(sock, [unit], load.shape.in_flight, load.batch_records, counter))
        batches, seconds = run_lanes(lanes, budget, budget.batches(load))
        records = batches * load.batch_records
        return Work(records=records, size_bytes=records * load.record_bytes, seconds=seconds)

    def consume(self, topic: str, load: Load, records: int, budget: Budget) -> Work:
        """See `Driver`; a new connection and consumer for each pass, inside the clock."""
        read = 0
        started = time.perf_counter()
        while True:
            sock, inbox = self._connected()
            with sock:
                config = {"deliver_subject": inbox.decode(), "ack_policy": "none", "deliver_policy": "all"}
                body = json.dumps({"stream_name": topic, "config": config}).encode()
                sock.sendall(_publish(f"$JS.API.CONSUMER.CREATE.{topic}".encode(), inbox + b".api", body))
                counter = MarkCounter(MARK, [b'"error":', b"-ERR"])
                passed = 0
                while passed < records:
                    part = sock.recv(_RECEIVE_BYTES)
                    if not part:
                        raise DriverError("the server closed the connection")
                    passed += counter.feed(memoryview(part))
                    seconds = time.perf_counter() - started
                    if seconds >= budget.seconds or (read + passed) * load.record_bytes >= budget.size_bytes:
                        read += passed
                        return Work(records=read, size_bytes=read * load.record_bytes, seconds=seconds)
                read += passed

    def _connected(self) -> tuple[socket.socket, bytes]:
        """Connect and subscribe to an inbox of this connection's own."""
        sock = connect(self._endpoint.host, self._endpoint.port)
        sock.settimeout(_TIMEOUT_SECONDS)
        inbox = _INBOX + b"%d" % next(_inbox_numbers)
        sock.sendall(_CONNECT + b"SUB %s 1\r\nSUB %s.api 2\r\nPING\r\n" % (inbox, inbox))
        _receive_until(sock, b"PONG\r\n")
        return sock, inbox

    def _request(self, subject: str, body: Mapping[str, object]) -> None:
        sock, inbox = self._connected()
        with sock:
            sock.sendall(_publish(subject.encode(), inbox, json.dumps(body).encode()))
            answer = _receive_until(sock, b"}\r\n")
        if b'"error":' in answer:
            raise DriverError(answer.decode(errors="replace"))


def _receive_until(sock: socket.socket, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        part = sock.recv(_RECEIVE_BYTES)
        if not part:
            raise DriverError("the server closed the connection")
        data += part
    return data
