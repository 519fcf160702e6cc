"""Connections to the brokers of a cluster, over which the Spark side asks in Kafka's protocol, blocking.

It speaks through the same codecs as the server. It runs in Spark's Python workers, where there is no event loop
and where every import costs each task some milliseconds.
"""

import itertools
import socket
import struct
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from millstream.spark.errors import AuthenticationFailed, BrokerUnreachable
from millstream.spark.sasl import Sasl
from millstream.spark.servers import Servers
from millstream.wire.kafka.api import Api
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.kafka.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from millstream.wire.kafka.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest

if TYPE_CHECKING:
    import ssl

__all__ = ["Connections", "address_of", "endpoint", "error_name"]

_CLIENT_ID: Final = "millstream-spark"
_CONNECT_TIMEOUT_S: Final = 5.0
_ANSWER_TIMEOUT_S: Final = 60.0
_ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
"""An answer is as large as the largest batch that a topic may hold, and no fetch asks for nearly as much."""
_LENGTH: Final = struct.Struct(">i")
_HANDSHAKE_VERSION: Final = 1
_AUTHENTICATE_VERSION: Final = 2
_TLS_ALERT: Final = b"\x15\x03"
"""What an answer begins with if the broker speaks TLS only (RFC 8446, 5.1)."""


class Connections:
    """Connections to one cluster, one for each broker, made when they are first needed; a context, or to be closed.

    Args:
        servers: where to begin; as text HOST:PORT, or several separated by commas, that let everybody in.

    Raises (every method):
        AuthenticationFailed: a broker does not let one in, or its certificate is not trusted.
        BadOption: a file that the options name cannot be used.
        BrokerUnreachable: nobody answers, or not as a Kafka broker does.
    """

    def __init__(self, servers: str | Servers) -> None:
        given = Servers.at(servers)
        self.servers = given.addresses
        self._tls, self._sasl = given.tls, given.sasl
        self._tls_context: ssl.SSLContext | None = None
        self._sockets: dict[str, socket.socket] = {}
        self._correlation_ids = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all of them. They may still be used: they are made again."""
        while self._sockets:
            self._sockets.popitem()[1].close()

    def ask_any(self, api: Api, version: int, request: object) -> Any:
        """Ask the first broker that answers; as `ask`."""
        problems = []
        for server in self.servers:
            try:
                return self.ask(server, api, version, request)
            except BrokerUnreachable as error:
                problems.append(str(error))
        raise BrokerUnreachable("; ".join(problems))

    def ask(self, server: str, api: Api, version: int, request: object, *, again: bool = True) -> Any:
        """Ask one broker.

        Args:
            server: HOST:PORT of it.
            api, version: what is asked, and in which version.
            request: the request.
            again: whether it is sent once more when a connection that was used before breaks: only what may happen
                twice.
        """
        is_used = server in self._sockets
        try:
            return self._exchange(server, api, version, request)
        except OSError as error:
            self._drop(server)
            if not (again and is_used) or isinstance(error, TimeoutError):
                raise self._unreachable(server, error) from None
        try:
            return self._exchange(server, api, version, request)
        except OSError as error:
            self._drop(server)
            raise self._unreachable(server, error) from None

    def _unreachable(self, server: str, error: OSError) -> BrokerUnreachable | AuthenticationFailed:
        refusal = None if self._tls is None else self._tls.refusal(server, error)
        if refusal is not None:
            return refusal
        reason = error.strerror or str(error) or type(error).__name__
        advice = "kafka.bootstrap.servers and kafka.security.protocol"
        if self._tls is not None:
            # Many servers close the connection of who shows no certificate without a word.
            advice += ", and kafka.ssl.certificate.location if it asks for one"
        return BrokerUnreachable(f"no Kafka broker answers at {server} ({reason}); see {advice}")

    def _drop(self, server: str) -> None:
        if server in self._sockets:
            self._sockets.pop(server).close()

    def _exchange(self, server: str, api: Api, version: int, request: object) -> Any:
        """Send one request and wait for its answer. Raises OSError if the connection fails."""
        return self._answer(server, api, version, self._send(server, api, version, request))

    def send(self, server: str, api: Api, version: int, request: object) -> int:
        """Send one request whose answer is asked for by `receive`; answers come in the order of the requests.

        Returns:
            What `receive` takes.
        """
        try:
            return self._send(server, api, version, request)
        except OSError as error:
            self._drop(server)
            raise self._unreachable(server, error) from None

    def receive(self, server: str, api: Api, version: int, sent: int) -> Any:
        """Wait for the answer to a request. After an error no other request that was sent is answered any more."""
        try:
            if server not in self._sockets:
                raise ConnectionResetError("the connection has ended")
            return self._answer(server, api, version, sent)
        except OSError as error:
            self._drop(server)
            raise self._unreachable(server, error) from None

    def _send(self, server: str, api: Api, version: int, request: object) -> int:
        connection = self._sockets.get(server)
        if connection is None:
            connection = self._connect(server)
        correlation_id = next(self._correlation_ids)
        connection.sendall(b"".join(api.encode_request(version, correlation_id, _CLIENT_ID, request)))
        return correlation_id

    def _connect(self, server: str) -> socket.socket:
        host, port = endpoint(server)
        if self._tls is not None and self._tls_context is None:
            self._tls_context = self._tls.context()
        connection = socket.create_connection((host, port), _CONNECT_TIMEOUT_S)
        connection.settimeout(_ANSWER_TIMEOUT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None and self._tls_context is not None:
            connection = self._tls.over(connection, self._tls_context, server, host)
        self._sockets[server] = connection
        if self._sasl is not None:
            try:
                self._authenticate(server, self._sasl)
            except BaseException:
                self._drop(server)
                raise
        return connection

    def _authenticate(self, server: str, sasl: Sasl) -> None:
        """Show who one is on a new connection."""
        request = SaslHandshakeRequest(mechanism=sasl.mechanism)
        answer = self._exchange(server, SASL_HANDSHAKE, _HANDSHAKE_VERSION, request)
        if answer.error_code:
            offered = ", ".join(answer.mechanisms) or "none"
            raise AuthenticationFailed(
                f"{server} does not take {sasl.mechanism}, but {offered}; change kafka.sasl.mechanism"
            )
        tokens, answered = sasl.tokens(), None
        try:
            while True:
                proof = SaslAuthenticateRequest(auth_bytes=tokens.send(answered))
                answer = self._exchange(server, SASL_AUTHENTICATE, _AUTHENTICATE_VERSION, proof)
                if answer.error_code:
                    raise _denied(server, sasl, answer.error_message or error_name(answer.error_code))
                answered = answer.auth_bytes
        except StopIteration:
            return
        except MalformedMessage as error:
            raise _denied(server, sasl, str(error)) from None

    def _answer(self, server: str, api: Api, version: int, correlation_id: int) -> Any:
        connection = self._sockets[server]
        head = _receive(connection, _LENGTH.size)
        if bytes(head).startswith(_TLS_ALERT):
            self._drop(server)
            raise BrokerUnreachable(f"{server} speaks TLS only; set kafka.security.protocol to SSL or SASL_SSL")
        (size,) = _LENGTH.unpack(head)
        if not 4 <= size <= _ANSWER_BYTES_MAX:
            self._drop(server)
            raise BrokerUnreachable(f"what answers at {server} is no Kafka broker; see kafka.bootstrap.servers")
        frame = _receive(connection, size)
        try:
            answered_id, answer = api.decode_response(version, frame)
        except MalformedMessage as error:
            self._drop(server)
            raise BrokerUnreachable(f"{server} gave an answer that makes no sense: {error}") from None
        if answered_id != correlation_id:
            self._drop(server)
            raise BrokerUnreachable(f"{server} answered another request than the one sent")
        return answer


def error_name(code: int) -> str:
    """The name of an error code of Kafka's."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error code {code}"


def _denied(server: str, sasl: Sasl, reason: str) -> AuthenticationFailed:
    return AuthenticationFailed(
        f"{server} and the user {sasl.username!r} do not agree by {sasl.mechanism}: {reason}; see the options that "
        "begin with kafka.sasl"
    )


def address_of(host: str, port: int) -> str:
    """HOST:PORT, as it is written for an address of IPv6 too."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def endpoint(server: str) -> tuple[str, int]:
    """Host and port of HOST:PORT."""
    host, _, port = server.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _receive(connection: socket.socket, size: int) -> memoryview:
    """Receive exactly so many bytes; the room grows with what arrives."""
    data = bytearray(min(size, 1024 * 1024))
    got = 0
    while got < size:
        if got == len(data):
            data.extend(bytes(min(size - got, len(data))))
        count = connection.recv_into(memoryview(data)[got:])
        if not count:
            raise ConnectionResetError("the broker closed the connection")
        got += count
    return memoryview(data)
