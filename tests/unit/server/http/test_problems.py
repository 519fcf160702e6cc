"""What errors are answered with, and that the API describes itself."""

from pathlib import Path

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from millstream.broker.errors import BrokerError, InvalidPartitionCount, UnknownTopic
from millstream.broker.namespaces.errors import NamespaceError
from millstream.broker.schemas.errors import SchemaError
from millstream.broker.subscriptions.errors import SubscriptionError
from millstream.model.errors import IoFailed, MillstreamError
from millstream.server.http import (
    clusters,
    lookup,
    metrics,
    namespaces,
    policies,
    schemas,
    stats,
    subscriptions,
    tenants,
    topics,
    volatile,
)
from millstream.server.http.problems import status_of
from tests.unit.server.http.admin import Admin

ROUTERS = [
    clusters.router,
    lookup.router,
    metrics.router,
    namespaces.router,
    policies.router,
    schemas.router,
    stats.router,
    subscriptions.router,
    tenants.router,
    topics.router,
    volatile.router,
]
DOCS = Path(__file__).resolve().parents[4] / "docs" / "http.md"


def test_each_error_has_a_status() -> None:
    assert status_of(UnknownTopic("x")) == 404
    assert status_of(InvalidPartitionCount("x")) == 406
    assert status_of(IoFailed("x")) == status_of(BrokerError("x")) == status_of(MillstreamError("x")) == 500


@pytest.mark.parametrize("root", [NamespaceError, SchemaError, SubscriptionError])
def test_refusals_are_the_callers_affair(root: type[BrokerError]) -> None:
    for kind in root.__subclasses__():
        error = kind.__new__(kind)
        assert 400 <= status_of(error) < 500, kind


def test_an_unknown_path_and_a_wrong_method_say_why(admin: Admin) -> None:
    admin.refused(404, "GET", "/admin/v2/nothing")
    admin.refused(405, "PATCH", "~/topic")
    admin.refused(405, "POST", "/admin/v2/clusters")
    assert admin.headers["allow"] == "GET"


@pytest.mark.parametrize("router", ROUTERS)
def test_every_route_is_described_and_documented(admin: Admin, router: APIRouter) -> None:
    described = admin("GET", "/openapi.json")["paths"]
    documented = DOCS.read_text()
    for route in router.routes:
        assert isinstance(route, APIRoute)
        if not route.include_in_schema:
            continue
        for method in route.methods or ():
            operation = described[route.path][method.lower()]
            assert operation.get("description"), route.path
            if method in {"PUT", "POST"} and "requestBody" in operation:
                assert "application/json" in operation["requestBody"]["content"]
        assert f"`{route.path.removeprefix('/admin/v2')}`" in documented, route.path
