"""Tokens over HTTP: what Pulsar's calls want to see where the server wants tokens at all."""

import json
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from millstream.sessions.pulsar.authentication import METHOD, Tokens
from millstream.sessions.pulsar.errors import NotAuthenticated

__all__ = ["BearerTokens"]

_GUARDED: Final = ("/admin/", "/lookup/", "/metrics")
_BEARER: Final = b"bearer "


class BearerTokens:
    """Lets Pulsar's calls and the metrics through only with a valid token; see `Tokens`.

    Args:
        app: what is guarded.
        tokens: checks them.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(_GUARDED):
            shown = dict(scope["headers"]).get(b"authorization", b"")
            method = METHOD if shown[: len(_BEARER)].lower() == _BEARER else ""
            try:
                self._tokens.check(method, shown[len(_BEARER) :])
            except NotAuthenticated as error:
                headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": json.dumps({"reason": str(error)}).encode()})
                return
        await self._app(scope, receive, send)
