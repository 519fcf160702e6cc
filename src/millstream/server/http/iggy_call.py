"""A request of the Iggy HTTP API as the handlers of its binary protocol are given it: in today's dialect, without a
connection. What a route does, it does through those handlers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar, overload

from fastapi import APIRouter, Depends, Request

from millstream.broker.users import InvalidToken, TokenExpired, UnknownUser, User, UserInactive
from millstream.model.pending import Pending
from millstream.server.http.iggy_access import AccessToken, AccessTokens, NoAccess
from millstream.server.http.iggy_problems import IggyRoute, NotFound
from millstream.server.http.site import Site, outcome, site_of
from millstream.sessions.iggy.call import Call, Client, IggyShared
from millstream.sessions.session import Endpoint
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.kinds import Identifier

__all__ = [
    "CallArgument",
    "GuestArgument",
    "IggyGate",
    "VisitorArgument",
    "identifier",
    "iggy_router",
    "served",
    "served_or_missing",
]

_BEARER: Final = "Bearer "
_NUMBER_MAX: Final = 2**32 - 1
_NO_CONNECTION: Final = 0
"""The number of the client that a request comes from: no connection has it, so that it is nobody's group member."""
_ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of messages in one answer, which are a third more as JSON: as much as a request may have."""
_MISSING: Final = frozenset(
    {
        ErrorCode.RESOURCE_NOT_FOUND,
        ErrorCode.CLIENT_NOT_FOUND,
        ErrorCode.STREAM_ID_NOT_FOUND,
        ErrorCode.STREAM_NAME_NOT_FOUND,
        ErrorCode.TOPIC_ID_NOT_FOUND,
        ErrorCode.TOPIC_NAME_NOT_FOUND,
        ErrorCode.CONSUMER_GROUP_ID_NOT_FOUND,
        ErrorCode.CONSUMER_GROUP_NAME_NOT_FOUND,
        ErrorCode.CONSUMER_OFFSET_NOT_FOUND,
    }
)
Q = TypeVar("Q")
A = TypeVar("A")


def iggy_router() -> APIRouter:
    """A router for a family of routes of this API."""
    return APIRouter(tags=["iggy"], route_class=IggyRoute)


class IggyGate:
    """Who is let in, and to what.

    Args:
        site: what routes work on.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self.tokens = AccessTokens(site.broker.runtime)

    @property
    def shared(self) -> IggyShared:
        """What the protocol's connections share."""
        if self._site.iggy is None:
            raise Refused(ErrorCode.FEATURE_UNAVAILABLE, "this server does not speak Iggy")
        return self._site.iggy()

    def call(self, request: Request, user: User | None) -> Call:
        """A call of a user, or of nobody yet."""
        host = (request.scope.get("server") or ("127.0.0.1", 0))[0]
        peer = request.client

        def endpoint(name: str) -> Endpoint | None:
            if name:
                return self._site.places.endpoint(name, host)
            return self._site.places.endpoint("iggy", host) or Endpoint(host, 0)

        address = f"{peer.host}:{peer.port}" if peer is not None else "?"
        client = Client(_NO_CONNECTION, address, endpoint, lambda: _ANSWER_BYTES_MAX, user, dialect=Dialect.D)
        return Call(self.shared, client, Dialect.D, memoryview(bytearray()))

    def admit(self, bearer: str) -> tuple[User, AccessToken | None]:
        """The user of an access token, or of a personal access token, which will do as well. Raises Refused."""
        shared = self.shared
        try:
            token = self.tokens.check(bearer)
        except NoAccess:
            try:
                return shared.users.log_in_with_token(bearer), None
            except (InvalidToken, TokenExpired, UserInactive):
                raise Refused(ErrorCode.UNAUTHENTICATED, "the token lets nobody in") from None
        user = shared.users.find(token.user_id)
        if user is None or not user.active:
            raise Refused(ErrorCode.UNAUTHENTICATED, "the token's user may not log in")
        return user, token


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who was let in, or did not have to be.

    Args:
        gate: what let them in.
        call: their call.
        token: the access token that they showed; None for a personal one, or none.
    """

    gate: IggyGate
    call: Call
    token: AccessToken | None = None


def _gate(request: Request, site: Annotated[Site, Depends(site_of)]) -> IggyGate:
    state = request.app.state
    if not hasattr(state, "iggy"):
        state.iggy = IggyGate(site)
    gate: IggyGate = state.iggy
    return gate


async def _anybody(request: Request, gate: Annotated[IggyGate, Depends(_gate)]) -> Visitor:
    return Visitor(gate, gate.call(request, None))


async def _somebody(request: Request, gate: Annotated[IggyGate, Depends(_gate)]) -> Visitor:
    bearer = request.headers.get("authorization", "")
    if not bearer.startswith(_BEARER):
        raise Refused(ErrorCode.UNAUTHENTICATED, "the access token is missing")
    user, token = gate.admit(bearer.removeprefix(_BEARER))
    return Visitor(gate, gate.call(request, user), token)


async def _call(visitor: Annotated[Visitor, Depends(_somebody)]) -> Call:
    return visitor.call


VisitorArgument = Annotated[Visitor, Depends(_anybody)]
"""Whoever asks, logged in or not."""
GuestArgument = Annotated[Visitor, Depends(_somebody)]
"""Whoever asks, who has shown a token."""
CallArgument = Annotated[Call, Depends(_call)]
"""The call of somebody who has shown a token."""


def identifier(text: str) -> Identifier:
    """A part of a path as an identifier: what is a number is one."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(_NUMBER_MAX)) else None
    if number is not None and number <= _NUMBER_MAX:
        return number
    if not 1 <= len(text.encode()) <= 255:
        raise Refused(ErrorCode.INVALID_IDENTIFIER, f"an identifier of {len(text.encode())} bytes")
    return text


@overload
async def served(call: Call, handle: Callable[[Call, Q], Pending[A]], request: Q) -> A: ...


@overload
async def served(call: Call, handle: Callable[[Call, Q], A | Pending[A]], request: Q) -> A: ...


async def served(call: Call, handle: Callable[[Call, Any], Any], request: object) -> Any:
    """Run a handler, and wait for what it answers."""
    answer = handle(call, request)
    if isinstance(answer, Pending):
        return await outcome(answer)
    unsaved = call.shared.streams.unsaved
    if unsaved is not None:  # the answer may tell numbers that do not last yet
        await outcome(unsaved)
    return answer


async def served_or_missing(call: Call, handle: Callable[[Call, Q], A], request: Q) -> A:
    """The same for something that is asked for by its name, which may not be there. Raises NotFound."""
    try:
        return await served(call, handle, request)
    except Refused as error:
        if error.code in _MISSING:
            raise NotFound(str(error)) from None
        raise
    except UnknownUser as error:
        raise NotFound(str(error)) from None
