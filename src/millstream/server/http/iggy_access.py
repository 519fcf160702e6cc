"""Access tokens of the Iggy HTTP API: JSON Web Tokens (HS256) that a login gives, and a logout revokes.

The key is drawn at the start, so that a token dies with the server that gave it, as with Iggy's own server where no
secret is configured.
"""

from dataclasses import dataclass
from typing import Final

import jwt

from millstream.model.runtime import Runtime

__all__ = ["ACCESS_SECONDS", "AccessToken", "AccessTokens", "NoAccess"]

ACCESS_SECONDS: Final = 3600
"""Seconds for which a token is good: Iggy's default."""
_ALGORITHM: Final = "HS256"
_ISSUER: Final = "iggy.apache.org"
_KEY_BYTES: Final = 32
"""Bytes of the key: as many as the hash has, which is the least that RFC 7518 allows."""
_ID_BYTES: Final = 16
_CLAIMS: Final = ["exp", "iat", "iss", "aud", "jti", "sub", "nbf"]


class NoAccess(Exception):
    """A token that is none of ours, has expired, or was revoked."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token.

    Args:
        id: told apart by this from all others.
        user_id: whom it lets in.
        expires_s: until when, seconds since 1970.
    """

    id: str
    user_id: int
    expires_s: int


class AccessTokens:
    """The tokens of one server.

    Args:
        runtime: time and chance.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._key = runtime.random_bytes(_KEY_BYTES)
        self._revoked: dict[str, int] = {}

    def issue(self, user_id: int) -> tuple[str, AccessToken]:
        """Make a token for a user; gives what the client gets, and what it says."""
        now_s = self._now_s()
        token = AccessToken(self._runtime.random_bytes(_ID_BYTES).hex(), user_id, now_s + ACCESS_SECONDS)
        claims = {
            "jti": token.id,
            "iss": _ISSUER,
            "aud": _ISSUER,
            "sub": str(user_id),
            "iat": now_s,
            "nbf": now_s,
            "exp": token.expires_s,
        }
        return jwt.encode(claims, self._key, algorithm=_ALGORITHM), token

    def check(self, text: str) -> AccessToken:
        """Read a token that a client has sent. Raises NoAccess."""
        # The library would look at another clock than the runtime's: the times are checked here.
        try:
            claims = jwt.decode(
                text,
                self._key,
                algorithms=[_ALGORITHM],
                audience=_ISSUER,
                issuer=_ISSUER,
                options={"require": _CLAIMS, "verify_exp": False, "verify_iat": False, "verify_nbf": False},
            )
            token = AccessToken(str(claims["jti"]), int(claims["sub"]), int(claims["exp"]))
        except (jwt.InvalidTokenError, ValueError):
            raise NoAccess("the token is none of this server's") from None
        if token.expires_s <= self._now_s():
            raise NoAccess("the token has expired")
        if token.id in self._revoked:
            raise NoAccess("the token was revoked by a logout")
        return token

    def revoke(self, token: AccessToken) -> None:
        """Let a token be good no more. It is remembered for as long as it would have been."""
        now_s = self._now_s()
        for one in [key for key, expires_s in self._revoked.items() if expires_s <= now_s]:
            del self._revoked[one]
        self._revoked[token.id] = token.expires_s

    def _now_s(self) -> int:
        return self._runtime.now_ms() // 1000
