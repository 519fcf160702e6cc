"""Subscriptions: listing, making and deleting them, and moving their cursors.

A name of a partitioned topic stands for all its partitions; what names one message wants one partition.
"""

from typing import Annotated, Any, Final
from urllib.parse import unquote

from fastapi import APIRouter, Path
from starlette.exceptions import HTTPException

from millstream.broker.subscriptions import StartAt, Subscription, SubscriptionNotFound
from millstream.model.frame import read_frame_header
from millstream.server.http.arguments import AnyBody, SiteArgument, TopicArgument, as_integer, as_object, takes
from millstream.server.http.found import Spot, find_spot, find_spots
from millstream.server.http.site import Site, outcome
from millstream.sessions.pulsar.message_ids import ledger_id_of
from millstream.sessions.pulsar.names import PulsarName

__all__ = ["router"]

router = APIRouter(prefix="/admin/v2/persistent/{tenant}/{namespace}/{topic}", tags=["subscriptions"])
_LATEST: Final = 2**63 - 1
_SECONDS_MAX: Final = 2**40
"""Seconds that a message may be old: more than anybody means, and far from any overflow."""
Seconds = Annotated[int, Path(ge=0, le=_SECONDS_MAX)]


def _find(site: Site, name: PulsarName, subscription: str) -> list[tuple[Spot, Subscription]]:
    """A subscription in each partition that a name stands for, and that has it. Raises SubscriptionNotFound."""
    wanted = unquote(subscription)
    found = [
        (spot, one)
        for spot in find_spots(site, name)
        if (one := site.broker.subscriptions.find(spot.topic, spot.index, wanted)) is not None
    ]
    if not found:
        raise SubscriptionNotFound(f"Subscription {wanted} not found")
    return found


def _find_one(site: Site, name: PulsarName, subscription: str) -> tuple[Spot, Subscription]:
    find_spot(site, name)
    return _find(site, name, subscription)[0]


async def _persist(subscription: Subscription) -> None:
    lasting = subscription.persist()
    if lasting is not None:
        await outcome(lasting)


def _offset(spot: Spot, message_id: dict[str, Any]) -> int:
    """The offset of the message that an id names: -1 for the first, 2^63 - 1 for the one to come.

    A position that is marked as excluded stands for the message behind it; without an index in a batch, for the entry
    behind it.
    """
    log = spot.partition.log
    ledger, entry = as_integer(message_id.get("ledgerId", -1)), as_integer(message_id.get("entryId", -1))
    batch_index = as_integer(message_id.get("batchIndex", -1))
    if ledger >= _LATEST:
        return log.end_offset
    if ledger != ledger_id_of(spot.topic) or entry < 0:
        return log.start_offset
    offset = entry + max(batch_index, 0)
    if not message_id.get("isExcluded", message_id.get("excluded")):
        return offset
    if batch_index >= 0 or not log.start_offset <= offset < log.end_offset:
        return offset + 1
    data, _ = log.read(offset, 1)
    return read_frame_header(data).last_offset + 1 if data else offset + 1


@router.get("/subscriptions")
async def subscriptions(site: SiteArgument, name: TopicArgument) -> list[str]:
    """The names of a topic's subscriptions, in any of its partitions."""
    spots = find_spots(site, name)
    return sorted({one for spot in spots for one in site.broker.subscriptions.names(spot.topic, spot.index)})


@router.put("/subscription/{subscription}", status_code=204, openapi_extra=takes("object", required=False))
async def create(site: SiteArgument, name: TopicArgument, subscription: str, body: AnyBody) -> None:
    """Make a durable subscription. The body may be the id of the message at which it begins; the end otherwise."""
    wanted, spots = unquote(subscription), find_spots(site, name)
    if any(site.broker.subscriptions.find(spot.topic, spot.index, wanted) is not None for spot in spots):
        raise HTTPException(409, "Subscription already exists for topic")
    message_id = as_object(body)
    for spot in spots:
        start = _offset(spot, message_id) if "entryId" in message_id else StartAt.LATEST
        await outcome(site.broker.subscriptions.create(spot.topic, spot.index, wanted, start))


@router.delete("/subscription/{subscription}", status_code=204)
async def delete(site: SiteArgument, name: TopicArgument, subscription: str, force: bool = False) -> None:
    """End a subscription; with force even if consumers are connected."""
    found = _find(site, name, subscription)
    if not force and any(one.consumers for _, one in found):
        raise HTTPException(412, "Subscription has active connected consumers")
    for _, one in found:
        await outcome(one.unsubscribe())


@router.post("/subscription/{subscription}/resetcursor/{timestamp}", status_code=204)
async def reset_to_time(
    site: SiteArgument, name: TopicArgument, subscription: str, timestamp: Annotated[int, Path(ge=0, le=_LATEST)]
) -> None:
    """Move a subscription to the first entry published at or after a time, ms since 1970, or to the end."""
    for _, one in _find(site, name, subscription):
        await outcome(one.seek_time(timestamp))


@router.post("/subscription/{subscription}/resetcursor", status_code=204, openapi_extra=takes("object"))
async def reset_to_message(site: SiteArgument, name: TopicArgument, subscription: str, body: AnyBody) -> None:
    """Move a subscription to a message: {"ledgerId", "entryId", "partitionIndex", "batchIndex", "isExcluded"}."""
    message_id = as_object(body)
    spot, one = _find_one(site, name, subscription)
    await outcome(one.seek(_offset(spot, message_id)))


@router.post("/subscription/{subscription}/skip/{count}", status_code=204)
async def skip(
    site: SiteArgument, name: TopicArgument, subscription: str, count: Annotated[int, Path(ge=1, le=_LATEST)]
) -> None:
    """Take the next messages that are not acknowledged yet as acknowledged."""
    _, one = _find_one(site, name, subscription)
    one.expire_before(_behind_next(one, count))
    await _persist(one)


def _behind_next(subscription: Subscription, count: int) -> int:
    """The offset behind the next so many messages that are not acknowledged."""
    place = subscription.position
    for start, end in subscription.cursor.acknowledged:
        if place + count <= start:
            break
        count -= start - place
        place = end
    return place + count


@router.post("/subscription/{subscription}/skip_all", status_code=204)
async def skip_all(site: SiteArgument, name: TopicArgument, subscription: str) -> None:
    """Take all messages there are as acknowledged."""
    for spot, one in _find(site, name, subscription):
        one.expire_before(spot.partition.log.end_offset)
        await _persist(one)


@router.post("/subscription/{subscription}/expireMessages/{seconds}", status_code=204)
async def expire(site: SiteArgument, name: TopicArgument, subscription: str, seconds: Seconds) -> None:
    """Take all messages older than some seconds as acknowledged."""
    for _, one in _find(site, name, subscription):
        one.expire_before_time(one.now_ms() - seconds * 1000)
        await _persist(one)


@router.post("/all_subscription/expireMessages/{seconds}", status_code=204)
async def expire_all(site: SiteArgument, name: TopicArgument, seconds: Seconds) -> None:
    """The same for every subscription of a topic."""
    for spot in find_spots(site, name):
        for one in site.broker.subscriptions.names(spot.topic, spot.index):
            found = site.broker.subscriptions.find(spot.topic, spot.index, one)
            if found is not None:
                found.expire_before_time(found.now_ms() - seconds * 1000)
                await _persist(found)
