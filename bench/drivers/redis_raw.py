"""Pre-encoded XADD commands and a bare XRANGE loop. A batch is as many commands as it has records, sent together."""

import time
from collections.abc import Sequence
from typing import Final

from bench.drivers.driver import Endpoint
from bench.drivers.pipeline import DriverError, Lane, connect, run_lanes
from bench.drivers.text_protocol import MarkCounter
from bench.load import MARK, Budget, Load, Work

__all__ = ["RedisRaw"]

_FIELD: Final = b"v"
_READ_BYTES: Final = 1 << 20
_ENTRY: Final = b"*2\r\n$1\r\nv\r\n"
_LINES_PER_ANSWER: Final = 2


def _command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class RedisRaw:
    """A `Driver` over Redis' own protocol.

    Args:
        endpoint: the server.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def create(self, topic: str) -> None:
        """Do nothing: the first XADD creates a stream."""

    def drop(self, topic: str) -> None:
        """Delete a stream."""
        with connect(self._endpoint.host, self._endpoint.port) as sock:
            sock.sendall(_command(b"DEL", topic.encode()))
            sock.recv(64)

    def produce(self, topics: Sequence[str], load: Load, budget: Budget) -> Work:
        """See `Driver`."""
        lanes = []
        for topic in topics:
            unit = _command(b"XADD", topic.encode(), b"*", _FIELD, load.value) * load.batch_records
            counter = MarkCounter(b"\n", [b"-ERR", b"-OOM", b"-MISCONF"])
            sock = connect(self._endpoint.host, self._endpoint.port)
            lanes.append(Lane(sock, [unit], load.shape.in_flight, _LINES_PER_ANSWER * load.batch_records, counter))
        batches, seconds = run_lanes(lanes, budget, budget.batches(load))
        records = batches * load.batch_records
        return Work(records=records, size_bytes=records * load.record_bytes, seconds=seconds)

    def consume(self, topic: str, load: Load, records: int, budget: Budget) -> Work:
        """See `Driver`; 1 MB of values to a request, as Kafka's consumers ask for."""
        count = b"%d" % max(1, _READ_BYTES // load.record_bytes)
        read = passed = 0
        start = b"-"
        with connect(self._endpoint.host, self._endpoint.port) as sock:
            started = time.perf_counter()
            while True:
                sock.sendall(_command(b"XRANGE", topic.encode(), start, b"+", b"COUNT", count))
                answer = bytearray()
                while not _is_complete(answer, load.record_bytes):
                    part = sock.recv(_READ_BYTES)
                    if not part:
                        raise DriverError("the server closed the connection")
                    answer += part
                got = _element_count(answer)
                read += got
                passed += got
                seconds = time.perf_counter() - started
                if seconds >= budget.seconds or read * load.record_bytes >= budget.size_bytes:
                    return Work(records=read, size_bytes=read * load.record_bytes, seconds=seconds)
                if passed >= records or not got:
                    start, passed = b"-", 0
                else:
                    start = b"(" + _last_id(answer)


def _element_count(answer: bytearray) -> int:
    end = answer.find(b"\r\n")
    if end < 0:
        return -1
    if answer[:1] != b"*":
        raise DriverError(answer[:end].decode(errors="replace"))
    return int(answer[1:end])


def _is_complete(answer: bytearray, record_bytes: int) -> bool:
    """Whether the last entry announced is there to its end; nothing follows it."""
    count = _element_count(answer)
    if count <= 0:
        return count == 0
    last = answer.rfind(MARK)
    if last < 0 or len(answer) < last + record_bytes + 2:
        return False
    return answer.count(MARK) == count


def _last_id(answer: bytearray) -> bytes:
    entry = answer.rfind(_ENTRY)
    line = answer.rfind(b"\r\n", 0, entry - 2) + 2
    return bytes(answer[line : entry - 2])
