"""The HTTP listener on a real server: what it answers, what it refuses, and that it is described."""

import http.client
import importlib.metadata
import json
import socket
from collections.abc import Iterator

import pytest

import millstream


@pytest.fixture(scope="module")
def broker() -> Iterator[millstream.Broker]:
    listen = ("kafka=127.0.0.1:0", "http=127.0.0.1:0", "any=127.0.0.1:0")
    with millstream.running(listen=listen) as broker:
        yield broker


def get(address: str, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=20)
    connection.request("GET", path)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, content


def test_health(broker: millstream.Broker) -> None:
    status, content = get(broker.http, "/health")
    assert (status, json.loads(content)) == (200, {"status": "ok", "failed_partitions": 0})


def test_the_version_is_the_products(broker: millstream.Broker) -> None:
    status, content = get(broker.http, "/version")
    assert status == 200
    assert json.loads(content)["version"] == importlib.metadata.version("millstream")


def test_every_route_is_described(broker: millstream.Broker) -> None:
    status, content = get(broker.http, "/openapi.json")
    assert status == 200
    assert {"/health", "/version"} <= json.loads(content)["paths"].keys()


def test_the_listener_for_any_protocol_takes_http(broker: millstream.Broker) -> None:
    assert get(broker.addresses["any"], "/health")[0] == 200


def test_what_is_not_there_is_said(broker: millstream.Broker) -> None:
    assert get(broker.http, "/nothing")[0] == 404


def test_what_is_no_http_costs_its_connection_alone(broker: millstream.Broker) -> None:
    host, port = broker.http.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as peer:
        peer.sendall(b"\x00\x00\x00\x10 no request at all \r\n\r\n")
        assert peer.recv(1000).startswith(b"HTTP/1.1 400")
        assert peer.recv(1000) == b""
    assert get(broker.http, "/health")[0] == 200


def test_a_body_over_the_limit_is_refused(broker: millstream.Broker) -> None:
    connection = http.client.HTTPConnection(broker.http, timeout=20)
    connection.putrequest("POST", "/health")
    connection.putheader("content-length", str(2**40))
    connection.endheaders()
    assert connection.getresponse().status in {405, 413}
    connection.close()
    assert get(broker.http, "/health")[0] == 200
