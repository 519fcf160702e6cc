"""Reaching a broker, and its errors in plain words."""

import socket

import pytest
from confluent_kafka import KafkaError
from typer.testing import CliRunner

from millstream.cli.app import app
from millstream.cli.connection import Connection, connected, parse_pairs
from millstream.cli.errors import FAILURE, USAGE, CliError


@pytest.fixture
def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
    return f"{host}:{port}"


def test_nobody_listens(closed_port: str) -> None:
    result = CliRunner().invoke(app, ["topic", "list"], env={"MILLSTREAM_BROKER": closed_port})
    assert result.exit_code == FAILURE
    assert result.stderr == (
        f"error: no broker at {closed_port} (connection refused); "
        "start one with 'millstream serve', or name another with --broker HOST:PORT\n"
    )


def test_one_of_several_addresses_is_enough(closed_port: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        Connection(f"{closed_port}, {host}:{port}", {}).reach()


def test_ipv6_address() -> None:
    Connection("[::1]:9092", {})


def test_pairs() -> None:
    assert parse_pairs(["a=1", "b=", "c=x=y"], "--config") == [("a", "1"), ("b", ""), ("c", "x=y")]
    assert parse_pairs(None, "--config") == []
    for bad in ("a", "=1", ""):
        with pytest.raises(CliError, match="KEY=VALUE"):
            parse_pairs([bad], "--config")


@pytest.mark.parametrize(
    ("code", "text", "expected", "status"),
    [
        (KafkaError._TRANSPORT, "Local: Broker transport failure", "does not answer (Broker transport", FAILURE),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "Broker: no", "refused the request: no", FAILURE),
        (KafkaError.UNSUPPORTED_VERSION, "x", "cannot do this", FAILURE),
        (KafkaError._INVALID_ARG, 'No such configuration property: "x"', "No such configuration", USAGE),
        (KafkaError.POLICY_VIOLATION, "Broker: Not today.", "answered: Not today (POLICY_VIOLATION)", FAILURE),
    ],
)
def test_errors_are_explained(code: int, text: str, expected: str, status: int) -> None:
    error = Connection("127.0.0.1:9092", {}).explain(KafkaError(code, text))
    assert expected in str(error)
    assert error.status == status


def test_an_unknown_property_is_a_usage_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        with pytest.raises(CliError, match="nosuch") as caught, connected(f"{host}:{port}", ["nosuch=1"]) as made:
            made.admin()
    assert caught.value.status == USAGE
