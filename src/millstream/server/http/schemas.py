"""The schemas of topics."""

import json
from typing import Any

from fastapi import APIRouter
from starlette.exceptions import HTTPException

from millstream.broker.errors import UnknownTopic
from millstream.broker.schemas import (
    IncompatibleSchema,
    InvalidSchema,
    Schema,
    SchemaCompatibility,
    SchemaType,
    SchemaVersion,
    UnknownSchema,
)
from millstream.broker.topics import Topic
from millstream.broker.volatile_declarations import VolatileDeclaration
from millstream.server.http.arguments import AnyBody, SiteArgument, TopicArgument, as_object, takes
from millstream.server.http.site import Site, outcome
from millstream.sessions.pulsar.names import PulsarName

__all__ = ["router"]

router = APIRouter(prefix="/admin/v2/schemas/{tenant}/{namespace}/{topic}", tags=["schemas"])
_NO_VERSION = -1


def _topic(site: Site, name: PulsarName) -> Topic | VolatileDeclaration:
    """The topic whose schema is meant: that of a partition is its topic's.

    The path tells no domain: a non-persistent topic is meant where no other has the name.
    """
    broker = site.broker
    broker.namespaces.check(name.topic.tenant, name.topic.namespace)
    topic: Topic | VolatileDeclaration | None = broker.topics.by_name(name.topic) or broker.topics.by_name(name.base)
    topic = topic or broker.volatile.declarations.find(name.base)
    if topic is None:
        raise UnknownTopic(f"Topic {name} not found")
    return topic


def _rule(site: Site, topic: Topic | VolatileDeclaration) -> SchemaCompatibility:
    return site.broker.namespaces.get(topic.name.tenant, topic.name.namespace).policies.schema_compatibility


# Forms


def _form(version: SchemaVersion) -> dict[str, Any]:
    schema = version.schema
    return {
        "version": version.version,
        "type": schema.type.value,
        "timestamp": version.created_ms,
        "data": _text_of(schema),
        "properties": dict(schema.properties),
    }


def _text_of(schema: Schema) -> str:
    """The definition as text; key and value of a KEY_VALUE as an object of two, as Pulsar shows it."""
    if schema.type is not SchemaType.KEY_VALUE:
        return schema.data.decode("utf-8", "replace")
    key_size = int.from_bytes(schema.data[:4], "big")
    parts = schema.data[4 : 4 + key_size], schema.data[8 + key_size :]
    return json.dumps({name: _nested(part) for name, part in zip(("key", "value"), parts, strict=True)})


def _nested(data: bytes) -> Any:
    text = data.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except ValueError:
        return text


def _bytes_of(kind: SchemaType, text: str) -> bytes:
    if kind is not SchemaType.KEY_VALUE:
        return text.encode()
    try:
        value = json.loads(text)
        parts = value["key"], value["value"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidSchema("the definition of a KEY_VALUE schema is an object with key and value") from None
    encoded = [(part if isinstance(part, str) else json.dumps(part)).encode() for part in parts]
    return b"".join(len(one).to_bytes(4, "big") + one for one in encoded)


def _read(body: Any) -> Schema:
    """A schema, from {"type", "schema", "properties"}."""
    form = as_object(body)
    word, text, properties = form.get("type"), form.get("schema") or "", form.get("properties") or {}
    try:
        kind = SchemaType(word)
    except ValueError:
        raise InvalidSchema(f"there is no schema type {word!r}") from None
    if not isinstance(text, str) or not isinstance(properties, dict):
        raise HTTPException(400, "schema is a string, and properties an object")
    if not all(isinstance(value, str) for value in properties.values()):
        raise HTTPException(400, "properties are strings")
    return Schema(kind, _bytes_of(kind, text), properties)


# Routes


@router.get("/schema")
async def latest(site: SiteArgument, name: TopicArgument) -> dict[str, Any]:
    """The schema of a topic."""
    version = site.broker.schemas.latest(_topic(site, name).id)
    if version is None:
        raise UnknownSchema("Schema not found")
    return _form(version)


@router.get("/schema/{version}")
async def one_version(site: SiteArgument, name: TopicArgument, version: int) -> dict[str, Any]:
    """A version of a topic's schema, even of one that was deleted."""
    found = site.broker.schemas.find(_topic(site, name).id, version)
    if found is None:
        raise UnknownSchema("Schema not found")
    return _form(found)


@router.get("/schemas")
async def all_versions(site: SiteArgument, name: TopicArgument) -> dict[str, list[dict[str, Any]]]:
    """All versions of a topic's schema, oldest first."""
    versions = site.broker.schemas.versions(_topic(site, name).id)
    return {"getSchemaResponses": [_form(version) for version in versions]}


@router.post("/schema", openapi_extra=takes("object"))
async def register(site: SiteArgument, name: TopicArgument, body: AnyBody) -> dict[str, dict[str, int]]:
    """Give a topic a schema, {"type", "schema", "properties"}, under the rule of its namespace."""
    topic, schema = _topic(site, name), _read(body)
    if schema.type is SchemaType.BYTES:
        raise HTTPException(406, "Do not upload a BYTES schema, because it's the default schema type")
    version = await outcome(site.broker.schemas.register(topic.id, schema, _rule(site, topic)))
    return {"version": {"version": version}}


@router.delete("/schema")
async def delete(site: SiteArgument, name: TopicArgument) -> dict[str, int]:
    """Take a topic's schema out of force; what was written with it can still be read."""
    return {"version": await outcome(site.broker.schemas.delete(_topic(site, name).id))}


@router.post("/compatibility", openapi_extra=takes("object"))
async def compatibility(site: SiteArgument, name: TopicArgument, body: AnyBody) -> dict[str, Any]:
    """Whether a schema could be registered."""
    topic, schema = _topic(site, name), _read(body)
    rule = _rule(site, topic)
    try:
        await outcome(site.broker.schemas.check(topic.id, schema, rule))
    except IncompatibleSchema:
        return {"compatibility": False, "schemaCompatibilityStrategy": rule.value}
    return {"compatibility": True, "schemaCompatibilityStrategy": rule.value}


@router.post("/version", openapi_extra=takes("object"))
async def version_of(site: SiteArgument, name: TopicArgument, body: AnyBody) -> dict[str, int]:
    """The version that a schema is; -1 if it is none."""
    version = await outcome(site.broker.schemas.version_of(_topic(site, name).id, _read(body)))
    return {"version": _NO_VERSION if version is None else version}
