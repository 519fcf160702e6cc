"""The cluster and its broker, of which there is one each."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException

from millstream.broker.namespaces import CLUSTER
from millstream.server.http.arguments import SiteArgument, takes
from millstream.sessions.session import Endpoint

__all__ = ["router"]

router = APIRouter(prefix="/admin/v2", tags=["clusters and brokers"])


def _address(site: SiteArgument, request: Request) -> Endpoint | None:
    return site.places.endpoint("http", request.scope["server"][0])


@router.get("/clusters")
async def clusters() -> list[str]:
    """The names of the clusters."""
    return [CLUSTER]


@router.get("/clusters/{cluster}")
async def cluster(site: SiteArgument, request: Request, cluster: str) -> dict[str, Any]:
    """Where a cluster is reached."""
    if cluster != CLUSTER:
        raise HTTPException(404, f"there is no cluster {cluster}")
    http = _address(site, request)
    binary = site.places.endpoint("pulsar", request.scope["server"][0])
    return {
        "serviceUrl": f"http://{http}" if http is not None and http.plain else "",
        "serviceUrlTls": f"https://{http}" if http is not None and http.tls else "",
        "brokerServiceUrl": f"pulsar://{binary}" if binary is not None and binary.plain else "",
        "brokerServiceUrlTls": f"pulsar+ssl://{binary}" if binary is not None and binary.tls else "",
    }


@router.put("/clusters/{cluster}", openapi_extra=takes("object", required=False))
async def create_cluster(cluster: str) -> None:
    """Refused: there is one cluster, and it is there already."""
    if cluster == CLUSTER:
        raise HTTPException(409, f"the cluster {CLUSTER} exists already")
    raise HTTPException(412, f"this server has one cluster, {CLUSTER}")


@router.get("/brokers/health", response_class=PlainTextResponse)
async def broker_health(site: SiteArgument) -> str:
    """Says ok, or that there are partitions which take no more writes."""
    if any(partition.log.failure is not None for topic in site.broker.topics for partition in topic.partitions):
        raise HTTPException(500, "there are partitions that take no more writes: see the server's log")
    return "ok"


@router.get("/brokers/ready", response_class=PlainTextResponse)
async def broker_ready() -> str:
    """Says ok."""
    return "ok"


@router.get("/brokers/version", response_class=PlainTextResponse)
async def broker_version(site: SiteArgument) -> str:
    """The version of the server."""
    return site.version


@router.get("/brokers")
@router.get("/brokers/{cluster}")
async def brokers(site: SiteArgument, request: Request, cluster: str = CLUSTER) -> list[str]:
    """The addresses of the brokers of a cluster."""
    if cluster != CLUSTER:
        raise HTTPException(404, f"there is no cluster {cluster}")
    http = _address(site, request)
    return [] if http is None else [str(http)]
