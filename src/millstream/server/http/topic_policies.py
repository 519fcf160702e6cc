"""The policies of a single topic that are settings of it in every protocol: retention, and the largest message.

What Pulsar's tools set here, Kafka's AlterConfigs and Iggy's expiry change as well, and the other way round.

Source: Pulsar admin REST API, PersistentTopics (topic-level policies).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response
from starlette.exceptions import HTTPException

from millstream.broker.namespaces import Retention
from millstream.broker.topics import Topic
from millstream.server.http.arguments import AnyBody, SiteArgument, TopicArgument, as_integer, as_object, takes
from millstream.server.http.found import find_topic
from millstream.server.http.policy_forms import read_retention, retention_form
from millstream.server.http.site import Site, outcome

__all__ = ["router"]

router = APIRouter(prefix="/admin/v2/persistent/{tenant}/{namespace}/{topic}", tags=["topic policies"])

_TIME, _SIZE, _LARGEST = "retention.ms", "retention.bytes", "max.message.bytes"
_SERVERS: Final = {_TIME: "log.retention.ms", _SIZE: "log.retention.bytes", _LARGEST: "message.max.bytes"}
_MINUTE_MS: Final = 60_000
_MEGABYTE: Final = 1024 * 1024

Applied = Annotated[bool, Query()]
"""Whether what is in force is asked for, and not only what the topic has of its own."""


async def _change(site: Site, topic: Topic, changes: Mapping[str, int | None]) -> None:
    """Set some settings of a topic; None takes one back."""
    configs = {name: text for name, text in topic.configs.items() if name not in changes}
    configs |= {name: str(value) for name, value in changes.items() if value is not None}
    await outcome(site.broker.topics.set_configs(topic, configs))


def _in_force(site: Site, topic: Topic, name: str) -> int:
    return int(topic.configs.get(name) or site.broker.settings.text(_SERVERS[name]))


@router.get("/retention", response_model=None)
async def retention(site: SiteArgument, name: TopicArgument, applied: Applied = False) -> Response | dict[str, int]:
    """Tells how long and how much is kept of a topic, in minutes and MiB. 204 if it has no setting of its own.

    With `applied`, what follows from its namespace and the server then. Parts of a minute or MiB are rounded up.
    """
    topic = find_topic(site, name)
    if not topic.configs.keys() & {_TIME, _SIZE}:
        if not applied:
            return Response(status_code=204)
        namespace = site.broker.namespaces.get(name.topic.tenant, name.topic.namespace)
        if namespace.policies.retention is not None:
            return retention_form(namespace.policies.retention)
    time_ms, size_bytes = (_in_force(site, topic, one) for one in (_TIME, _SIZE))
    minutes = time_ms if time_ms < 0 else -(-time_ms // _MINUTE_MS)
    megabytes = size_bytes if size_bytes < 0 else -(-size_bytes // _MEGABYTE)
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}


@router.post("/retention", status_code=204, openapi_extra=takes("object"))
async def set_retention(site: SiteArgument, name: TopicArgument, body: AnyBody) -> None:
    """Sets how long and how much is kept of a topic: `retention.ms` and `retention.bytes`; -1 for no bound."""
    wanted: Retention = read_retention(as_object(body))
    time_ms = wanted.minutes if wanted.minutes < 0 else wanted.minutes * _MINUTE_MS
    size_bytes = wanted.megabytes if wanted.megabytes < 0 else wanted.megabytes * _MEGABYTE
    await _change(site, find_topic(site, name), {_TIME: time_ms, _SIZE: size_bytes})


@router.delete("/retention", status_code=204)
async def remove_retention(site: SiteArgument, name: TopicArgument) -> None:
    """Leaves it to the namespace and the server how long and how much is kept of a topic."""
    await _change(site, find_topic(site, name), {_TIME: None, _SIZE: None})


@router.get("/maxMessageSize", response_model=None)
async def max_message_size(site: SiteArgument, name: TopicArgument, applied: Applied = False) -> Response | int:
    """Tells the bytes of the largest batch that a topic takes. 204 if it has no setting of its own."""
    topic = find_topic(site, name)
    if _LARGEST not in topic.configs and not applied:
        return Response(status_code=204)
    return _in_force(site, topic, _LARGEST)


@router.post("/maxMessageSize", status_code=204, openapi_extra=takes("integer"))
async def set_max_message_size(site: SiteArgument, name: TopicArgument, body: AnyBody) -> None:
    """Sets the bytes of the largest batch that a topic takes: `max.message.bytes`."""
    size: Any = as_integer(body)
    if size < 0:
        raise HTTPException(412, "a size is 0 at least")
    await _change(site, find_topic(site, name), {_LARGEST: size})


@router.delete("/maxMessageSize", status_code=204)
async def remove_max_message_size(site: SiteArgument, name: TopicArgument) -> None:
    """Leaves the bytes of the largest batch of a topic to the server."""
    await _change(site, find_topic(site, name), {_LARGEST: None})
