"""A plain socket that speaks Kafka 0.7 through the project's own codec, and can as well speak nonsense."""

import struct
import time

from millstream.wire.kafka07.requests import FetchRequest, OffsetsRequest, ProduceRequest, Request, encode_request
from millstream.wire.kafka07.responses import decode_fetch, decode_offsets
from tests.support.plain_socket import TIMEOUT_S, PlainSocket

__all__ = ["OldConnection"]


class OldConnection(PlainSocket):
    """A connection to a server. Any wait of more than `TIMEOUT_S` is an error.

    Args:
        address: HOST:PORT.
    """

    def receive_frame(self) -> bytes:
        """Receive the next answer, with its length."""
        prefix = self.receive_exactly(4)
        return prefix + self.receive_exactly(struct.unpack(">i", prefix)[0])

    def ask(self, request: Request) -> memoryview:
        """Send a request; returns its answer without its length."""
        self.write(encode_request(request))
        return memoryview(self.receive_frame())[4:]

    def produce(self, topic: str, messages: bytes, partition: int = 0) -> None:
        """Produce a message set; nobody tells when it is stored."""
        self.write(encode_request(ProduceRequest(topic, partition, messages)))

    def fetch(self, topic: str, offset: int = 0, max_size: int = 1 << 20, partition: int = 0) -> tuple[int, bytes]:
        """Fetch; returns the error and the bytes."""
        fetched = decode_fetch(self.ask(FetchRequest(topic, partition, offset, max_size)))
        return fetched.error, b"".join(fetched.messages)

    def read_until(self, topic: str, size: int, offset: int = 0, partition: int = 0) -> bytes:
        """Poll until so many bytes are there."""
        deadline_s = time.monotonic() + TIMEOUT_S
        data = b""
        while len(data) < size:
            assert time.monotonic() < deadline_s, f"{len(data)} of {size} bytes appeared"
            error, piece = self.fetch(topic, offset + len(data), partition=partition)
            assert error == 0
            data += piece
        return data

    def offsets(self, topic: str, time_ms: int = -1, max_count: int = 100, partition: int = 0) -> list[int]:
        """Ask for addresses."""
        return decode_offsets(self.ask(OffsetsRequest(topic, partition, time_ms, max_count)))
