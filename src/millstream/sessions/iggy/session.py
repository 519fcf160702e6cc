"""An Iggy connection without its socket: one frame in, its answer out, in whatever dialect the client speaks."""

from collections.abc import Callable
from typing import Any, Final

from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.iggy.call import Call, Client, IggyShared
from millstream.sessions.iggy.error_table import code_of
from millstream.sessions.iggy.table import ENTRIES, Access, Entry
from millstream.sessions.session import Answer, Buffer, Peer
from millstream.wire.iggy.commands import BY_OPERATION, NON_REPLICATED
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode, status_of
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.framing import (
    HEADER_BYTES,
    EvictionReason,
    LongHeader,
    dialect_of_header,
    eviction,
    long_answer,
    measure,
    read_long_header,
    reads_long,
    short_answer,
)
from millstream.wire.iggy.messages.register import read_register
from millstream.wire.iggy.recognition import Recogniser

__all__ = ["IggySession"]

_CODE_POSITION: Final = 4
_PAYLOAD_POSITION: Final = 8
_REGISTER: Final = 40
_LEGACY_LOGINS: Final = (38, 44)
_NO_COMMAND: Final = 1_000_000
"""A code that one client (laser-sdk) sends after its login; an answer without content satisfies it."""
_SUCCESS: Final = bytes(4)
"""The count of results that went wrong, where an answer begins with one."""
_VERSIONS: Final = (11 << 10, 10 << 10)
"""Protocol versions that a client which is sent away is told: this server's, and the oldest that it serves."""
_MISSING: Final = frozenset(
    {
        ErrorCode.RESOURCE_NOT_FOUND,
        ErrorCode.CLIENT_NOT_FOUND,
        ErrorCode.STREAM_ID_NOT_FOUND,
        ErrorCode.STREAM_NAME_NOT_FOUND,
        ErrorCode.TOPIC_ID_NOT_FOUND,
        ErrorCode.TOPIC_NAME_NOT_FOUND,
        ErrorCode.CONSUMER_GROUP_ID_NOT_FOUND,
        ErrorCode.CONSUMER_GROUP_NAME_NOT_FOUND,
        ErrorCode.CONSUMER_OFFSET_NOT_FOUND,
    }
)
_EVICTIONS: Final = {
    ErrorCode.INVALID_CREDENTIALS: EvictionReason.INVALID_CREDENTIALS,
    ErrorCode.INVALID_PERSONAL_ACCESS_TOKEN: EvictionReason.INVALID_TOKEN,
    ErrorCode.PERSONAL_ACCESS_TOKEN_EXPIRED: EvictionReason.INVALID_TOKEN,
    ErrorCode.USER_INACTIVE: EvictionReason.USER_INACTIVE,
    ErrorCode.INCOMPATIBLE_PROTOCOL_VERSION: EvictionReason.INCOMPATIBLE_PROTOCOL,
    ErrorCode.INVALID_COMMAND: EvictionReason.MALFORMED_LOGIN,
    ErrorCode.INVALID_UTF8: EvictionReason.MALFORMED_LOGIN,
}

Respond = Callable[[list[Buffer] | bytearray], list[Buffer]]
Refuse = Callable[[MillstreamError], list[Buffer]]


