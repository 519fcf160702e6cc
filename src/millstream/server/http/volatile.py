"""Non-persistent topics: they come to be with their first client and go with their last.

What lasts is how many partitions they are declared to have, and their schemas."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.exceptions import HTTPException

from millstream.broker.errors import InvalidPartitionCount, InvalidTopicName, TopicExists, UnknownTopic
from millstream.broker.volatile import VolatileTopic
from millstream.server.http.arguments import (
    AnyBody,
    NamespaceArgument,
    SiteArgument,
    TopicArgument,
    as_integer,
    takes,
)
from millstream.server.http.deletion import part_from_volatile
from millstream.server.http.figures import volatile_figures
from millstream.server.http.found import volatile_names_in
from millstream.server.http.site import Site, outcome
from millstream.sessions.pulsar.names import PulsarName, topic_text

__all__ = ["router"]

router = APIRouter(prefix="/admin/v2/non-persistent/{tenant}/{namespace}", tags=["non-persistent topics"])


def _find(site: SiteArgument, name: TopicArgument) -> VolatileTopic:
    site.broker.namespaces.check(name.topic.tenant, name.topic.namespace)
    topic = site.broker.volatile.find(name.topic)
    if topic is None:
        raise UnknownTopic(f"Topic {name} not found: nobody is connected to it")
    return topic


FoundTopic = Annotated[VolatileTopic, Depends(_find)]


@router.get("")
async def topics(site: SiteArgument, found: NamespaceArgument) -> list[str]:
    """The non-persistent topics of a namespace that anybody is connected to."""
    return volatile_names_in(site, found)


@router.get("/partitioned")
async def partitioned_topics(site: SiteArgument, found: NamespaceArgument) -> list[str]:
    """The partitioned non-persistent topics of a namespace, whether anybody is connected to them or not."""
    declared = site.broker.volatile.declarations.in_namespace(found.tenant, found.name)
    return sorted(topic_text(one.name, persistent=False) for one in declared if one.partitions)


@router.put("/{topic}", status_code=204)
async def create(site: SiteArgument, name: TopicArgument) -> None:
    """Nothing to do but to look whether it may come to be, which it does with its first client."""
    _check_new(site, name)


@router.put("/{topic}/partitions", status_code=204, openapi_extra=takes("integer"))
async def create_partitioned(site: SiteArgument, name: TopicArgument, body: AnyBody) -> None:
    """Make a partitioned topic; the body is the number of partitions, or an object with `partitions`."""
    count = as_integer(body.get("partitions") if isinstance(body, dict) else body)
    _check_new(site, name)
    if name.partition is not None:
        raise InvalidTopicName(f"{name} has the name of a partition")
    if count < 1:
        raise InvalidPartitionCount("a partitioned topic has 1 partition at least")
    await outcome(site.broker.volatile.declarations.declare(name.topic, count))


@router.post("/{topic}/partitions", status_code=204, openapi_extra=takes("integer"))
async def grow(site: SiteArgument, name: TopicArgument, body: AnyBody) -> None:
    """Give a partitioned topic more partitions; the body is how many it has then."""
    partitions, count = _partitions(site, name), as_integer(body)
    if not partitions:
        raise HTTPException(409, f"{name} is not a partitioned topic")
    if count < partitions:
        raise HTTPException(422, f"the topic has {partitions} partitions, and cannot have fewer")
    await outcome(site.broker.volatile.declarations.declare(name.topic, count))


@router.delete("/{topic}/partitions", status_code=204)
async def delete_partitioned(site: SiteArgument, name: TopicArgument, force: bool = False) -> None:
    """Delete a partitioned topic; with force even if somebody is connected to it."""
    if not _partitions(site, name):
        raise HTTPException(404, f"Partitioned Topic not found: {name}")
    in_use = [topic for topic in site.broker.volatile if topic.base == name.topic]
    if in_use and not force:
        raise HTTPException(412, "Topic has active producers/subscriptions")
    await outcome(site.broker.forget_volatile(name.topic))
    for topic in in_use:
        part_from_volatile(site, topic)


def _partitions(site: Site, name: PulsarName) -> int:
    site.broker.namespaces.check(name.topic.tenant, name.topic.namespace)
    return site.broker.volatile.declarations.partitions(name.topic)


def _check_new(site: Site, name: PulsarName) -> None:
    if _partitions(site, name) or site.broker.volatile.find(name.topic) is not None:
        raise TopicExists("This topic already exists")


@router.delete("/{topic}", status_code=204)
async def delete(site: SiteArgument, name: TopicArgument, topic: FoundTopic) -> None:
    """Close all producers and consumers of a topic; it is there again as soon as one of them comes back.

    The schemas of a topic without partitions go with it.
    """
    if name.partition is None and not _partitions(site, name):
        await outcome(site.broker.forget_volatile(name.topic))
    part_from_volatile(site, topic)


@router.put("/{topic}/unload", status_code=204)
async def unload(site: SiteArgument, topic: FoundTopic) -> None:
    """Close all producers and consumers of a topic; clients connect again by themselves."""
    part_from_volatile(site, topic)


@router.get("/{topic}/partitions")
async def partitions(site: SiteArgument, name: TopicArgument) -> dict[str, Any]:
    """How many partitions a topic has; 0 if it is not partitioned."""
    return {"partitions": _partitions(site, name), "deleted": False}


@router.get("/{topic}/stats")
async def stats(site: SiteArgument, topic: FoundTopic) -> dict[str, Any]:
    """The figures of a topic."""
    return volatile_figures(site, topic)


@router.get("/{topic}/subscriptions")
async def subscriptions(topic: FoundTopic) -> list[str]:
    """The names of a topic's subscriptions."""
    return sorted(subscription.name for subscription in topic.subscriptions)
