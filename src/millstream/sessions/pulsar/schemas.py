"""GET_SCHEMA and GET_OR_CREATE_SCHEMA, and the schemas that producers and consumers bring along.

A version is 8 bytes, big-endian.

Source: Pulsar binary protocol specification 3.0; the rules, Apache Pulsar's broker.
"""

from typing import Final
from uuid import UUID

from millstream.broker.schemas import IncompatibleSchema, Schema, SchemaType, SchemaVersion, UnknownSchema
from millstream.broker.topics import Topic
from millstream.broker.volatile_declarations import VolatileDeclaration
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.sessions.pulsar.error_table import code_of
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.names import PulsarName, parse_name
from millstream.sessions.pulsar.topics import check_creation, link_place
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandGetOrCreateSchema,
    CommandGetOrCreateSchemaResponse,
    CommandGetSchema,
    CommandGetSchemaResponse,
    KeyValue,
)
from millstream.wire.pulsar.pulsar_pb2 import Schema as SchemaMessage

__all__ = [
    "check_consumer_schema",
    "declared",
    "handle_get_or_create_schema",
    "handle_get_schema",
    "register_producer_schema",
]

_VERSION_BYTES: Final = 8
_TYPES: Final = {
    SchemaMessage.NoSchema: SchemaType.BYTES,
    SchemaMessage.String: SchemaType.STRING,
    SchemaMessage.Json: SchemaType.JSON,
    SchemaMessage.Protobuf: SchemaType.PROTOBUF,
    SchemaMessage.Avro: SchemaType.AVRO,
    SchemaMessage.Bool: SchemaType.BOOLEAN,
    SchemaMessage.Int8: SchemaType.INT8,
    SchemaMessage.Int16: SchemaType.INT16,
    SchemaMessage.Int32: SchemaType.INT32,
    SchemaMessage.Int64: SchemaType.INT64,
    SchemaMessage.Float: SchemaType.FLOAT,
    SchemaMessage.Double: SchemaType.DOUBLE,
    SchemaMessage.Date: SchemaType.DATE,
    SchemaMessage.Time: SchemaType.TIME,
    SchemaMessage.Timestamp: SchemaType.TIMESTAMP,
    SchemaMessage.KeyValuePair: SchemaType.KEY_VALUE,
    SchemaMessage.Instant: SchemaType.INSTANT,
    SchemaMessage.LocalDate: SchemaType.LOCAL_DATE,
    SchemaMessage.LocalTime: SchemaType.LOCAL_TIME,
    SchemaMessage.LocalDateTime: SchemaType.LOCAL_DATE_TIME,
    SchemaMessage.ProtobufNative: SchemaType.PROTOBUF_NATIVE,
    SchemaMessage.AutoConsume: SchemaType.AUTO_CONSUME,
}
_NUMBERS: Final = {type_: number for number, type_ in _TYPES.items()}
_NOTHING: Final = {SchemaType.BYTES, SchemaType.AUTO_CONSUME}
"""Types that say nothing of what messages look like."""


def _read(message: SchemaMessage) -> Schema | None:
    """The schema that a client brings; None if it says nothing. Raises IncompatibleSchema for an unknown type."""
    type_ = _TYPES.get(message.type)
    if type_ is None:
        raise IncompatibleSchema(f"there is no schema type {message.type}")
    if type_ in _NOTHING:
        return None
    return Schema(type_, message.schema_data, {one.key: one.value for one in message.properties})


def _version_bytes(version: int) -> bytes:
    return version.to_bytes(_VERSION_BYTES, "big")


def register_producer_schema(
    link: Link, topic: Topic | VolatileDeclaration, message: SchemaMessage | None
) -> Pending[bytes]:
    """Register what a producer writes by.

    Args:
        topic: what it writes to; of a topic that keeps nothing, what is declared of it.
        message: None, or of no type, for a producer without a schema.

    Returns:
        Resolves with the version as bytes, none without a schema; fails with IncompatibleSchema, InvalidSchema,
        MetadataFailed.
    """
    schemas = link.broker.schemas
    policies = link.broker.namespaces.get(topic.name.tenant, topic.name.namespace).policies
    schema = None if message is None else _read(message)
    if schema is None:
        if policies.schema_validation_enforced and schemas.latest(topic.id) is not None:
            raise IncompatibleSchema("the topic has a schema, and its namespace wants producers to have one")
        return settled(b"")
    registered = schemas.register(
        topic.id, schema, policies.schema_compatibility, may_update=policies.schema_auto_update
    )
    return registered.then(_version_bytes)


