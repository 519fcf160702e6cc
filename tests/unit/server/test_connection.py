"""One connection on a transport that only remembers: frames in, answers out, order, limits, and the end."""

import asyncio
import functools
import struct
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from millstream.model.pending import Pending, settled
from millstream.server.connection import ANSWERS_WAITING_MAX, WRITE_BUFFER_HIGH_BYTES, FramedConnection
from millstream.sessions.session import Buffer, Endpoint
from millstream.wire.kafka.errors import MalformedMessage

REQUEST_BYTES_MIN = 10
REQUEST_BYTES_MAX = 8 * 1024 * 1024


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on an event loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class Transport:
    """What a connection does to its transport."""

    def __init__(self) -> None:
        self.protocol: FramedConnection | None = None
        self.written = bytearray()
        self.writes = 0
        self.reading = True
        self.closed = self.aborted = False
        self.unsent_bytes = 0
        self.pause_at_bytes: int | None = None

    def set_write_buffer_limits(self, high: int) -> None:
        assert high > 0

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return ("10.0.0.1", 5555) if name == "peername" else ("10.0.0.2", 9092)

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def write(self, data: Buffer) -> None:
        self.writelines([data])

    def writelines(self, buffers: list[Buffer]) -> None:
        assert not self.closed, "what is written to a closed transport is lost"
        self.writes += 1
        self.written += b"".join(buffers)
        if self.pause_at_bytes is not None and len(self.written) >= self.pause_at_bytes:
            assert self.protocol is not None
            self.protocol.pause_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True


Answer = Any


