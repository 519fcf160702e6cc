"""Schemas that are registered with topics through Pulsar, asked for in Pulsar's binary protocol.

Every port of a Millstream broker takes it, unless it is pinned to another protocol. Versions of a schema never
change: a process asks for each once.
"""

import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from google.protobuf.message import Message

from millstream.model.topic_name import DEFAULT_NAMESPACE, DEFAULT_TENANT
from millstream.spark.connections import endpoint
from millstream.spark.errors import BadSchema, BrokerUnreachable
from millstream.spark.servers import Servers
from millstream.spark.tls import Tls
from millstream.spark.values.key_value import Part, part_schema
from millstream.wire.pulsar.errors import PulsarWireError
from millstream.wire.pulsar.frames import command_body, encode_command, read_frame
from millstream.wire.pulsar.limits import COMMAND_BYTES_MAX
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandConnect,
    CommandConnected,
    CommandError,
    CommandGetSchema,
    CommandGetSchemaResponse,
    CommandPing,
    CommandPong,
    Schema,
)

__all__ = ["Registered", "RegisteredSchema", "registered", "version_lookup"]

_CLIENT: Final = "millstream-spark"
_PROTOCOL_VERSION: Final = 19
_CONNECT_TIMEOUT_S: Final = 5.0
_ANSWER_TIMEOUT_S: Final = 30.0
_SIZE: Final = struct.Struct(">I")
_VERSION_BYTES: Final = 8


class RegisteredSchema(NamedTuple):
    """One version of a topic's schema.

    Args:
        version: its number, from 0 on.
        type: a number of Pulsar's Schema.Type.
        definition: as it was registered.
        properties: that were registered with it.
    """

    version: int
    type: int
    definition: bytes
    properties: Mapping[str, str] = {}

    @property
    def type_name(self) -> str:
        """What Pulsar calls its type."""
        return str(Schema.Type.Name(self.type)) if self.type in Schema.Type.values() else str(self.type)


@dataclass
class Registered:
    """The schemas of one topic; made on the driver, pickled, used in Python workers too.

    Args:
        servers: where to ask, and how.
        topic: by its flat name (`flights`, `sales.flights`) or in full (`persistent://public/sales/flights`).
        version: the version whose columns are wanted; None for the latest when the query begins.
        unversioned: the version of values whose record does not tell one; None for the only one there is.
        token: to authenticate with; None where the broker lets everybody in.
        part: which part of keys and values the column is that is decoded; of other schemas it means nothing.
    """

    servers: Servers
    topic: str
    version: int | None = None
    unversioned: int | None = None
    token: str | None = field(default=None, repr=False)
    part: Part | None = None
    _known: dict[int | None, RegisteredSchema] = field(default_factory=dict, repr=False)

    def get(self, version: int | None = None) -> RegisteredSchema:
        """One version, or the latest; of a schema of keys and values that of the part.

        Raises:
            BadSchema: it is not registered, or is none.
            BrokerUnreachable: nobody answers, or not as a Pulsar broker does.
        """
        found = self._whole(version)
        if self.part is None or found.type != Schema.KeyValuePair:
            return found
        schema = part_schema(found.definition, found.properties, self.part)
        return RegisteredSchema(found.version, schema.type, schema.definition)

    def is_inline(self) -> bool:
        """Whether keys and values stand together in the values of records. Raises as `get`."""
        found = self._whole(self.version)
        if self.part is None or found.type != Schema.KeyValuePair:
            return False
        return part_schema(found.definition, found.properties, self.part).is_inline

    def _whole(self, version: int | None) -> RegisteredSchema:
        if version not in self._known:
            found = self._ask(version)
            self._known[version] = self._known[found.version] = found
        return self._known[version]

    def _ask(self, version: int | None) -> RegisteredSchema:
        problems = []
        for server in self.servers.addresses:
            try:
                with _Connection(server, self.servers.tls, self.token) as connection:
                    for name in _pulsar_names(self.topic):
                        found = connection.schema(name, version)
                        if found is not None:
                            return found
            except BrokerUnreachable as error:
                problems.append(str(error))
                continue
            which = "no schema" if version is None else f"no version {version} of a schema"
            raise BadSchema(f"the topic {self.topic!r} has {which} at {server}")
        raise BrokerUnreachable("; ".join(problems))


