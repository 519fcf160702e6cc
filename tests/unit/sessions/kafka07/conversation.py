"""A Kafka 0.7 client's side of a session without a socket, on virtual time and a disk in memory."""

from dataclasses import dataclass, field

from millstream.broker.partition import Partition
from millstream.model.pending import Pending
from millstream.model.topic_name import TopicName
from millstream.sessions.kafka07.service import Kafka07Service
from millstream.sessions.session import Buffer, Endpoint
from millstream.wire.errors import WireError
from millstream.wire.kafka07.requests import (
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    Request,
    encode_request,
)
from millstream.wire.kafka07.responses import Fetched, decode_fetch, decode_multifetch, decode_offsets
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import SimulatedBroker, append

__all__ = ["Conversation"]

ANY_SIZE = 1 << 30


@dataclass
class FakePeer:
    """A connection that remembers what its session did to it."""

    host: str = "127.0.0.1"
    address: str = "127.0.0.1:5"
    certified_name: str | None = None
    room: int = 64 * 1024 * 1024
    held: int = 0
    reading: bool = True
    ended: list[str] = field(default_factory=list)

    def endpoint(self, listener: str) -> Endpoint | None:
        return None

    def send(self, buffers: list[Buffer]) -> None:
        raise AssertionError("nothing is sent unasked")

    def room_bytes(self) -> int:
        return self.room

    def hold(self) -> None:
        self.held += 1

    def release(self) -> None:
        self.held -= 1

    def end(self, reason: str) -> None:
        self.ended.append(reason)

    def end_answered(self, reason: str) -> None:
        self.end(reason)


class Conversation(SimulatedBroker):
    """One client of a simulated broker. Arguments as for `SimulatedBroker`."""

    def start(self) -> None:
        super().start()
        self.service = Kafka07Service(self.broker)
        self.connect()
        self.runtime.run()

    def connect(self) -> None:
        """Begin a new connection."""
        self.peer = FakePeer()
        self.session = self.service.session(self.peer)

    def restart(self) -> None:
        self.wait(self.broker.close())
        self.service.close()
        self.runtime.run()
        self.start()

    def send(self, request: Request) -> Pending[list[Buffer]] | list[Buffer] | None:
        """Send a request; what the session gives back. The request is overwritten, as a receive buffer is."""
        frame = bytearray(encode_request(request))
        assert self.session.measure(memoryview(frame)) == len(frame)
        answer = self.session.handle(memoryview(frame)[self.session.prefix_bytes :])
        frame[:] = b"\xee" * len(frame)
        return answer

    def ask(self, request: Request) -> memoryview:
        """Send a request, let everything run that needs no time, and give the answer without its length."""
        answer = self.send(request)
        assert answer is not None
        buffers: list[Buffer] = self.wait(answer) if isinstance(answer, Pending) else answer
        whole = b"".join(buffers)
        assert int.from_bytes(whole[:4], "big") == len(whole) - 4
        return memoryview(whole)[4:]

    def produce(self, messages: bytes, partition: int = 0, name: str = "orders") -> None:
        """Produce a message set, and let everything run that needs no time."""
        assert self.send(ProduceRequest(name, partition, messages)) is None
        self.runtime.run()

    def refused(self, request: Request) -> bool:
        """Whether a request costs its connection, which is then made anew."""
        try:
            assert self.send(request) is None
            self.runtime.run()
        except WireError:
            self.connect()
            return True
        ended = bool(self.peer.ended)
        if ended:
            self.connect()
        return ended

    def multi_produce(self, *parts: ProduceRequest) -> None:
        """Produce several sets, and let everything run that needs no time."""
        assert self.send(MultiProduceRequest(parts)) is None
        self.runtime.run()

    def fetch(
        self, offset: int = 0, max_size: int = ANY_SIZE, partition: int = 0, name: str = "orders"
    ) -> tuple[int, bytes]:
        """Fetch; gives the error and the bytes."""
        return joined(decode_fetch(self.ask(FetchRequest(name, partition, offset, max_size))))

    def multi_fetch(self, *fetches: FetchRequest) -> list[tuple[int, bytes]]:
        """Fetch from several partitions."""
        return [joined(part) for part in decode_multifetch(self.ask(MultiFetchRequest(fetches)))]

    def offsets(self, time_ms: int = -1, count: int = 100, partition: int = 0, name: str = "orders") -> list[int]:
        """Ask for addresses."""
        return decode_offsets(self.ask(OffsetsRequest(name, partition, time_ms, count)))

    def first(self) -> int:
        """The first address that is left."""
        (address,) = self.offsets(-2, 1)
        return address

    def end(self) -> int:
        """The address behind the last message."""
        return self.offsets(-1, 1)[0]

    def partition(self, index: int = 0, name: str = "orders") -> Partition:
        """A partition of a topic."""
        return self.topic(name).partitions[index]

    def topic_exists(self, name: str) -> bool:
        """Whether there is such a topic."""
        return self.broker.topics.by_flat_name(TopicName.from_flat(name).flat) is not None

    def write_kafka(self, *values: bytes) -> None:
        """Let a client of today's Kafka write a batch of one record for each value."""
        for value in values:
            append(self.partition(), batch(value, timestamp_ms=self.runtime.now_ms()))
        self.runtime.run()


def joined(fetched: Fetched) -> tuple[int, bytes]:
    return fetched.error, b"".join(fetched.messages)
