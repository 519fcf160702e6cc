"""What routes take from a request, how figures are added up, and that the app has every family of routes."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match

from millstream.broker.namespaces import InvalidNamespaceName
from millstream.server.http.app import ROUTERS, make_app
from millstream.server.http.arguments import as_boolean, as_integer, as_object, as_word, checked_name, takes
from millstream.server.http.figures import partition_figures, total_figures
from millstream.server.http.found import Spot
from millstream.server.http.site import Site
from millstream.server.places import Places
from tests.unit.broker.simulated_broker import SimulatedBroker, append


@pytest.mark.parametrize(
    ("read", "good", "bad"),
    [
        (as_integer, 5, [True, 1.0, "5", None, 2**63]),
        (as_boolean, True, [1, "true", None]),
        (as_word, "a", [1, None, ["a"]]),
        (as_object, {"a": 1}, [1, "a", []]),
    ],
)
def test_bodies_have_a_type(read: Callable[[Any], Any], good: Any, bad: list[Any]) -> None:
    assert read(good) == good
    for body in bad:
        with pytest.raises(HTTPException):
            read(body)
    assert as_object(None) == {}


def test_names_are_decoded_and_checked() -> None:
    assert checked_name("a%3Db") == "a=b"
    for text in ("", "a b", "a%2Fb", "%C3%A9", "a%00"):
        with pytest.raises(InvalidNamespaceName):
            checked_name(text)


def test_bodies_are_described() -> None:
    described = takes("integer", required=False)["requestBody"]
    assert described == {"required": False, "content": {"application/json": {"schema": {"type": "integer"}}}}


def test_figures_of_partitions_are_added_up() -> None:
    sim = SimulatedBroker()
    site = Site(sim.broker, Places({}))
    topic = sim.create(partitions=2)
    for index, count in ((0, 2), (1, 3)):
        for _ in range(count):
            append(topic.partitions[index])
        sim.wait(sim.broker.subscriptions.create(topic, index, "s", 1))
    spots = [Spot(topic, index, index) for index in range(2)]
    each = {spot.name: partition_figures(site, spot) for spot in spots}
    total = total_figures(each, per_partition=True)
    assert total["msgInCounter"] == 5
    assert total["storageSize"] == sum(partition.log.size_bytes for partition in topic.partitions)
    assert total["subscriptions"]["s"]["msgBacklog"] == 3
    assert list(total["partitions"]) == [spot.name for spot in spots]
    assert [one["subscriptions"]["s"]["msgBacklog"] for one in total["partitions"].values()] == [1, 2]


def test_no_route_hides_another() -> None:
    app = make_app(Site(SimulatedBroker().broker, Places({})))
    described = app.openapi()["paths"]
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    assert len(described) > 70
    for path, operations in described.items():
        for method in operations:
            scope = {"type": "http", "path": re.sub(r"\{\w+\}", "x", path), "method": method.upper(), "root_path": ""}
            taken = next(route for route in routes if route.matches(scope)[0] is Match.FULL)
            assert taken.path == path
