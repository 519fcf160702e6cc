"""A Pulsar connection without its socket: one frame in, any number of frames out, whenever they are due."""

from millstream.model.errors import MillstreamError
from millstream.model.runtime import Timer
from millstream.sessions.pulsar.connect import look_at_token
from millstream.sessions.pulsar.link import KEEP_ALIVE_MS, PINGS_FROM, Link, PulsarShared
from millstream.sessions.pulsar.plain_runs import PlainRuns
from millstream.sessions.pulsar.table import HANDLERS
from millstream.sessions.session import Answer, Peer
from millstream.wire.errors import WireError
from millstream.wire.pulsar.errors import MalformedFrame
from millstream.wire.pulsar.frames import PREFIX_BYTES, command_name, measure_frame, read_frame
from millstream.wire.pulsar.pulsar_pb2 import CommandPing

__all__ = ["PulsarSession"]


class PulsarSession:
    """Serves the commands of one connection.

    Args:
        shared: what all connections share.
        peer: this one.
    """

    prefix_bytes = PREFIX_BYTES

    def __init__(self, shared: PulsarShared, peer: Peer) -> None:
        self._link = Link(shared, peer)
        self._plain_runs = PlainRuns(self._link)
        self._runtime = shared.broker.runtime
        self._heard_ms = self._runtime.monotonic_ms()
        self._asked = False
        self._timer: Timer = self._runtime.call_later(KEEP_ALIVE_MS / 1000, self._look)

    def measure(self, buffer: memoryview) -> int:
        """Bytes of the frame at the start of a buffer; see `measure_frame`."""
        try:
            return measure_frame(buffer)
        except WireError:
            self._answer_what_came_before()
            raise

    def handle(self, frame: memoryview) -> Answer:
        """Serve one command. Answers are sent as they come, so there is never one to return.

        Raises:
            WireError: the connection is to be closed.
        """
        if not self._plain_runs.take(frame):
            try:
                self._handle(frame)
            except WireError:
                self._answer_what_came_before()
                raise
        return None

    def _handle(self, frame: memoryview) -> None:
        command, entry = read_frame(frame)
        handler = HANDLERS.get(command.type)
        if handler is None:
            raise MalformedFrame(f"the command {command_name(command.type)} is not served")
        link = self._link
        if link.protocol_version < 0 and not handler.before_connect:
            raise MalformedFrame(f"{handler.name} before CONNECT")
        body = getattr(command, handler.field)
        if not command.HasField(handler.field) and not body.IsInitialized():
            # A default would stand for whatever has the number 0.
            raise MalformedFrame(f"a {handler.name} command without its body")
        try:
            if handler.entry:
                handler.handle(link, body, memoryview(b"") if entry is None else entry)
            else:
                handler.handle(link, body)
        except WireError:
            raise
        except (MillstreamError, OSError) as error:
            request_id = getattr(body, "request_id", None)
            if request_id is None:
                raise MalformedFrame(f"{handler.name}: {error}") from None
            link.refuse(request_id, error)

    def _answer_what_came_before(self) -> None:
        """Send what is due: nothing can be written behind the end of the connection."""
        self._plain_runs.store()
        self._link.receipts.send_ready()

    def served(self) -> None:
        """Store the plain messages that one read brought, and send the receipts that are due."""
        self._plain_runs.store()
        self._heard_ms = self._runtime.monotonic_ms()
        self._asked = False
        self._link.heard()
        self._link.receipts.send_ready()

    def _look(self) -> None:
        """Ask a silent peer whether it is there; give up one that has not answered, or whose token has expired."""
        look_at_token(self._link)
        if self._link.closed:
            return
        silent_ms = self._runtime.monotonic_ms() - self._heard_ms
        if silent_ms >= KEEP_ALIVE_MS:
            if self._asked and self._link.peer.reading:  # else its answer may be waiting to be read
                self._link.peer.end("it did not answer PING")
                return
            version = self._link.protocol_version
            if version >= PINGS_FROM and not self._asked:
                self._link.send(CommandPing())
            # Who has not said CONNECT is given up without being asked; who does not know PING never is.
            self._asked = version < 0 or version >= PINGS_FROM
            silent_ms = 0
        self._timer = self._runtime.call_later((KEEP_ALIVE_MS - silent_ms) / 1000, self._look)

    def resume(self) -> None:
        """The peer has room again: what was kept back goes on."""
        for consumer in list(self._link.consumers.values()):
            consumer.resume()
        for watcher in list(self._link.watchers.values()):
            watcher.resume()

    def finish(self) -> None:
        """Nothing waits here that an earlier answer would help."""

    def close(self) -> None:
        """Let go of all producers and consumers: the client is gone."""
        link = self._link
        self._plain_runs.store()
        link.closed = True
        self._timer.cancel()
        link.lost()
        for attached in (*link.producers.values(), *link.consumers.values()):
            attached.close()
        for watcher_id in list(link.watchers):
            link.unwatch(watcher_id)
        link.producers.clear()
        link.consumers.clear()
