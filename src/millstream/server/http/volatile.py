"""Non-persistent topics: they come to be with their first client and go with their last."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from millstream.broker.errors import UnknownTopic
from millstream.broker.volatile import VolatileTopic
from millstream.server.http.arguments import NamespaceArgument, SiteArgument, TopicArgument
from millstream.server.http.deletion import part_from_volatile
from millstream.server.http.figures import volatile_figures
from millstream.server.http.found import volatile_names_in

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
async def partitioned_topics(found: NamespaceArgument) -> list[str]:
    """None: non-persistent topics are not partitioned."""
    return []


@router.put("/{topic}", status_code=204)
async def create(site: SiteArgument, name: TopicArgument) -> None:
    """Nothing to do but to look whether the namespace is there: the topic comes to be with its first client."""
    site.broker.namespaces.check(name.topic.tenant, name.topic.namespace)


@router.delete("/{topic}", status_code=204)
async def delete(site: SiteArgument, topic: FoundTopic) -> None:
    """Close all producers and consumers of a topic; it is there again as soon as one of them comes back."""
    part_from_volatile(site, topic)


@router.put("/{topic}/unload", status_code=204)
async def unload(site: SiteArgument, topic: FoundTopic) -> None:
    """Close all producers and consumers of a topic; clients connect again by themselves."""
    part_from_volatile(site, topic)


@router.get("/{topic}/partitions")
async def partitions(site: SiteArgument, name: TopicArgument) -> dict[str, Any]:
    """How many partitions a topic has: none, non-persistent topics are not partitioned."""
    site.broker.namespaces.check(name.topic.tenant, name.topic.namespace)
    return {"partitions": 0, "deleted": False}


@router.get("/{topic}/stats")
async def stats(site: SiteArgument, topic: FoundTopic) -> dict[str, Any]:
    """The figures of a topic."""
    return volatile_figures(site, topic)


@router.get("/{topic}/subscriptions")
async def subscriptions(topic: FoundTopic) -> list[str]:
    """The names of a topic's subscriptions."""
    return sorted(subscription.name for subscription in topic.subscriptions)
