"""A client of Kafka 0.7: sockets, and requests and messages as they were captured from such clients.

Its producers are never answered, so that a write waits until the topic has grown by its messages.
"""

import time
from collections.abc import Sequence
from typing import Final

from millstream.wire.compression import Codec
from millstream.wire.kafka07.messages import encode_message, encode_wrapper, payloads
from tests.conformance.kafka07_raw.connection import OldConnection
from tests.matrix.message import Message

__all__ = ["Kafka07"]

_BATCH: Final = 20
_LATEST: Final = -1


class Kafka07:
    """A client of Kafka 0.7.

    Args:
        address: HOST:PORT of the server.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._opened: OldConnection | None = None

    @property
    def _connection(self) -> OldConnection:
        """Opened when there is something to say: a client that stays silent is not waited for."""
        if self._opened is None:
            self._opened = OldConnection(self._address)
        return self._opened

    def write(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: Codec = Codec.NONE,
        batch: int = _BATCH,
        magic: int = 0,
    ) -> None:
        """Write messages to their partitions, so many in a request, and wait until they are there."""
        for partition in sorted({one.partition for one in messages}):
            mine = [one.value or b"" for one in messages if one.partition == partition]
            before = self.end(topic, partition)
            size = 0
            for start in range(0, len(mine), batch):
                encoded = [encode_message(value, magic) for value in mine[start : start + batch]]
                body = encode_wrapper(encoded, codec) if codec is not Codec.NONE else b"".join(encoded)
                size += len(body)
                self._connection.produce(topic, body, partition)
            deadline_s = time.monotonic() + 20
            while self.end(topic, partition) < before + size:
                assert time.monotonic() < deadline_s, f"{topic} has not grown"
                time.sleep(0.005)

    def end(self, topic: str, partition: int = 0) -> int:
        """The address behind the last message."""
        return self._connection.offsets(topic, _LATEST, 1, partition)[0]

    def before(self, topic: str, time_ms: int, partition: int = 0) -> list[int]:
        """The addresses of segments before a time."""
        return self._connection.offsets(topic, time_ms, 100, partition)

    def read(self, topics: dict[str, int], partitions: int) -> dict[str, list[Message]]:
        """Read topics from beginning to end."""
        found = {}
        for topic, count in topics.items():
            found[topic] = [
                Message(value=value, partition=partition)
                for partition in range(partitions)
                for value in self.values(topic, partition)
            ]
            assert len(found[topic]) == count, topic
        return found

    def values(self, topic: str, partition: int = 0, address: int = 0) -> list[bytes]:
        """The payloads of a partition from an address on."""
        end = self.end(topic, partition)
        data = b""
        while address + len(data) < end:
            error, piece = self._connection.fetch(topic, address + len(data), 1 << 20, partition)
            assert not error
            data += piece
        return [bytes(one) for one in payloads(memoryview(data))]

    def close(self) -> None:
        """End the connection."""
        if self._opened is not None:
            self._opened.close()
