"""One connection of a length-prefixed protocol: bytes in, answers out, in order.

The unit of work is what one read of the socket brought. All whole frames in it are served in place, as views of the
receive buffer; all answers that are ready leave in one write. An answer that must wait holds back those behind it,
not the serving of the requests.
"""

import asyncio
import logging
import struct
from collections import deque
from typing import Final, Protocol, cast

from millstream.model.pending import Pending
from millstream.wire.kafka.errors import WireError

__all__ = ["ANSWERS_WAITING_MAX", "WRITE_BUFFER_HIGH_BYTES", "FramedConnection", "Session"]

_log = logging.getLogger(__name__)

Buffer = bytes | bytearray | memoryview
Answer = list[Buffer] | Pending[list[Buffer]] | None

_LENGTH: Final = struct.Struct(">i")
_BUFFER_BYTES_FIRST: Final = 16 * 1024
"""Receive buffer of a new connection: most requests fit, and a thousand idle connections take 16 MiB."""
_BUFFER_BYTES_BUSY: Final = 256 * 1024
"""Receive buffer of a connection that keeps filling a smaller one: more requests a read, more answers a write."""
_BUFFER_BYTES_KEPT: Final = 2 * 1024 * 1024
"""A receive buffer that grew beyond this for one large request is given back after it."""
_LARGE_FRAME_BYTES: Final = 64 * 1024
"""A frame of this size is read up to its end and no further, so that nothing behind it has to be moved."""
WRITE_BUFFER_HIGH_BYTES: Final = 4 * 1024 * 1024
"""Bytes waiting for a slow reader at which no more of its requests are served."""
_JOINED_BYTES_MAX: Final = 32 * 1024
"""Bytes up to which the answers of one write are joined: below this the copy costs less than the buffers."""
ROOM_BYTES: Final = 64 * 1024 * 1024
"""Bytes that may wait for one reader in all, answers to requests that it sent before it became slow included."""
ANSWERS_WAITING_MAX: Final = 1000
"""Answers that one connection may wait for; then its requests are left in the socket until some are given."""


class Session(Protocol):
    """Serves the frames of one connection."""

    def handle(self, frame: memoryview) -> Answer:
        """Serve one frame; see `millstream.sessions.kafka.session.KafkaSession.handle`."""

    def finish(self) -> None:
        """Answer what waits for more data with what there is."""

    def close(self) -> None:
        """Call off everything that waits: the peer is gone."""


class Owner(Protocol):
    """Who keeps track of connections."""

    request_bytes_max: int
    request_bytes_min: int

    def session(self, connection: "FramedConnection") -> Session:
        """Make the session of a new connection."""

    def opened(self, connection: "FramedConnection") -> None:
        """A connection has begun."""

    def closed(self, connection: "FramedConnection") -> None:
        """A connection has ended."""


