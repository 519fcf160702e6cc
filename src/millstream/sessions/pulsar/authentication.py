"""Who a client is: tokens, checked at CONNECT, and asked for again when they have expired.

A token is a JWT signed with HS256, whose `sub` is the role. Without a secret every client is let in, whatever it
says.

Source: Apache Pulsar's token authentication; AUTH_CHALLENGE, PIP-30.
"""

from dataclasses import dataclass
from typing import Final

import jwt
from jwt.types import Options

from millstream.model.runtime import Runtime
from millstream.sessions.pulsar.errors import NotAuthenticated

__all__ = ["METHOD", "Identity", "Tokens"]

METHOD: Final = "token"
_ALGORITHM: Final = "HS256"
_UNCHECKED: Final[Options] = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": False}
"""Times are checked here, by the runtime's clock; nobody is the audience."""
_TOKEN_BYTES_MAX: Final = 64 * 1024
"""Bytes of a token: those of real issuers have one or two thousand."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a client has shown to be.

    Args:
        role: its name.
        expires_ms: until when, ms since 1970; None for ever.
    """

    role: str
    expires_ms: int | None


class Tokens:
    """Checks tokens.

    Args:
        secret: what they are signed with.
        runtime: the time.
    """

    def __init__(self, secret: bytes, runtime: Runtime) -> None:
        self._secret = secret
        self._runtime = runtime

    def check(self, method: str, data: bytes) -> Identity:
        """Check what a client shows.

        Args:
            method: by which it wants to be known.
            data: its token.

        Raises:
            NotAuthenticated: it is no token that was signed here, or it has expired.
        """
        if method != METHOD:
            raise NotAuthenticated(f"clients show a token here, not {method or 'nothing'!r}")
        if len(data) > _TOKEN_BYTES_MAX:
            raise NotAuthenticated(f"a token has at most {_TOKEN_BYTES_MAX} bytes")
        try:
            claims = jwt.decode(data, self._secret, algorithms=[_ALGORITHM], options=_UNCHECKED)
        except jwt.InvalidTokenError as error:
            raise NotAuthenticated(f"the token is not valid: {error}") from None
        role, expires, begins = claims.get("sub"), claims.get("exp"), claims.get("nbf", 0)
        if not isinstance(role, str) or not role:
            raise NotAuthenticated("the token names nobody")
        if not all(isinstance(one, int | float) for one in (expires or 0, begins)):
            raise NotAuthenticated("a time of the token is no number")
        now_ms = self._runtime.now_ms()
        if (expires is not None and expires * 1000 <= now_ms) or begins * 1000 > now_ms:
            raise NotAuthenticated("the token has expired, or is not valid yet")
        return Identity(role, None if expires is None else int(expires * 1000))
