"""Tenants."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from starlette.exceptions import HTTPException

from millstream.broker.namespaces import CLUSTER
from millstream.server.http.arguments import AnyBody, SiteArgument, as_object, checked_name, takes
from millstream.server.http.deletion import delete_namespace
from millstream.server.http.site import outcome

__all__ = ["router"]

router = APIRouter(prefix="/admin/v2/tenants", tags=["tenants"])


def _words(info: Mapping[str, Any], name: str) -> list[str]:
    value = info.get(name) or []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise HTTPException(400, f"{name} is a list of strings")
    return value


def _clusters(info: Mapping[str, Any]) -> list[str]:
    clusters = _words(info, "allowedClusters") or [CLUSTER]
    if clusters != [CLUSTER]:
        raise HTTPException(412, f"this server has one cluster, {CLUSTER}")
    return clusters


@router.get("")
async def tenants(site: SiteArgument) -> list[str]:
    """The names of the tenants."""
    return [tenant.name for tenant in site.broker.namespaces.tenants()]


@router.get("/{tenant}")
async def tenant_info(site: SiteArgument, tenant: str) -> dict[str, list[str]]:
    """What is known of a tenant."""
    found = site.broker.namespaces.tenant(checked_name(tenant))
    return {"adminRoles": list(found.admin_roles), "allowedClusters": list(found.allowed_clusters)}


@router.put("/{tenant}", status_code=204, openapi_extra=takes("object", required=False))
async def create_tenant(site: SiteArgument, tenant: str, body: AnyBody) -> None:
    """Make a tenant. The body may have adminRoles, which are kept, and allowedClusters."""
    info, name = as_object(body), checked_name(tenant)
    await outcome(site.broker.namespaces.create_tenant(name, _words(info, "adminRoles"), _clusters(info)))


@router.post("/{tenant}", status_code=204, openapi_extra=takes("object"))
async def update_tenant(site: SiteArgument, tenant: str, body: AnyBody) -> None:
    """Change what is known of a tenant."""
    info, name = as_object(body), checked_name(tenant)
    await outcome(site.broker.namespaces.update_tenant(name, _words(info, "adminRoles"), _clusters(info)))


@router.delete("/{tenant}", status_code=204)
async def delete_tenant(site: SiteArgument, tenant: str, force: bool = False) -> None:
    """Delete a tenant: one without namespaces, or with force one with all that is in it."""
    name = checked_name(tenant)
    if force:
        for namespace in site.broker.namespaces.of_tenant(name):
            await delete_namespace(site, namespace, force=True)
    await outcome(site.broker.namespaces.delete_tenant(name))