class IggySession:
    """Serves the requests of one connection.

    Args:
        shared: what all connections share.
        client: this one.
        peer: the connection.
    """

    prefix_bytes = 0
    """None: messages are stored from where they arrived, and what stands before them is room for the frame."""

    def __init__(self, shared: IggyShared, client: Client, peer: Peer) -> None:
        self._shared = shared
        self._client = client
        self._peer = peer
        self._recogniser = Recogniser()
        self._frame_bytes_max = shared.broker.settings.request_bytes_max
        self._long_dialect: Dialect | None = None
        self._commits = 0
        shared.clients[client.id] = client

    def measure(self, buffer: memoryview) -> int:
        """Bytes of the frame at the start of a buffer; 0 if that cannot be told yet. Raises Undecodable."""
        return measure(buffer, self._frame_bytes_max)

    def handle(self, frame: memoryview) -> Answer:
        """Serve one request.

        Args:
            frame: all of it, writable; it may be overwritten once this has returned.

        Raises:
            Undecodable: the connection is to be closed.
        """
        return self._handle_long(frame) if reads_long(frame) else self._handle_short(frame)

    # Requests with a length and a code

    def _handle_short(self, frame: memoryview) -> Answer:
        code = int.from_bytes(frame[_CODE_POSITION:_PAYLOAD_POSITION], "little")
        payload = frame[_PAYLOAD_POSITION:]
        dialect = self._recogniser.see(code, payload)
        self._client.dialect = dialect
        entry = ENTRIES.get(code)

        def respond(content: list[Buffer] | bytearray) -> list[Buffer]:
            if isinstance(content, list):
                return [short_answer(0, sum(map(len, content))), *content]
            return [short_answer(0, len(content)), content]

        def refuse(error: MillstreamError) -> list[Buffer]:
            code = code_of(error)
            if entry is not None and entry.missing_is_empty and code in _MISSING and dialect >= Dialect.B3:
                return [short_answer(0, 0)]
            return [short_answer(status_of(code, dialect), 0)]

        return self._serve(entry, Call(self._shared, self._client, dialect, frame), payload, respond, refuse)

    # Requests with a long header

    def _handle_long(self, frame: memoryview) -> Answer:
        header = read_long_header(frame, is_d0=self._long_dialect is Dialect.D0)
        body = frame[HEADER_BYTES:]
        command = BY_OPERATION.get(header.operation)
        code = header.code if header.operation == NON_REPLICATED else (command.code if command else -1)
        if code == _REGISTER:
            return self._register(header, body, frame)
        if header.is_d0:
            self._long_dialect = Dialect.D0
        dialect = self._long_dialect or dialect_of_header(header)
        self._client.dialect = dialect
        entry = ENTRIES.get(code)
        has_results = entry is not None and entry.command.has_results

        def respond(content: list[Buffer] | bytearray) -> list[Buffer]:
            parts: list[Buffer] = content if isinstance(content, list) else [content]
            if has_results:
                parts = [_SUCCESS, *parts]
            return [self._long_answer(header, 0, sum(map(len, parts))), *parts]

        def refuse(error: MillstreamError) -> list[Buffer]:
            found = code_of(error)
            if entry is not None and entry.missing_is_empty and found in _MISSING:
                return [self._long_answer(header, 0, 0)]
            return [self._long_answer(header, status_of(found, dialect), 0)]

        if code in _LEGACY_LOGINS:
            return self._evict(header, EvictionReason.MALFORMED_LOGIN)
        if code == _NO_COMMAND:
            return respond(bytearray())
        if header.session != self._client.session and self._client.user is not None:
            return refuse(Refused(ErrorCode.INVALID_SESSION, f"session {header.session}"))
        return self._serve(entry, Call(self._shared, self._client, dialect, frame), body, respond, refuse)

    def _register(self, header: LongHeader, body: memoryview, frame: memoryview) -> Answer:
        def respond(content: list[Buffer] | bytearray) -> list[Buffer]:
            assert isinstance(content, bytearray)
            return [self._long_answer(header, 0, len(_SUCCESS) + len(content)), _SUCCESS, content]

        def refuse(error: MillstreamError) -> list[Buffer]:
            return self._evict(header, _EVICTIONS.get(code_of(error), EvictionReason.MALFORMED_LOGIN))

        entry = ENTRIES[_REGISTER]
        try:
            dialect, request = read_register(body, dialect_of_header(header))
        except Refused as error:
            return refuse(error)
        self._long_dialect = self._client.dialect = dialect
        return self._run(entry, Call(self._shared, self._client, dialect, frame), request, respond, refuse)

    def _evict(self, header: LongHeader, reason: int) -> list[Buffer]:
        """Send the client away: the frame that says why, and the end."""
        self._peer.send([eviction(header, reason, *_VERSIONS)])
        self._peer.end(f"evicted for reason {reason}")
        return []

    def _long_answer(self, header: LongHeader, status: int, body_bytes: int) -> bytes:
        self._commits += 1
        now_us = self._shared.broker.runtime.now_ms() * 1000
        return long_answer(header, status, body_bytes, self._commits, now_us)

    # Both

    def _serve(
        self, entry: Entry | None, call: Call, payload: memoryview, respond: Respond, refuse: Refuse
    ) -> Answer:
        """Check who asks, read the request and run its handler."""
        try:
            if entry is None or not entry.command.in_dialect(call.dialect):
                raise Refused(ErrorCode.INVALID_COMMAND, "there is no such command")
            if self._client.user is None and entry.access is Access.USER and not self._may_be_nobody(call.dialect):
                raise Refused(ErrorCode.UNAUTHENTICATED)
            request = entry.command.decode_request(call.dialect, payload)
        except Refused as error:
            return refuse(error)
        return self._run(entry, call, request, respond, refuse)

    def _may_be_nobody(self, dialect: Dialect) -> bool:
        """Whether clients of a dialect need not log in."""
        return self._shared.anonymous and not dialect.has_login

    def _run(self, entry: Entry, call: Call, request: Any, respond: Respond, refuse: Refuse) -> Answer:
        def answer(response: Any) -> list[Buffer]:
            if isinstance(response, list):
                return respond(response)
            return respond(entry.command.encode_response(call.dialect, response))

        try:
            outcome = entry.handle(call, request)
        except (MillstreamError, OSError) as error:
            return refuse(error if isinstance(error, MillstreamError) else Refused(ErrorCode.ERROR, str(error)))
        if isinstance(outcome, Pending):
            if entry.in_turn and not outcome.done:
                # Who sends more behind a login is somebody then; who sends to a topic behind its making finds it.
                self._peer.hold()
                outcome.when_done(lambda _: self._peer.release())
            return outcome.settle(answer, refuse)
        unsaved = self._shared.streams.unsaved
        if unsaved is not None:
            # The answer may tell numbers that do not last yet.
            return unsaved.settle(lambda _: answer(outcome), refuse)
        return answer(outcome)

    def served(self) -> None:
        """Nothing is put off here."""

    def resume(self) -> None:
        """Nothing is kept back here for a slow reader: it is sent only what it asked for."""

    def finish(self) -> None:
        """Nothing waits for more data here."""

    def close(self) -> None:
        """Let the client go, from its groups too."""
        if self._shared.clients.get(self._client.id) is self._client:
            del self._shared.clients[self._client.id]
        for group in self._client.groups:
            group.sharing.leave(self._client.id)
        self._client.groups.clear()
