"""Topics: listing, making, deleting, growing, terminating, unloading and compacting them."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.exceptions import HTTPException

from millstream.broker.errors import InvalidTopicName, TopicExists
from millstream.broker.topics import Topic
from millstream.server.http.arguments import (
    AnyBody,
    NamespaceArgument,
    SiteArgument,
    TopicArgument,
    as_integer,
    takes,
)
from millstream.server.http.deletion import delete_topic, part_from_clients
from millstream.server.http.found import find_spot, find_spots, find_topic, last_message_id, names_in
from millstream.server.http.site import Compaction, Site, outcome
from millstream.sessions.pulsar.names import PulsarName, find_place, is_partitioned, topic_text

__all__ = ["router"]

router = APIRouter(prefix="/admin/v2/persistent/{tenant}/{namespace}", tags=["topics"])


@router.get("")
async def topics(site: SiteArgument, found: NamespaceArgument) -> list[str]:
    """The topics of a namespace, partitions one by one."""
    return names_in(site, found)


@router.get("/partitioned")
async def partitioned_topics(site: SiteArgument, found: NamespaceArgument) -> list[str]:
    """The partitioned topics of a namespace."""
    return [topic_text(topic.name) for topic in site.broker.namespaces.topics_in(found) if is_partitioned(topic)]


# Making


def _check_new(site: Site, name: PulsarName) -> None:
    namespace = site.broker.namespaces.get(name.topic.tenant, name.topic.namespace)
    if site.broker.topics.by_name(name.topic) is not None or find_place(site.broker.topics, name) is not None:
        raise TopicExists("This topic already exists")
    if name.partition is not None:
        raise InvalidTopicName(f"{name} would be a partition of a topic that is not there")
    most = namespace.policies.topics_max
    if most and len(site.broker.namespaces.topics_in(namespace)) >= most:
        raise HTTPException(412, f"the namespace has {most} topics already, as many as it may have")


@router.put("/{topic}", status_code=204, openapi_extra=takes("object", required=False))
async def create(site: SiteArgument, name: TopicArgument) -> None:
    """Make a topic that is not partitioned. Properties in the body are passed over."""
    _check_new(site, name)
    await outcome(site.broker.topics.create(name.topic, 1, {}))


@router.put("/{topic}/partitions", status_code=204, openapi_extra=takes("integer"))
async def create_partitioned(site: SiteArgument, name: TopicArgument, body: AnyBody) -> None:
    """Make a partitioned topic; the body is the number of partitions, or an object with `partitions`."""
    count = as_integer(body.get("partitions") if isinstance(body, dict) else body)
    if name.partition is not None:
        raise InvalidTopicName(f"{name} has the name of a partition")
    _check_new(site, name)
    await outcome(site.broker.topics.create(name.topic, count, {}, partitioned=True))


@router.post("/{topic}/partitions", status_code=204, openapi_extra=takes("integer"))
async def grow(site: SiteArgument, name: TopicArgument, body: AnyBody) -> None:
    """Give a partitioned topic more partitions; the body is how many it has then."""
    topic, count = _find_partitioned(site, name), as_integer(body)
    if count < len(topic.partitions):
        raise HTTPException(422, f"the topic has {len(topic.partitions)} partitions, and cannot have fewer")
    if count > len(topic.partitions):
        await outcome(site.broker.topics.add_partitions(topic, count))


@router.post("/{topic}/createMissedPartitions", status_code=204)
async def create_missed(site: SiteArgument, name: TopicArgument) -> None:
    """Nothing to do: a topic has all its partitions from the start."""
    _find_partitioned(site, name)


def _find_partitioned(site: Site, name: PulsarName) -> Topic:
    topic = find_topic(site, name)
    if not is_partitioned(topic):
        raise HTTPException(409, f"{name} is not a partitioned topic")
    return topic


@router.get("/{topic}/partitions")
async def partitions(
    site: SiteArgument,
    name: TopicArgument,
    may_create: Annotated[bool, Query(alias="checkAllowAutoCreation")] = False,
) -> dict[str, Any]:
    """How many partitions a topic has; 0 if it is not partitioned, or comes to be when it is used.

    Args:
        may_create: a topic that is not there is made, where its namespace makes partitioned topics by itself.
    """
    broker = site.broker
    broker.namespaces.check(name.topic.tenant, name.topic.namespace)
    topic = broker.topics.by_name(name.topic)
    if topic is None and find_place(broker.topics, name) is None:
        rule = broker.namespaces.auto_creation(name.topic.tenant, name.topic.namespace)
        if not (may_create and rule.allowed):
            find_topic(site, name)
        if rule.partitions is not None and name.partition is None:
            making = broker.topics.get_or_create(name.topic, partitions=rule.partitions, partitioned=True)
            topic = await outcome(making)
    count = len(topic.partitions) if topic is not None and is_partitioned(topic) else 0
    return {"partitions": count, "deleted": False}


# Deleting


@router.delete("/{topic}", status_code=204)
async def delete(site: SiteArgument, name: TopicArgument, force: bool = False) -> None:
    """Delete a topic that is not partitioned; with force even if somebody is connected to it."""
    if name.partition is not None and find_spot(site, name).shown >= 0:
        raise HTTPException(409, f"{name} is a partition: a topic is deleted with all of them, or gets more")
    topic = find_topic(site, name)
    if is_partitioned(topic):
        raise HTTPException(409, f"{name} is partitioned: delete it at .../partitions")
    await delete_topic(site, topic, force=force)


@router.delete("/{topic}/partitions", status_code=204)
async def delete_partitioned(site: SiteArgument, name: TopicArgument, force: bool = False) -> None:
    """Delete a partitioned topic; with force even if somebody is connected to it."""
    topic = find_topic(site, name)
    if not is_partitioned(topic):
        raise HTTPException(404, f"Partitioned Topic not found: {name}")
    await delete_topic(site, topic, force=force)


# Working on what is there


@router.put("/{topic}/unload", status_code=204)
async def unload(site: SiteArgument, name: TopicArgument) -> None:
    """Close all producers and consumers of a topic or a partition; clients connect again by themselves."""
    for spot in find_spots(site, name):
        part_from_clients(site, spot.topic, [spot.index])


@router.post("/{topic}/terminate")
async def terminate(site: SiteArgument, name: TopicArgument) -> dict[str, int]:
    """Let nothing be published to a topic ever again; answers with the id of its last message."""
    topic = site.broker.topics.by_name(name.topic)
    if topic is not None and is_partitioned(topic):
        raise HTTPException(405, "Termination of a partitioned topic is not allowed: use .../terminate/partitions")
    spot = find_spot(site, name)
    await outcome(site.broker.topics.terminate(spot.topic, spot.index))
    return last_message_id(spot)


@router.post("/{topic}/terminate/partitions")
async def terminate_partitions(site: SiteArgument, name: TopicArgument) -> dict[int, dict[str, int]]:
    """Let nothing be published to any partition ever again; answers with the ids of the last messages."""
    topic = _find_partitioned(site, name)
    for index in range(len(topic.partitions)):
        await outcome(site.broker.topics.terminate(topic, index))
    return {spot.index: last_message_id(spot) for spot in find_spots(site, name)}


@router.get("/{topic}/lastMessageId")
async def last_id(site: SiteArgument, name: TopicArgument) -> dict[str, int]:
    """The id of the last entry of a topic or a partition; entry -1 if there is none."""
    return last_message_id(find_spot(site, name))


def _compaction(site: SiteArgument) -> Compaction:
    if site.compaction is None:
        raise HTTPException(501, "this server does not compact topics")
    return site.compaction


CompactionArgument = Annotated[Compaction, Depends(_compaction)]


@router.put("/{topic}/compaction", status_code=204)
async def compact(site: SiteArgument, compaction: CompactionArgument, name: TopicArgument) -> None:
    """Begin to compact a topic, all its partitions; refused with 409 while that is under way."""
    for spot in find_spots(site, name):
        compaction.start(spot.topic, spot.index)


@router.get("/{topic}/compaction")
async def compaction_status(
    site: SiteArgument, compaction: CompactionArgument, name: TopicArgument
) -> dict[str, str]:
    """How the compaction of a topic stands: NOT_RUN, RUNNING, SUCCESS or ERROR; of several partitions the worst."""
    states = [compaction.status(spot.topic, spot.index) for spot in find_spots(site, name)]
    worst = min(states, key=lambda state: ("ERROR", "RUNNING", "NOT_RUN", "SUCCESS").index(state.status))
    return {"status": worst.status, "lastError": worst.last_error}