class Session:
    """A session that answers with the body of the request, or as a test says."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.answer: Callable[[bytes], Answer] = lambda frame: [b"<", frame, b">"]
        self.finished = self.closed = 0

        self.resumed = 0
        self.served_after: list[int] = []

    prefix_bytes = 4

    def measure(self, buffer: memoryview) -> int:
        if len(buffer) < 4:
            return 0
        length = int.from_bytes(buffer[:4], "big", signed=True)
        if not REQUEST_BYTES_MIN <= length <= REQUEST_BYTES_MAX:
            raise MalformedMessage(f"a request of {length} bytes")
        return length + 4

    def served(self) -> None:
        self.served_after.append(len(self.frames))

    def resume(self) -> None:
        self.resumed += 1

    def handle(self, frame: memoryview) -> Answer:
        content = bytes(frame)
        self.frames.append(content)
        return self.answer(content)

    def finish(self) -> None:
        self.finished += 1

    def close(self) -> None:
        self.closed += 1


class Peer:
    """A connection, its session, its transport, and who sends to it."""

    def __init__(self) -> None:
        self.connections: list[FramedConnection] = []
        self.its_session = Session()
        self.transport = Transport()
        self.connection = FramedConnection(self, self)
        self.transport.protocol = self.connection
        self.connection.connection_made(cast(asyncio.BaseTransport, self.transport))

    def session(self, peer: object) -> Session:
        return self.its_session

    def close(self) -> None:
        pass

    def endpoint(self, listener: str, local_host: str, protocol: str) -> Endpoint | None:
        return Endpoint(local_host, 9092) if not listener else None

    def opened(self, connection: FramedConnection) -> None:
        self.connections.append(connection)

    def closed(self, connection: FramedConnection) -> None:
        self.connections.remove(connection)

    @property
    def capacity(self) -> int:
        """Bytes of the receive buffer."""
        return len(self.connection._buffer)

    def reading(self) -> bool:
        """Whether the connection takes more bytes."""
        return self.transport.reading

    def send(self, data: bytes, read_bytes: int = 2**30) -> bytes:
        """Send bytes, in reads of a size; returns what was left when the connection stopped reading."""
        position = 0
        while position < len(data) and self.transport.reading and not self.transport.closed:
            room = self.connection.get_buffer(-1)
            assert len(room) > 0
            size = min(len(room), read_bytes, len(data) - position)
            room[:size] = data[position : position + size]
            del room
            self.connection.buffer_updated(size)
            position += size
        return data[position:]


def frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


CONTENTS = [b"a" * 10, b"b" * 300, b"c" * 11]
STREAM = b"".join(map(frame, CONTENTS))
ANSWERED = b"".join(b"<%b>" % content for content in CONTENTS)


@on_loop
async def test_frames_cut_at_every_byte() -> None:
    for cut in range(len(STREAM) + 1):
        peer = Peer()
        peer.send(STREAM[:cut])
        peer.send(STREAM[cut:])
        assert peer.its_session.frames == CONTENTS
        assert peer.transport.written == ANSWERED


@on_loop
async def test_frames_that_come_byte_by_byte() -> None:
    peer = Peer()
    peer.send(STREAM, read_bytes=1)
    assert peer.its_session.frames == CONTENTS
    assert peer.transport.written == ANSWERED


@on_loop
async def test_all_answers_of_one_read_leave_in_one_write() -> None:
    peer = Peer()
    peer.send(STREAM)
    assert peer.transport.writes == 1


@on_loop
async def test_a_session_is_told_once_behind_the_frames_of_one_read() -> None:
    peer = Peer()
    peer.send(STREAM + STREAM[:5])
    assert peer.its_session.served_after == [3]
    peer.send(STREAM[5:9])
    assert peer.its_session.served_after == [3]
    peer.send(STREAM[9:])
    assert peer.its_session.served_after == [3, 6]


@on_loop
async def test_a_request_without_an_answer() -> None:
    peer = Peer()
    peer.its_session.answer = lambda content: None if content == CONTENTS[1] else [content]
    peer.send(STREAM)
    assert peer.transport.written == CONTENTS[0] + CONTENTS[2]


@pytest.mark.parametrize("read_bytes", [1000, 65536, 2**30])
@pytest.mark.parametrize("size", [16 * 1024 - 4, 16 * 1024, 100_000, 5_000_000])
@on_loop
async def test_a_large_frame_grows_the_buffer_only_as_its_bytes_come(size: int, read_bytes: int) -> None:
    peer = Peer()
    content = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    data = frame(content) + frame(CONTENTS[0])
    first = peer.capacity
    for position in range(0, len(data), read_bytes):
        assert peer.capacity <= max(2 * position, first)
        peer.send(data[position : position + read_bytes])
    assert peer.its_session.frames == [content, CONTENTS[0]]
    assert peer.capacity <= 4 * 1024 * 1024


@on_loop
async def test_a_length_alone_takes_no_memory() -> None:
    peer = Peer()
    first = peer.capacity
    peer.send(struct.pack(">i", REQUEST_BYTES_MAX) + b"x" * 100)
    assert peer.capacity == first


@pytest.mark.parametrize("length", [-1, -(2**31), 0, REQUEST_BYTES_MIN - 1, REQUEST_BYTES_MAX + 1, 2**31 - 1])
@on_loop
async def test_a_length_that_cannot_be_ends_the_connection(length: int) -> None:
    peer = Peer()
    peer.send(STREAM + struct.pack(">i", length) + bytes(50))
    assert peer.transport.closed
    assert peer.its_session.frames == CONTENTS
    assert peer.transport.written == ANSWERED


@on_loop
async def test_a_frame_of_each_bound_is_served() -> None:
    peer = Peer()
    for size in (REQUEST_BYTES_MIN, REQUEST_BYTES_MAX):
        peer.send(frame(bytes(size)))
    assert [len(content) for content in peer.its_session.frames] == [REQUEST_BYTES_MIN, REQUEST_BYTES_MAX]


@pytest.mark.parametrize("error", [MalformedMessage("not a request"), RuntimeError("ours")])
@on_loop
async def test_an_error_ends_the_connection_after_what_was_answered_before_it(error: Exception) -> None:
    peer, other = Peer(), Peer()

    def answer(content: bytes) -> Answer:
        if content == CONTENTS[1]:
            raise error
        return [content]

    peer.its_session.answer = answer
    peer.send(STREAM)
    assert peer.its_session.frames == CONTENTS[:2]
    assert peer.transport.closed
    assert peer.transport.written == CONTENTS[0]
    other.send(STREAM)
    assert other.transport.written == ANSWERED


# Answers that come later


@on_loop
async def test_answers_keep_the_order_of_their_requests() -> None:
    peer = Peer()
    later: dict[bytes, Pending[list[Buffer]]] = {CONTENTS[0]: Pending(), CONTENTS[2]: Pending()}
    peer.its_session.answer = lambda content: later.get(content, [content])
    peer.send(STREAM + frame(b"d" * 10))
    assert peer.connection.waiting == 4
    later[CONTENTS[2]].resolve([b"third"])
    await asyncio.sleep(0)
    assert peer.transport.written == b""
    later[CONTENTS[0]].resolve([b"first"])
    await asyncio.sleep(0)
    assert peer.transport.written == b"first" + CONTENTS[1] + b"third" + b"d" * 10
    assert peer.connection.waiting == 0
    assert peer.transport.writes == 1


@on_loop
async def test_an_answer_that_is_there_already_does_not_wait() -> None:
    peer = Peer()
    peer.its_session.answer = lambda content: settled([content])
    peer.send(STREAM)
    assert peer.transport.written == b"".join(CONTENTS)


@on_loop
async def test_a_request_that_settles_the_one_before_it() -> None:
    peer = Peer()
    first: Pending[list[Buffer]] = Pending()

    def answer(content: bytes) -> Answer:
        if content == CONTENTS[0]:
            return first
        if content == CONTENTS[1]:
            first.resolve([b"first"])
        return [content]

    peer.its_session.answer = answer
    peer.send(STREAM)
    await asyncio.sleep(0)
    assert peer.transport.written == b"first" + CONTENTS[1] + CONTENTS[2]


@on_loop
async def test_an_answer_that_fails_ends_the_connection() -> None:
    peer = Peer()
    first: Pending[list[Buffer]] = Pending()
    second: Pending[list[Buffer]] = Pending()
    peer.its_session.answer = lambda content: {CONTENTS[0]: first, CONTENTS[1]: second}.get(content, [content])
    peer.send(STREAM)
    first.resolve([b"first"])
    second.fail(RuntimeError("ours"))
    await asyncio.sleep(0)
    assert peer.transport.written == b"first"
    assert peer.transport.closed


@on_loop
async def test_only_so_many_answers_are_waited_for() -> None:
    peer = Peer()
    later: list[Pending[list[Buffer]]] = []

    def answer(content: bytes) -> Answer:
        later.append(Pending())
        return later[-1]

    peer.its_session.answer = answer
    contents = [b"%010d" % number for number in range(2 * ANSWERS_WAITING_MAX + 500)]
    left = b"".join(map(frame, contents))
    answered = 0
    while left or answered < len(contents):
        left = peer.send(left, read_bytes=1000)
        if left:
            assert len(later) - answered == peer.connection.waiting == ANSWERS_WAITING_MAX
            assert not peer.reading()
        for number in range(answered, len(later)):
            later[number].resolve([contents[number]])
        answered = len(later)
        await asyncio.sleep(0)
        assert peer.reading()
    assert peer.transport.written == b"".join(contents)


# A peer that does not read


@on_loop
async def test_a_peer_that_does_not_read_is_not_served() -> None:
    peer = Peer()
    peer.transport.pause_at_bytes = 1
    peer.send(STREAM)
    assert peer.transport.written == ANSWERED  # one read is served whole
    assert not peer.reading()
    peer.transport.pause_at_bytes = None
    peer.connection.resume_writing()
    assert peer.reading()
    peer.send(STREAM)
    assert peer.transport.written == 2 * ANSWERED


@on_loop
async def test_a_peer_that_stops_reading_while_it_is_served_what_it_had_sent() -> None:
    peer = Peer()
    peer.connection.pause_writing()
    peer.send(STREAM)
    assert peer.its_session.frames == []
    peer.transport.pause_at_bytes = 1
    peer.connection.resume_writing()
    assert peer.its_session.frames == CONTENTS
    assert not peer.reading()
    peer.transport.pause_at_bytes = None
    peer.connection.resume_writing()
    assert peer.reading()


@on_loop
async def test_a_full_buffer_that_may_not_be_served_yet_loses_nothing() -> None:
    peer = Peer()
    content = bytes(1000)
    peer.connection.pause_writing()
    data = frame(content) * 100
    left = peer.send(data)
    assert len(left) > 0
    peer.connection.resume_writing()
    peer.send(left)
    assert peer.its_session.frames == [content] * 100


@on_loop
async def test_a_read_full_of_requests_for_much_is_served_only_as_far_as_the_peer_reads() -> None:
    peer = Peer()
    peer.transport.pause_at_bytes = WRITE_BUFFER_HIGH_BYTES
    peer.its_session.answer = lambda content: [bytes(WRITE_BUFFER_HIGH_BYTES // 2)]
    peer.send(STREAM * 10)
    assert len(peer.its_session.frames) == 2
    assert len(peer.transport.written) == WRITE_BUFFER_HIGH_BYTES
    assert not peer.reading()
    peer.transport.pause_at_bytes = None
    peer.connection.resume_writing()
    assert len(peer.its_session.frames) == 30
    assert peer.reading()


@on_loop
async def test_answers_that_wait_for_an_earlier_one_take_up_room() -> None:
    peer = Peer()
    room = peer.connection.room_bytes()
    waited_for: list[Pending[list[Buffer]]] = [Pending(), Pending()]
    answers: list[Answer] = [*waited_for, [bytes(1000)]]
    peer.its_session.answer = lambda content: answers.pop(0) if answers else [bytes(WRITE_BUFFER_HIGH_BYTES)]
    peer.send(STREAM)
    assert peer.connection.room_bytes() == room - 1000
    waited_for[1].resolve([bytes(500)])
    assert peer.connection.room_bytes() == room - 1500
    peer.send(STREAM)
    assert len(peer.its_session.frames) == 4
    assert not peer.reading()
    waited_for[0].resolve([])
    await asyncio.sleep(0)
    assert len(peer.its_session.frames) == 6
    assert peer.connection.room_bytes() == room
    assert peer.reading()


@on_loop
async def test_the_room_for_answers_is_never_negative() -> None:
    peer = Peer()
    room = peer.connection.room_bytes()
    peer.transport.unsent_bytes = 1000
    assert peer.connection.room_bytes() == room - 1000
    peer.transport.unsent_bytes = 2**40
    assert peer.connection.room_bytes() == 0


# The end


@on_loop
async def test_a_connection_that_stops_serving_still_answers() -> None:
    peer = Peer()
    later: Pending[list[Buffer]] = Pending()
    peer.its_session.answer = lambda content: later
    peer.send(frame(CONTENTS[0]) + frame(CONTENTS[1])[:7])
    peer.connection.stop_serving()
    assert peer.its_session.finished == 1
    assert not peer.reading()
    later.resolve([b"answer"])
    await asyncio.sleep(0)
    assert peer.transport.written == b"answer"
    assert not peer.reading()
    peer.connection.resume_writing()
    assert peer.its_session.frames == CONTENTS[:1]
    peer.connection.close()
    assert peer.transport.closed


@on_loop
async def test_a_connection_that_is_lost_calls_off_what_waits() -> None:
    peer = Peer()
    later: Pending[list[Buffer]] = Pending()
    peer.its_session.answer = lambda content: later
    peer.send(frame(CONTENTS[0]))
    assert peer.connections == [peer.connection]
    peer.connection.connection_lost(None)
    assert (peer.its_session.closed, peer.connections, peer.connection.waiting) == (1, [], 0)
    later.resolve([b"too late"])
    await asyncio.sleep(0)
    assert peer.transport.written == b""


@on_loop
async def test_an_answer_that_comes_between_close_and_the_end_is_not_written() -> None:
    peer = Peer()
    later: Pending[list[Buffer]] = Pending()
    peer.its_session.answer = lambda content: later
    peer.send(frame(CONTENTS[0]))
    later.resolve([b"answer"])
    peer.connection.close()
    await asyncio.sleep(0)
    assert peer.transport.written == b""


@on_loop
async def test_a_peer_that_has_sent_its_last_byte_is_let_go() -> None:
    peer = Peer()
    assert peer.connection.eof_received() is False
    assert (peer.connection.address, peer.connection.host) == ("10.0.0.1:5555", "10.0.0.1")
    assert peer.connection.endpoint("") == Endpoint("10.0.0.2", 9092)
    peer.connection.abort()
    assert peer.transport.aborted


@on_loop
async def test_a_session_writes_when_it_wants_whatever_is_due() -> None:
    peer = Peer()
    peer.its_session.answer = lambda _: Pending()
    peer.send(frame(b"0123456789"))
    peer.connection.send([b"news", b" at once"])
    assert bytes(peer.transport.written) == b"news at once"
    peer.connection.end("enough")
    assert peer.transport.closed
    peer.connection.send([b"nothing more"])
    assert bytes(peer.transport.written) == b"news at once"


@on_loop
async def test_a_held_connection_serves_nothing_until_every_hold_is_taken_back() -> None:
    peer = Peer()
    peer.connection.hold()
    peer.connection.hold()
    peer.send(frame(b"0123456789"))
    assert (peer.its_session.frames, peer.transport.reading) == ([], False)
    peer.connection.release()
    await asyncio.sleep(0)
    assert peer.its_session.frames == []
    peer.connection.release()
    assert peer.its_session.frames == []  # whoever releases may be in the midst of serving
    await asyncio.sleep(0)
    assert (peer.its_session.frames, peer.transport.reading) == ([b"0123456789"], True)


@on_loop
async def test_a_connection_that_ends_once_answered_serves_nothing_more_and_gives_every_answer() -> None:
    peer = Peer()
    waiting: Pending[list[Buffer]] = Pending()

    def answer(content: bytes) -> Answer:
        if content == CONTENTS[1]:
            peer.connection.end_answered("it is not let in")
            return [b"no"]
        return waiting

    peer.its_session.answer = answer
    peer.send(STREAM)
    await asyncio.sleep(0)
    assert peer.its_session.frames == CONTENTS[:2]
    assert not peer.transport.written
    assert not peer.transport.closed
    waiting.resolve([b"first "])
    await asyncio.sleep(0)
    assert peer.transport.written == b"first no"
    assert peer.transport.closed


@on_loop
async def test_a_connection_whose_last_answer_is_there_ends_behind_it() -> None:
    peer = Peer()

    def answer(content: bytes) -> Answer:
        peer.connection.end_answered("it is not let in")
        return [b"no"]

    peer.its_session.answer = answer
    peer.send(STREAM)
    assert peer.transport.written == b"no"
    assert not peer.transport.closed
    await asyncio.sleep(0)
    assert (len(peer.its_session.frames), peer.transport.closed) == (1, True)


@on_loop
async def test_a_connection_that_was_recognised_begins_with_what_has_arrived() -> None:
    peer = Peer()
    frames = [bytes([65 + n % 26]) * 10 for n in range(3000)]
    peer.connection.take(b"".join(map(frame, frames)) + frame(b"9876543210")[:7])
    assert peer.its_session.frames == frames
    peer.send(frame(b"9876543210")[7:])
    assert peer.its_session.frames[-1] == b"9876543210"


@on_loop
async def test_a_session_is_told_when_its_peer_reads_again() -> None:
    peer = Peer()
    peer.connection.pause_writing()
    assert peer.its_session.resumed == 0
    peer.connection.resume_writing()
    assert peer.its_session.resumed == 1
