"""The figures of topics."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException

from millstream.server.http.arguments import SiteArgument, TopicArgument
from millstream.server.http.figures import internal_figures, partition_figures, total_figures
from millstream.server.http.found import find_spot, find_spots, find_topic
from millstream.sessions.pulsar.names import is_partitioned

__all__ = ["router"]

router = APIRouter(prefix="/admin/v2/persistent/{tenant}/{namespace}/{topic}", tags=["figures of topics"])


@router.get("/stats")
async def stats(site: SiteArgument, name: TopicArgument) -> dict[str, Any]:
    """The figures of a topic that is not partitioned, or of one partition."""
    return partition_figures(site, find_spot(site, name))


@router.get("/partitioned-stats")
async def partitioned_stats(
    site: SiteArgument, name: TopicArgument, per_partition: Annotated[bool, Query(alias="perPartition")] = True
) -> dict[str, Any]:
    """The figures of a partitioned topic: sums, and those of each partition."""
    if not is_partitioned(find_topic(site, name)):
        raise HTTPException(404, f"Partitioned Topic not found: {name}")
    figures = {spot.name: partition_figures(site, spot) for spot in find_spots(site, name)}
    return total_figures(figures, per_partition=per_partition)


@router.get("/internalStats")
async def internal_stats(site: SiteArgument, name: TopicArgument) -> dict[str, Any]:
    """How a topic that is not partitioned, or one partition, and its cursors lie in the log."""
    return internal_figures(site, find_spot(site, name))


@router.get("/partitioned-internalStats")
async def partitioned_internal_stats(site: SiteArgument, name: TopicArgument) -> dict[str, Any]:
    """The same of all partitions of a topic."""
    find_topic(site, name)
    figures = {spot.name: internal_figures(site, spot) for spot in find_spots(site, name)}
    return {"metadata": {"partitions": len(figures), "deleted": False}, "partitions": figures}
