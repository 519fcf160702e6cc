"""Access tokens of the Iggy HTTP API."""

import jwt
import pytest

from millstream.server.http.iggy_access import ACCESS_SECONDS, AccessTokens, NoAccess
from tests.support.simulated_runtime import SimulatedRuntime


def test_a_token_says_whom_it_lets_in() -> None:
    tokens = AccessTokens(SimulatedRuntime())
    text, token = tokens.issue(7)
    assert tokens.check(text) == token
    assert token.user_id == 7
    other, _ = tokens.issue(7)
    assert other != text


def test_a_token_expires_after_an_hour() -> None:
    runtime = SimulatedRuntime()
    tokens = AccessTokens(runtime)
    text, token = tokens.issue(7)
    assert token.expires_s == runtime.now_ms() // 1000 + ACCESS_SECONDS
    runtime.advance(ACCESS_SECONDS - 1)
    tokens.check(text)
    runtime.advance(1)
    with pytest.raises(NoAccess, match="expired"):
        tokens.check(text)


def test_a_revoked_token_is_good_no_more_and_is_forgotten_in_the_end() -> None:
    runtime = SimulatedRuntime()
    tokens = AccessTokens(runtime)
    (one, first), (other, second) = tokens.issue(7), tokens.issue(7)
    tokens.revoke(first)
    with pytest.raises(NoAccess, match="revoked"):
        tokens.check(one)
    assert tokens.check(other) == second
    runtime.advance(ACCESS_SECONDS)
    tokens.revoke(second)
    assert list(tokens._revoked) == [second.id]


@pytest.mark.parametrize("claims", [{}, {"sub": "root"}, {"aud": "others"}, {"iss": "others"}, {"jti": None}])
def test_tokens_of_others_are_refused(claims: dict[str, str]) -> None:
    runtime = SimulatedRuntime()
    tokens = AccessTokens(runtime)
    text, _ = tokens.issue(7)
    good = jwt.decode(text, options={"verify_signature": False})
    with pytest.raises(NoAccess):
        tokens.check(jwt.encode(good, b"another key, of as many bytes...", algorithm="HS256"))
    with pytest.raises(NoAccess):
        tokens.check(jwt.encode(good, "", algorithm="none"))
    if claims:
        changed = {name: value for name, value in {**good, **claims}.items() if value is not None}
        with pytest.raises(NoAccess):
            tokens.check(jwt.encode(changed, tokens._key, algorithm="HS256"))


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "\x00", "é" * 10, "." * 100])
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(NoAccess):
        AccessTokens(SimulatedRuntime()).check(text)
