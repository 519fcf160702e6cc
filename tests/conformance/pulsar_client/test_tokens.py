"""Tokens: who is let in, over the binary protocol and over HTTP."""

import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import jwt
import pulsar
import pytest

import millstream

SECRET = b"0123456789abcdef0123456789abcdef"
LOGGER = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[millstream.Broker]:
    path: Path = tmp_path_factory.mktemp("secret") / "key"
    path.write_bytes(SECRET)
    with millstream.running(settings={"pulsar.token.secret.file": str(path)}) as broker:
        yield broker


def token(**claims: object) -> str:
    return jwt.encode({"sub": "app", "exp": int(time.time()) + 600, **claims}, SECRET, algorithm="HS256")


@pytest.mark.parametrize("scheme", ["pulsar", "http"])
def test_a_client_with_a_token_is_let_in(guarded: millstream.Broker, scheme: str) -> None:
    address = guarded.pulsar if scheme == "pulsar" else guarded.http
    client = pulsar.Client(f"{scheme}://{address}", authentication=pulsar.AuthenticationToken(token()), logger=LOGGER)
    consumer = client.subscribe(f"topic-{scheme}", "s")
    client.create_producer(f"topic-{scheme}").send(b"hello")
    assert consumer.receive(10_000).data() == b"hello"
    client.close()


@pytest.mark.parametrize("shown", [None, "nonsense", token(exp=1)])
def test_any_other_is_not(guarded: millstream.Broker, shown: str | None) -> None:
    settings = {} if shown is None else {"authentication": pulsar.AuthenticationToken(shown)}
    client = pulsar.Client(f"pulsar://{guarded.pulsar}", operation_timeout_seconds=2, logger=LOGGER, **settings)
    with pytest.raises(pulsar.PulsarException):
        client.create_producer("topic")
    client.close()


def test_http_calls_want_a_token_too(guarded: millstream.Broker) -> None:
    url = f"http://{guarded.http}/admin/v2/namespaces/public"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(url)
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token()}"})
    assert b"public/default" in urllib.request.urlopen(request).read()
    assert urllib.request.urlopen(f"http://{guarded.http}/health").status == 200