def registered(
    servers: str | Servers,
    topic: str,
    *,
    version: int | None = None,
    unversioned: int | None = None,
    token: str | None = None,
) -> Registered:
    """Name the schemas that are registered with a topic, for `decode`.

    Args:
        servers: HOST:PORT of a listener that takes Pulsar's clients, such as the one that Kafka's use; or several,
            separated by commas. `Servers` if it wants TLS; names and passwords of SASL are not asked for.
        topic: by its flat name or in full.
        version: whose columns are wanted; the latest if not given, as it is when the query begins.
        unversioned: of values whose record does not say by which version it was written, as of all that another
            client than Pulsar's wrote. Not needed while the topic has one version only.
        token: to authenticate with.
    """
    return Registered(Servers.at(servers), topic, version, unversioned, token)


def _pulsar_names(topic: str) -> Iterator[str]:
    """What Pulsar may call a topic of this name; see `millstream.model.topic_name`."""
    if "://" in topic:
        yield topic
        return
    yield f"persistent://{DEFAULT_TENANT}/{DEFAULT_NAMESPACE}/{topic}"
    parts = topic.split(".")
    for cut in range(1, len(parts)):
        yield f"persistent://{DEFAULT_TENANT}/{'.'.join(parts[:cut])}/{'.'.join(parts[cut:])}"
    for first in range(1, len(parts) - 1):
        for second in range(first + 1, len(parts)):
            names = parts[:first], parts[first:second], parts[second:]
            yield "persistent://" + "/".join(".".join(name) for name in names)


class _Connection:
    """A connection to one broker in Pulsar's protocol, blocking."""

    def __init__(self, server: str, tls: Tls | None, token: str | None) -> None:
        self._server = server
        host, port = endpoint(server)
        context = None if tls is None else tls.context()
        try:
            self._socket = socket.create_connection((host, port), _CONNECT_TIMEOUT_S)
            if tls is not None and context is not None:
                self._socket = tls.over(self._socket, context, server, host)
        except OSError as error:
            raise BrokerUnreachable(f"cannot connect to {server}: {error}") from None
        self._socket.settimeout(_ANSWER_TIMEOUT_S)
        hello = CommandConnect(client_version=_CLIENT, protocol_version=_PROTOCOL_VERSION)
        if token is not None:
            hello.auth_method_name, hello.auth_data = "token", token.encode()
        try:
            answer = self._call(hello)
        except BrokerUnreachable:
            self._socket.close()
            raise
        if not isinstance(answer, CommandConnected):
            self._socket.close()
            reason = answer.message if isinstance(answer, CommandError) else "it does not greet as a Pulsar broker"
            raise BrokerUnreachable(f"{server} lets nobody in to ask for schemas: {reason}")

    def __enter__(self) -> "_Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def schema(self, topic: str, version: int | None) -> RegisteredSchema | None:
        """Ask for a version of a topic's schema, or the latest; None if there is none."""
        request = CommandGetSchema(request_id=1, topic=topic)
        if version is not None:
            request.schema_version = version.to_bytes(_VERSION_BYTES, "big", signed=True)
        answer = self._call(request)
        if isinstance(answer, CommandError):
            raise BrokerUnreachable(f"{self._server} does not tell schemas: {answer.message}")
        if not isinstance(answer, CommandGetSchemaResponse):
            raise BrokerUnreachable(f"{self._server} answers otherwise than a Pulsar broker")
        if answer.HasField("error_code") or not answer.HasField("schema"):
            return None
        number = int.from_bytes(answer.schema_version, "big") if answer.schema_version else version or 0
        properties = {one.key: one.value for one in answer.schema.properties}
        return RegisteredSchema(number, answer.schema.type, answer.schema.schema_data, properties)

    def _call(self, request: Message) -> Message | None:
        """Send a command and wait for the next that is no ping."""
        try:
            self._socket.sendall(encode_command(request))
            while True:
                answer = command_body(read_frame(memoryview(self._frame())).command)
                if not isinstance(answer, CommandPing):
                    return answer
                self._socket.sendall(encode_command(CommandPong()))
        except (OSError, PulsarWireError) as error:
            raise BrokerUnreachable(
                f"{self._server} does not answer as a Pulsar broker: {error}; schemas are asked for in Pulsar's "
                "protocol, which a listener takes that is not pinned to another"
            ) from None

    def _frame(self) -> bytes:
        size: int = _SIZE.unpack(self._receive(_SIZE.size))[0]
        if size > COMMAND_BYTES_MAX + _SIZE.size:
            raise OSError(f"an answer of {size} bytes")
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise OSError("it closed the connection")
            data += piece
        return bytes(data)


def version_lookup(schemas: Registered) -> Any:
    """Gives definitions of Avro schemas by their version, for `AvroDecoder`."""
    return _Lookup(schemas)


@dataclass
class _Lookup:
    schemas: Registered

    def __call__(self, version: int) -> str:
        return self.schemas.get(version).definition.decode("utf-8", "replace")