def check_consumer_schema(
    link: Link, topic: Topic | VolatileDeclaration, message: SchemaMessage | None
) -> Pending[None]:
    """Check that a consumer can read a topic; on one that is new and has no schema, its own becomes the topic's.

    Args:
        topic, message: as for `register_producer_schema`.

    Returns:
        Fails with IncompatibleSchema, InvalidSchema, MetadataFailed.
    """
    schema = None if message is None else _read(message)
    if schema is None:
        return settled(None)
    schemas = link.broker.schemas
    policies = link.broker.namespaces.get(topic.name.tenant, topic.name.namespace).policies
    if schemas.latest(topic.id) is None:
        if _written(link, topic):
            raise IncompatibleSchema("the topic has messages or producers, and no schema")
        registered = schemas.register(topic.id, schema, policies.schema_compatibility)
        return registered.then(lambda _: None)
    return schemas.check_consumer(topic.id, schema, policies.schema_compatibility)


def _written(link: Link, topic: Topic | VolatileDeclaration) -> bool:
    """Whether a topic has messages, or somebody who writes some."""
    producers = link.broker.producers
    if isinstance(topic, VolatileDeclaration):
        used = (one for one in link.broker.volatile if one.base == topic.name)
        return any(True for one in used for _ in producers.of(one.id, 0))
    if any(partition.log.end_offset for partition in topic.partitions):
        return True
    return any(True for partition in topic.partitions for _ in producers.of(topic.id, partition.index))


def declared(link: Link, name: PulsarName, message: SchemaMessage | None) -> Pending[VolatileDeclaration | None]:
    """What is declared of a topic that keeps nothing; one that is not is declared if there is a schema to keep."""
    declarations = link.broker.volatile.declarations
    if message is None or _read(message) is None:
        return settled(declarations.find(name.base))
    return declarations.declare(name.base).then(lambda found: found)


def handle_get_schema(link: Link, command: CommandGetSchema) -> None:
    """Give a topic's schema: the latest, or a version."""
    try:
        name = parse_name(command.topic)
        topics = link.broker.topics
        topic: Topic | VolatileDeclaration | None
        if name.persistent:
            topic = topics.by_name(name.topic) or topics.by_name(name.base)
        else:
            topic = link.broker.volatile.declarations.find(name.base)
        found = None if topic is None else _find(link, topic.id, command)
        if found is None:
            raise UnknownSchema("the topic has no such schema")
    except MillstreamError as error:
        link.send(
            CommandGetSchemaResponse(
                request_id=command.request_id, error_code=code_of(error), error_message=str(error)
            )
        )
        return
    schema = found.schema
    link.send(
        CommandGetSchemaResponse(
            request_id=command.request_id,
            schema=SchemaMessage(
                name=name.base.name,
                schema_data=schema.data,
                type=_NUMBERS[schema.type],
                properties=[KeyValue(key=key, value=value) for key, value in schema.properties.items()],
            ),
            schema_version=_version_bytes(found.version),
        )
    )


def _find(link: Link, topic_id: UUID, command: CommandGetSchema) -> SchemaVersion | None:
    if not command.HasField("schema_version"):
        return link.broker.schemas.latest(topic_id)
    if len(command.schema_version) != _VERSION_BYTES:
        raise IncompatibleSchema(f"a version of a schema is {_VERSION_BYTES} bytes")
    return link.broker.schemas.find(topic_id, int.from_bytes(command.schema_version, "big"))


def handle_get_or_create_schema(link: Link, command: CommandGetOrCreateSchema) -> None:
    """Register a schema as a producer would, and tell its version."""
    request_id = command.request_id

    def answer(version: bytes) -> None:
        link.send(CommandGetOrCreateSchemaResponse(request_id=request_id, schema_version=version))

    def refuse(error: MillstreamError) -> None:
        link.send(
            CommandGetOrCreateSchemaResponse(
                request_id=request_id, error_code=code_of(error), error_message=str(error)
            )
        )

    def register() -> Pending[bytes]:
        name = parse_name(command.topic)
        if name.persistent:
            placed = link_place(link, command.topic)
            return placed.chain(lambda place: register_producer_schema(link, place.topic, command.schema))
        check_creation(link, name, create=True)
        found = link.broker.volatile.declarations.declare(name.base)
        return found.chain(lambda topic: register_producer_schema(link, topic, command.schema))

    Pending.attempt(register).settle(answer, refuse)
