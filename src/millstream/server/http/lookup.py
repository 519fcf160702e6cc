"""Where a topic is served, for Pulsar clients with an http:// service URL: always here."""

from typing import Annotated

from fastapi import APIRouter, Header, Request
from starlette.exceptions import HTTPException

from millstream.server.http.arguments import SiteArgument, TopicArgument

__all__ = ["router"]

router = APIRouter(prefix="/lookup/v2/topic", tags=["lookup"])


@router.get("/{domain}/{tenant}/{namespace}/{topic}")
async def look_up(
    site: SiteArgument,
    request: Request,
    domain: str,
    name: TopicArgument,
    listenerName: str = "",  # noqa: N803 - as it stands in the query
    x_pulsar_listenername: Annotated[str, Header(convert_underscores=True)] = "",
) -> dict[str, str]:
    """Where clients of a topic are to connect. Raises 404 for an unknown tenant or namespace.

    Addresses that do not exist are empty, but there: the C++ client takes an answer without them for malformed.
    """
    site.broker.namespaces.check(name.topic.tenant, name.topic.namespace)
    host = request.scope["server"][0]
    binary = site.places.endpoint(listenerName or x_pulsar_listenername or "pulsar", host)
    if binary is None:
        raise HTTPException(404, "this server does not listen for Pulsar clients there")
    url = f"pulsar://{binary}" if binary.plain else ""
    url_tls = f"pulsar+ssl://{binary}" if binary.tls else ""
    http = site.places.endpoint("http", host)
    return {
        "brokerUrl": url,
        "brokerUrlTls": url_tls,
        "brokerUrlSsl": url_tls,
        "httpUrl": f"http://{http}" if http is not None and http.plain else "",
        "httpUrlTls": f"https://{http}" if http is not None and http.tls else "",
        "nativeUrl": url,
    }


@router.get("/{domain}/{tenant}/{namespace}/{topic}/bundle")
async def bundle(site: SiteArgument, domain: str, name: TopicArgument) -> str:
    """The range of topics that is served together: all of them."""
    site.broker.namespaces.check(name.topic.tenant, name.topic.namespace)
    return "0x00000000_0xffffffff"
