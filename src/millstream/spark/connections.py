"""Connections to the brokers of a cluster, over which the Spark side asks in Kafka's protocol, blocking.

It speaks through the same codecs as the server. It runs in Spark's Python workers, where there is no event loop
and where every import costs each task some milliseconds.
"""

import itertools
import socket
import struct
from types import TracebackType
from typing import Any, Final, Self

from millstream.spark.errors import BrokerUnreachable
from millstream.wire.kafka.api import Api
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.errors import MalformedMessage

__all__ = ["Connections", "address_of", "error_name"]

_CLIENT_ID: Final = "millstream-spark"
_CONNECT_TIMEOUT_S: Final = 5.0
_ANSWER_TIMEOUT_S: Final = 60.0
_ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
"""An answer is as large as the largest batch that a topic may hold, and no fetch asks for nearly as much."""
_LENGTH: Final = struct.Struct(">i")


class Connections:
    """Connections to one cluster, one for each broker, made when they are first needed; a context, or to be closed.

    Args:
        servers: HOST:PORT, or several separated by commas, to begin with.

    Raises (every method):
        BrokerUnreachable: nobody answers, or not as a Kafka broker does.
    """

    def __init__(self, servers: str) -> None:
        self.servers = [server.strip() for server in servers.split(",")]
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

    def _unreachable(self, server: str, error: OSError) -> BrokerUnreachable:
        reason = error.strerror or str(error) or type(error).__name__
        return BrokerUnreachable(f"no Kafka broker answers at {server} ({reason}); see kafka.bootstrap.servers")

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
            connection = self._sockets[server] = socket.create_connection(_endpoint(server), _CONNECT_TIMEOUT_S)
            connection.settimeout(_ANSWER_TIMEOUT_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        correlation_id = next(self._correlation_ids)
        connection.sendall(b"".join(api.encode_request(version, correlation_id, _CLIENT_ID, request)))
        return correlation_id

    def _answer(self, server: str, api: Api, version: int, correlation_id: int) -> Any:
        connection = self._sockets[server]
        (size,) = _LENGTH.unpack(_receive(connection, _LENGTH.size))
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


def address_of(host: str, port: int) -> str:
    """HOST:PORT, as it is written for an address of IPv6 too."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _endpoint(server: str) -> tuple[str, int]:
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
