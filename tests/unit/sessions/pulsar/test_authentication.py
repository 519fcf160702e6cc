"""Tokens: who is let in, who is asked again, and who is parted from."""

from typing import Any

import jwt
import pytest

from millstream.sessions.pulsar.authentication import Tokens
from millstream.wire.pulsar.pulsar_pb2 import (
    AuthData,
    CommandAuthChallenge,
    CommandAuthResponse,
    CommandConnect,
    CommandConnected,
    CommandError,
    CommandPong,
    FeatureFlags,
    ServerError,
)
from tests.unit.sessions.pulsar.spoken import Client, Conversation

SECRET = b"0123456789abcdef0123456789abcdef"


@pytest.fixture
def there() -> Conversation:
    there = Conversation()
    there.shared.tokens = Tokens(SECRET, there.runtime)
    return there


def token(there: Conversation, *, lasts_s: int | None = None, secret: bytes = SECRET, **claims: Any) -> bytes:
    """A token of the role `app`, unless said otherwise."""
    if lasts_s is not None:
        claims["exp"] = there.runtime.now_ms() // 1000 + lasts_s
    return jwt.encode({"sub": "app", **claims}, secret, algorithm="HS256").encode()


def connect(data: bytes, method: str = "token", **fields: Any) -> CommandConnect:
    flags = FeatureFlags(supports_auth_refresh=True)
    return CommandConnect(
        client_version="x",
        protocol_version=21,
        auth_method_name=method,
        auth_data=data,
        feature_flags=flags,
        **fields,
    )


def test_a_client_with_a_token_is_let_in(there: Conversation) -> None:
    client = Client(there)
    client.ask(connect(token(there)), CommandConnected)
    assert client.produce().producer_name


def test_who_shows_nothing_valid_is_told_and_parted_from(there: Conversation) -> None:
    shown = [
        connect(b""),
        connect(b"nonsense"),
        connect(token(there, secret=b"x" * 32)),
        connect(token(there, lasts_s=-1)),
        connect(token(there, sub="")),
        connect(token(there, exp="soon")),
        connect(jwt.encode({"sub": "app"}, "", algorithm="none").encode()),
        connect(token(there), method="basic"),
        connect(token(there), original_auth_data="nonsense"),
    ]
    for command in shown:
        client = Client(there)
        refused = client.ask(command, CommandError)
        assert (refused.error, refused.request_id) == (ServerError.AuthenticationError, 2**64 - 1)
        assert client.ended


def test_a_proxy_speaks_for_whom_it_says(there: Conversation) -> None:
    client = Client(there)
    original = token(there, sub="user").decode()
    client.ask(connect(token(there, sub="proxy"), original_auth_data=original), CommandConnected)


def test_an_expired_token_is_asked_for_again(there: Conversation) -> None:
    client = Client(there)
    client.ask(connect(token(there, lasts_s=40)), CommandConnected)
    there.pass_ms(30_000)
    client.tell(CommandPong())
    client.taken()
    there.pass_ms(30_000)
    challenge = [one for one in client.taken() if isinstance(one, CommandAuthChallenge)]
    assert [one.challenge.auth_data for one in challenge] == [b"PulsarAuthRefresh"]
    renewed = AuthData(auth_method_name="token", auth_data=token(there, lasts_s=3600))
    client.tell(CommandAuthResponse(client_version="x", response=renewed))
    for _ in range(4):
        there.pass_ms(20_000)
        client.tell(CommandAuthResponse(client_version="x", response=renewed))
    assert (client.ended, [one for one in client.taken() if isinstance(one, CommandAuthChallenge)]) == ("", [])


def test_who_does_not_answer_or_becomes_another_is_parted_from(there: Conversation) -> None:
    silent, other = Client(there), Client(there)
    for client in (silent, other):
        client.ask(connect(token(there, lasts_s=10)), CommandConnected)
    there.pass_ms(30_000)
    renewed = AuthData(auth_method_name="token", auth_data=token(there, sub="somebody else"))
    other.tell(CommandAuthResponse(client_version="x", response=renewed))
    assert other.ended == "its new token is another's"
    there.pass_ms(30_000)
    assert silent.ended == "its token has expired"


def test_without_a_secret_everyone_is_let_in() -> None:
    there = Conversation()
    client = Client(there)
    client.ask(connect(b"anything", method="sasl"), CommandConnected)
