"""Whether the server is there, and which it is."""

from importlib.metadata import version
from typing import Annotated

from fastapi import APIRouter, Depends

from millstream.server.http.site import Site, site_of

__all__ = ["router"]

router = APIRouter(tags=["health"])


@router.get("/health")
async def health(site: Annotated[Site, Depends(site_of)]) -> dict[str, object]:
    """Answers once the server can serve; partitions that take no more writes are counted."""
    failed = sum(partition.log.failure is not None for topic in site.broker.topics for partition in topic.partitions)
    return {"status": "ok" if not failed else "degraded", "failed_partitions": failed}


@router.get("/version")
async def product_version(site: Annotated[Site, Depends(site_of)]) -> dict[str, str]:
    """The version of the server and the id of its cluster."""
    return {"product": "millstream", "version": version("millstream"), "cluster_id": site.broker.cluster_id}
