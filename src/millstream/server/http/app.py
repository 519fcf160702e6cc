"""The HTTP app: its routers, its limits, and how uvicorn serves it."""

from collections.abc import Callable
from typing import Final

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from millstream.server.http.bearer import BearerTokens
from millstream.server.http.clusters import router as clusters
from millstream.server.http.health import router as health
from millstream.server.http.iggy_groups import router as iggy_groups
from millstream.server.http.iggy_messages import router as iggy_messages
from millstream.server.http.iggy_offsets import router as iggy_offsets
from millstream.server.http.iggy_streams import router as iggy_streams
from millstream.server.http.iggy_system import router as iggy_system
from millstream.server.http.iggy_tokens import router as iggy_tokens
from millstream.server.http.iggy_topics import router as iggy_topics
from millstream.server.http.iggy_users import router as iggy_users
from millstream.server.http.lookup import router as lookup
from millstream.server.http.metrics import router as metrics
from millstream.server.http.namespaces import router as namespaces
from millstream.server.http.paths import PulsarPaths
from millstream.server.http.policies import router as policies
from millstream.server.http.problems import add_problem_handlers
from millstream.server.http.schemas import router as schemas
from millstream.server.http.site import Site
from millstream.server.http.stats import router as stats
from millstream.server.http.subscriptions import router as subscriptions
from millstream.server.http.tenants import router as tenants
from millstream.server.http.topic_policies import router as topic_policies
from millstream.server.http.topics import router as topics
from millstream.server.http.volatile import router as volatile

__all__ = ["ROUTERS", "make_app", "make_connections"]

_BODY_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of a request's body: room for a batch of messages, which is the largest thing sent here."""
ROUTERS: Final = (
    health,
    metrics,
    lookup,
    clusters,
    tenants,
    namespaces,
    policies,
    stats,
    subscriptions,
    schemas,
    topic_policies,
    topics,
    volatile,
    iggy_system,
    iggy_users,
    iggy_tokens,
    iggy_streams,
    iggy_topics,
    iggy_messages,
    iggy_offsets,
    iggy_groups,
)
"""The routes, a family each. The first one that takes a path serves it."""


def make_app(site: Site) -> FastAPI:
    """Make the app.

    Args:
        site: what its routes work on, at `request.app.state.site`.
    """
    app = FastAPI(title="Millstream", summary="Health, metrics and administration.", redoc_url=None)
    app.state.site = site
    for router in ROUTERS:
        app.include_router(router)
    add_problem_handlers(app)
    app.add_middleware(PulsarPaths)
    if site.tokens is not None:
        app.add_middleware(BearerTokens, tokens=site.tokens)
    app.add_middleware(_BodyLimit)
    return app


def make_connections(site: Site) -> Callable[[], H11Protocol]:
    """Load the app, and give the maker of the protocol objects that serve it."""
    config = Config(
        make_app(site), http="h11", ws="none", lifespan="off", log_config=None, access_log=False, server_header=False
    )
    config.load()
    state = ServerState()
    return lambda: H11Protocol(config, state, {})


class _TooLarge(Exception):
    """The body exceeds the limit."""


class _BodyLimit:
    """Refuses requests with a body over the limit, without reading more of it than that."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        taken_bytes = 0
        begun = False

        async def counted() -> Message:
            nonlocal taken_bytes
            message = await receive()
            taken_bytes += len(message.get("body", b""))
            if taken_bytes > _BODY_BYTES_MAX:
                raise _TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, counted, noted)
        except _TooLarge:
            if not begun:
                headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
                await send({"type": "http.response.start", "status": 413, "headers": headers})
                body = f"a body has at most {_BODY_BYTES_MAX} bytes\n".encode()
                await send({"type": "http.response.body", "body": body})
