"""What the routes take from a request: names from its path, JSON from its body."""

import json
import re
from typing import Annotated, Any, Final
from urllib.parse import unquote

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from millstream.broker.errors import InvalidTopicName
from millstream.broker.namespaces import InvalidNamespaceName, Namespace
from millstream.server.http.site import Site, site_of
from millstream.sessions.pulsar.names import PulsarName, parse_name

__all__ = [
    "AnyBody",
    "NamespaceArgument",
    "SiteArgument",
    "TopicArgument",
    "as_boolean",
    "as_integer",
    "as_object",
    "as_word",
    "checked_name",
    "takes",
]

_NAME: Final = re.compile(r"[-=:.\w]+", re.ASCII)
"""What Pulsar allows in the names of tenants and namespaces."""
_INTEGER_MAX: Final = 2**63 - 1

SiteArgument = Annotated[Site, Depends(site_of)]


def checked_name(text: str) -> str:
    """The name of a tenant or a namespace, from a part of a path. Raises InvalidNamespaceName."""
    name = unquote(text)
    if not _NAME.fullmatch(name):
        raise InvalidNamespaceName(f"{name!r} is not the name of a tenant or a namespace")
    return name


def _namespace(site: SiteArgument, tenant: str, namespace: str) -> Namespace:
    return site.broker.namespaces.get(unquote(tenant), unquote(namespace))


def _topic(request: Request, tenant: str, namespace: str, topic: str) -> PulsarName:
    path: str = request.scope["path"]
    domain = "non-persistent" if "/non-persistent/" in path else "persistent"
    name = unquote(topic)
    if "/" in name or not name.isprintable():
        raise InvalidTopicName(f"{name!r} is not the name of a topic: it has a slash or an unprintable character")
    return parse_name(f"{domain}://{unquote(tenant)}/{unquote(namespace)}/{name}")


NamespaceArgument = Annotated[Namespace, Depends(_namespace)]
"""The namespace in the path, which is there."""
TopicArgument = Annotated[PulsarName, Depends(_topic)]
"""The topic's name in the path."""


async def _json(request: Request) -> Any:
    """The body, whatever content type it is sent as: pulsar-admin and curl do not agree on one."""
    body = await request.body()
    if not body.strip():
        return None
    try:
        value = json.loads(body)
        if b"\\u" in body:
            # Half of a pair of escapes is text that nothing could be answered or stored with.
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON") from None
    return value


AnyBody = Annotated[Any, Depends(_json)]
"""The body as JSON, None if there is none."""


def takes(schema: str | dict[str, Any], *, required: bool = True) -> dict[str, Any]:
    """The description of a JSON body in OpenAPI, for `openapi_extra`."""
    described = {"type": schema} if isinstance(schema, str) else schema
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": described}}}}


def as_integer(body: Any) -> int:
    """A body that is a number of 64 bits."""
    if not isinstance(body, int) or isinstance(body, bool) or abs(body) > _INTEGER_MAX:
        raise HTTPException(400, "the body is an integer")
    return body


def as_boolean(body: Any) -> bool:
    """A body that is true or false."""
    if not isinstance(body, bool):
        raise HTTPException(400, "the body is true or false")
    return body


def as_word(body: Any) -> str:
    """A body that is text."""
    if not isinstance(body, str):
        raise HTTPException(400, "the body is a string")
    return body


def as_object(body: Any) -> dict[str, Any]:
    """A body that is an object; none stands for an empty one."""
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise HTTPException(400, "the body is an object")
    return body