class FramedConnection(asyncio.BufferedProtocol):
    """A connection whose frames are preceded by their length as int32.

    Args:
        owner: keeps track of it, and knows its limits.
    """

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray(_BUFFER_BYTES_FIRST)
        self._filled = 0
        self._read_until = _BUFFER_BYTES_FIRST
        self._answers: deque[list[Buffer] | Pending[list[Buffer]]] = deque()
        self._writing_paused = False
        self._reading_paused = False
        self._flush_due = False
        self._closing = False
        self._stopping = False
        self.peer = self.peer_host = "?"
        self.local: tuple[str, int] = ("", 0)
        self.last_request_s = self._loop.time()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self._transport = transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_HIGH_BYTES)
        peer = transport.get_extra_info("peername")
        local = transport.get_extra_info("sockname")
        self.peer = f"{peer[0]}:{peer[1]}" if peer else "?"
        self.peer_host = peer[0] if peer else "?"
        self.local = (local[0], local[1]) if local else ("", 0)
        self._session = self._owner.session(self)
        self._owner.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)[self._filled : self._read_until]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        self._serve()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._session.close()
        self._answers.clear()
        self._owner.closed(self)

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._go_on()

    # Frames in

    def _serve(self) -> None:
        """Serve all whole frames in the buffer, write what is ready, and make room for the next read."""
        view = memoryview(self._buffer)
        position = 0
        out: list[Buffer] = []
        frame_bytes = 0
        while not self._closing and not self._must_wait():
            left = self._filled - position
            if left < _LENGTH.size:
                break
            (frame_bytes,) = _LENGTH.unpack_from(view, position)
            if not self._owner.request_bytes_min <= frame_bytes <= self._owner.request_bytes_max:
                self._refuse(f"a request of {frame_bytes} bytes", out)
                break
            if left - _LENGTH.size < frame_bytes:
                break
            start = position + _LENGTH.size
            position = start + frame_bytes
            self._serve_frame(view[start:position], out)
        if out:
            self._write(out)
        del view
        self._make_room(position, frame_bytes)
        if self._must_wait() and not self._reading_paused and not self._closing:
            self._reading_paused = True
            self._transport.pause_reading()

    def _serve_frame(self, frame: memoryview, out: list[Buffer]) -> None:
        self.last_request_s = self._loop.time()
        try:
            answer = self._session.handle(frame)
        except WireError as error:
            self._refuse(str(error), out)
            return
        except Exception:  # noqa: BLE001 - see below
            # Ours, whatever it is: loud, and at the cost of this connection alone.
            _log.exception("internal error peer=%s: the connection is closed", self.peer)
            self._end(out)
            return
        if answer is None:
            return
        if isinstance(answer, Pending):
            if not answer.done:
                self._answers.append(answer)
                answer.when_done(self._answer_ready)
                return
            answer = answer.result()
        if self._answers:
            self._answers.append(answer)
        else:
            out += answer

    def _must_wait(self) -> bool:
        return self._stopping or self._writing_paused or len(self._answers) >= ANSWERS_WAITING_MAX

    def _make_room(self, position: int, frame_bytes: int) -> None:
        """Drop what was served, and see that the next frame can arrive.

        The buffer doubles as bytes come in: while reads fill it, up to `_BUFFER_BYTES_BUSY`; for a frame that is
        longer, up to what the frame says it takes.
        """
        left = self._filled - position
        capacity = len(self._buffer)
        frame_end = frame_bytes + _LENGTH.size if left >= _LENGTH.size else 0
        wanted = capacity
        if self._filled == capacity:
            wanted = max(min(capacity * 2, _BUFFER_BYTES_BUSY), min(capacity * 2, frame_end), capacity)
        elif not left and capacity > _BUFFER_BYTES_KEPT:
            wanted = _BUFFER_BYTES_FIRST
        with memoryview(self._buffer) as old:
            if wanted != capacity:
                self._buffer = bytearray(wanted)
                self._buffer[:left] = old[position : self._filled]
            elif position and left:
                old[:left] = old[position : self._filled]
        self._filled = left
        self._read_until = wanted
        if _LARGE_FRAME_BYTES < frame_end < wanted and left < frame_end:
            self._read_until = frame_end

    # Answers out

    def _answer_ready(self, _: Pending[list[Buffer]]) -> None:
        if not self._flush_due and not self._closing:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write the answers at the head of the queue that are there."""
        self._flush_due = False
        if self._closing:
            return
        out: list[Buffer] = []
        while self._answers:
            answer = self._answers[0]
            if isinstance(answer, Pending):
                if not answer.done:
                    break
                try:
                    answer = answer.result()
                except Exception:  # noqa: BLE001 - ours, as in `_serve_frame`
                    _log.exception("internal error peer=%s: the connection is closed", self.peer)
                    self._end(out)
                    return
            self._answers.popleft()
            out += answer
        if out:
            self._write(out)
        self._go_on()

    def _write(self, out: list[Buffer]) -> None:
        """Write buffers at once: small ones joined, which is cheaper; large ones, bodies of batches, uncopied."""
        if len(out) > 1 and sum(map(len, out)) <= _JOINED_BYTES_MAX:
            self._transport.write(b"".join(out))
        else:
            self._transport.writelines(out)

    def _go_on(self) -> None:
        """Serve what was left in the buffer, and read again."""
        if self._reading_paused and not self._must_wait() and not self._closing:
            self._reading_paused = False
            self._serve()
            if not self._reading_paused and not self._closing:
                self._transport.resume_reading()

    def room_bytes(self) -> int:
        """Bytes that may still be queued for the peer; never negative."""
        return max(ROOM_BYTES - self._transport.get_write_buffer_size(), 0)

    @property
    def closing(self) -> bool:
        """Whether it ends once the peer has taken what was written to it."""
        return self._closing

    @property
    def waiting(self) -> int:
        """Answers that the peer waits for."""
        return len(self._answers)

    # The end

    def _refuse(self, reason: str, out: list[Buffer]) -> None:
        _log.warning("connection refused peer=%s reason=%s", self.peer, reason)
        self._end(out)

    def _end(self, out: list[Buffer]) -> None:
        """Write the answers to what came before, for nothing can be written behind the end."""
        if out:
            self._write(out)
            out.clear()
        self.close()

    def stop_serving(self) -> None:
        """Serve no further requests, and wait for nothing that only time would bring; answers still go out."""
        self._stopping = True
        if not self._reading_paused and not self._closing:
            self._reading_paused = True
            self._transport.pause_reading()
        self._session.finish()

    def close(self) -> None:
        """Write what has been written so far, and end the connection."""
        self._closing = True
        self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._closing = True
        self._transport.abort()
