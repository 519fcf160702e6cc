"""One connection of a protocol that speaks in frames: bytes in, answers out, in order.

The unit of work is what one read of the socket brought. All whole frames in it are served in place, as views of the
receive buffer; all answers that are ready leave in one write. An answer that must wait holds back those behind it,
not the serving of the requests.
"""

import asyncio
import logging
from collections import deque
from typing import Final, Protocol, cast

from millstream.model.pending import Pending
from millstream.server.distinguished_names import distinguished_name
from millstream.sessions.session import Buffer, Endpoint, Service
from millstream.wire.errors import WireError

__all__ = ["ANSWERS_WAITING_MAX", "WRITE_BUFFER_HIGH_BYTES", "FramedConnection", "Owner"]

_log = logging.getLogger(__name__)

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


class Owner(Protocol):
    """Who keeps track of connections."""

    def opened(self, connection: "FramedConnection") -> None:
        """A connection has begun."""

    def closed(self, connection: "FramedConnection") -> None:
        """A connection has ended."""

    def endpoint(self, listener: str, local_host: str, protocol: str) -> Endpoint | None:
        """Where a peer is told to reach a listener; see `Peer.endpoint`.

        Args:
            local_host: the address by which that peer came.
            protocol: what it speaks.
        """


class FramedConnection(asyncio.BufferedProtocol):
    """A connection: a `millstream.sessions.session.Peer` to its session.

    Args:
        service: makes its session.
        owner: keeps track of it.
        protocol: what it speaks, by the name of the listener.
    """

    def __init__(self, service: Service, owner: Owner, protocol: str = "") -> None:
        self.protocol = protocol
        self._service = service
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray(_BUFFER_BYTES_FIRST)
        self._filled = 0
        self._read_until = _BUFFER_BYTES_FIRST
        self._answers: deque[list[Buffer] | Pending[list[Buffer]]] = deque()
        self._ready_bytes = 0  # of answers that are there and were not handed to the transport yet
        self._writing_paused = False
        self._reading_paused = False
        self._flush_due = False
        self._closing = False
        self._stopping = False
        self._ending: str | None = None
        self._holds = 0
        self.address = self.host = "?"
        self._local_host = ""
        self.last_request_s = self._loop.time()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self._transport = transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_HIGH_BYTES)
        peer = transport.get_extra_info("peername")
        local = transport.get_extra_info("sockname")
        self.address = f"{peer[0]}:{peer[1]}" if peer else "?"
        self.host = peer[0] if peer else "?"
        self._local_host = local[0] if local else ""
        self._session = self._service.session(self)
        self._owner.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)[self._filled : self._read_until]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        self._serve()

    def take(self, head: bytes) -> None:
        """Take the first bytes, which something else has read to see what the peer speaks."""
        if len(head) > len(self._buffer):
            self._buffer = bytearray(len(head))
            self._read_until = len(head)
        self._buffer[: len(head)] = head
        self.buffer_updated(len(head))

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
        self._session.resume()
        self._go_on()

    # Frames in

    def _serve(self) -> None:
        """Serve all whole frames in the buffer, write what is ready, and make room for the next read."""
        view = memoryview(self._buffer)
        session = self._session
        position = 0
        out: list[Buffer] = []
        frame_bytes = 0
        while position < self._filled and not self._closing and not self._must_wait():
            try:
                frame_bytes = session.measure(view[position : self._filled])
            except WireError as error:
                self._refuse(str(error), out)
                break
            if not frame_bytes or self._filled - position < frame_bytes:
                break
            start = position + session.prefix_bytes
            position += frame_bytes
            self._serve_frame(view[start:position], out)
            frame_bytes = 0
        stopped = self._must_wait()
        if position:
            self._frames_served(out)
        if out:
            self._hand_over(out)
        del view
        self._make_room(position, frame_bytes)
        waits = self._must_wait()
        if (stopped or waits) and not self._reading_paused and not self._closing:
            self._reading_paused = True
            self._transport.pause_reading()
            if not waits:  # what kept frames in the buffer has gone with the answers, and nobody else knows of them
                self._loop.call_soon(self._go_on)

    def _serve_frame(self, frame: memoryview, out: list[Buffer]) -> None:
        try:
            answer = self._session.handle(frame)
        except WireError as error:
            self._refuse(str(error), out)
            return
        except Exception:  # noqa: BLE001 - see below
            # Ours, whatever it is: loud, and at the cost of this connection alone.
            _log.exception("internal error peer=%s: the connection is closed", self.address)
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
        self._ready_bytes += sum(map(len, answer))
        if self._answers:
            self._answers.append(answer)
            return
        out += answer
        if self._ready_bytes >= WRITE_BUFFER_HIGH_BYTES:
            # Now, so that it is known whether the peer is too slow for the requests behind.
            self._hand_over(out)
            out.clear()

    def _frames_served(self, out: list[Buffer]) -> None:
        self.last_request_s = self._loop.time()
        try:
            self._session.served()
        except Exception:  # noqa: BLE001 - ours, as in `_serve_frame`
            _log.exception("internal error peer=%s: the connection is closed", self.address)
            self._end(out)

    def _must_wait(self) -> bool:
        return bool(
            self._stopping
            or self._writing_paused
            or self._holds
            or self._ending is not None
            or len(self._answers) >= ANSWERS_WAITING_MAX
            or self._ready_bytes >= WRITE_BUFFER_HIGH_BYTES
        )

    def _make_room(self, position: int, frame_bytes: int) -> None:
        """Drop what was served, and see that the next frame, whose size may be known already, can arrive.

        The buffer doubles as bytes come in: while reads fill it, up to `_BUFFER_BYTES_BUSY`; for a frame that is
        longer, up to what the frame says it takes.
        """
        left = self._filled - position
        capacity = len(self._buffer)
        wanted = capacity
        if self._filled == capacity:
            wanted = max(min(capacity * 2, _BUFFER_BYTES_BUSY), min(capacity * 2, frame_bytes), capacity)
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
        if _LARGE_FRAME_BYTES < frame_bytes < wanted and left < frame_bytes:
            self._read_until = frame_bytes

    # Answers out

    def _answer_ready(self, answer: Pending[list[Buffer]]) -> None:
        if not answer.failed:
            self._ready_bytes += sum(map(len, answer.result()))
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
                    _log.exception("internal error peer=%s: the connection is closed", self.address)
                    self._end(out)
                    return
            self._answers.popleft()
            out += answer
        if out:
            self._hand_over(out)
        self._end_if_answered()
        self._go_on()

    def _hand_over(self, out: list[Buffer]) -> None:
        """Write answers."""
        self._ready_bytes -= sum(map(len, out))
        self._write(out)

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

    # What its session asks for

    def endpoint(self, listener: str) -> Endpoint | None:
        """Where this peer is told to reach a listener; see `Peer.endpoint`."""
        return self._owner.endpoint(listener, self._local_host, self.protocol)

    def send(self, buffers: list[Buffer]) -> None:
        """Write at once, whatever answers are due."""
        if not self._closing:
            self._write(buffers)

    def hold(self) -> None:
        """Serve no more requests until `release`."""
        self._holds += 1

    def release(self) -> None:
        """Take back one `hold`."""
        self._holds -= 1
        if not self._holds and self._reading_paused:
            # Not from within: whoever releases may be in the midst of serving.
            self._loop.call_soon(self._go_on)

    def end(self, reason: str) -> None:
        """End the connection, with a line in the log."""
        if not self._closing:
            self._refuse(reason, [])

    def end_answered(self, reason: str) -> None:
        """Serve nothing any more, and end the connection once all answers that are due were written."""
        if self._ending is None:
            self._ending = reason
            self._loop.call_soon(self._end_if_answered)

    def _end_if_answered(self) -> None:
        if self._ending is not None and not self._answers:
            self.end(self._ending)

    def room_bytes(self) -> int:
        """Bytes that may still be queued for the peer; never negative."""
        return max(ROOM_BYTES - self._transport.get_write_buffer_size() - self._ready_bytes, 0)

    @property
    def certified_name(self) -> str | None:
        """The distinguished name in the certificate that the peer has shown; None if it has shown none."""
        certificate = self._transport.get_extra_info("peercert")
        return distinguished_name(certificate["subject"]) if certificate else None

    @property
    def reading(self) -> bool:
        """Whether what the peer sends is read."""
        return not self._reading_paused

    @property
    def closing(self) -> bool:
        """Whether it ends once the peer has taken what was written to it."""
        return self._closing

    @property
    def waiting(self) -> int:
        """Answers that the peer waits for, and what holds it."""
        return len(self._answers) + self._holds

    # The end

    def _refuse(self, reason: str, out: list[Buffer]) -> None:
        _log.warning("connection refused peer=%s reason=%s", self.address, reason)
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
