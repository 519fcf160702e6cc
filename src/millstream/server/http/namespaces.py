"""Namespaces, and the topics in them."""

from typing import Any, Literal

from fastapi import APIRouter

from millstream.server.http.arguments import (
    AnyBody,
    NamespaceArgument,
    SiteArgument,
    as_object,
    checked_name,
    takes,
)
from millstream.server.http.deletion import delete_namespace, part_from_clients
from millstream.server.http.found import names_in, volatile_names_in
from millstream.server.http.policy_forms import policies_form, read_policies
from millstream.server.http.site import outcome

__all__ = ["router"]

router = APIRouter(prefix="/admin/v2/namespaces", tags=["namespaces"])


@router.get("/{tenant}")
async def namespaces(site: SiteArgument, tenant: str) -> list[str]:
    """The full names of a tenant's namespaces."""
    return [str(namespace) for namespace in site.broker.namespaces.of_tenant(checked_name(tenant))]


@router.get("/{tenant}/{namespace}")
async def policies(found: NamespaceArgument) -> dict[str, Any]:
    """The policies of a namespace, as far as they were set."""
    return policies_form(found.policies)


@router.put("/{tenant}/{namespace}", status_code=204, openapi_extra=takes("object", required=False))
async def create(site: SiteArgument, tenant: str, namespace: str, body: AnyBody) -> None:
    """Make a namespace. The body may have policies as `GET` gives them; others are passed over."""
    given = read_policies(as_object(body))
    await outcome(site.broker.namespaces.create(checked_name(tenant), checked_name(namespace), given)[1])


@router.delete("/{tenant}/{namespace}", status_code=204)
async def delete(site: SiteArgument, found: NamespaceArgument, force: bool = False) -> None:
    """Delete a namespace: one without topics, or with force one with all its topics."""
    await delete_namespace(site, found, force=force)


@router.get("/{tenant}/{namespace}/topics")
async def topics(
    site: SiteArgument,
    found: NamespaceArgument,
    mode: Literal["PERSISTENT", "NON_PERSISTENT", "ALL"] = "PERSISTENT",
) -> list[str]:
    """The topics of a namespace, partitions one by one; non-persistent ones as long as anybody is connected."""
    kept = names_in(site, found) if mode != "NON_PERSISTENT" else []
    volatile = volatile_names_in(site, found) if mode != "PERSISTENT" else []
    return kept + volatile


@router.put("/{tenant}/{namespace}/unload", status_code=204)
async def unload(site: SiteArgument, found: NamespaceArgument) -> None:
    """Close all producers and consumers of the namespace's topics; clients connect again by themselves."""
    for topic in site.broker.namespaces.topics_in(found):
        part_from_clients(site, topic, range(len(topic.partitions)))


@router.get("/{tenant}/{namespace}/bundles")
async def bundles(found: NamespaceArgument) -> dict[str, Any]:
    """How the namespace is split among brokers: not at all."""
    return {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1}
