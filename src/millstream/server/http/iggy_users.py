"""Users of the Iggy protocol: logging in and out, making and changing them, their passwords and permissions."""

from typing import Any, Final, Literal

from pydantic import BaseModel

from millstream.server.http.iggy_access import NoAccess
from millstream.server.http.iggy_call import (
    CallArgument,
    GuestArgument,
    IggyGate,
    VisitorArgument,
    identifier,
    iggy_router,
    served,
    served_or_missing,
)
from millstream.server.http.iggy_forms import STATUSES, user_form
from millstream.server.http.iggy_permissions import PermissionsForm, permissions_form
from millstream.sessions.iggy import login, users
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.headers import HeaderKind, UserHeader
from millstream.wire.iggy.messages.system import Empty
from millstream.wire.iggy.messages.users import (
    ChangePassword,
    CreateUser,
    LoginUser,
    LoginWithToken,
    UpdatePermissions,
    UpdateUser,
    UserDetails,
    UserRequest,
)

__all__ = ["router"]

router = iggy_router()
_NUMBERS: Final = {name: number for number, name in STATUSES.items()}
_ME: Final = "me"
Status = Literal["active", "inactive"]


# Logging in


class Login(BaseModel):
    """A name and a password."""

    username: str
    password: str
    version: str | None = None
    context: str | None = None


class RawTokenBody(BaseModel):
    """A token."""

    token: str


def _identity(gate: IggyGate, user_id: int) -> dict[str, Any]:
    text, token = gate.tokens.issue(user_id)
    return {"user_id": user_id, "access_token": {"token": text, "expiry": token.expires_s}}


@router.post("/users/login")
async def log_in(visitor: VisitorArgument, body: Login) -> dict[str, Any]:
    """Log in with a name and a password; gives an access token."""
    request = LoginUser(name=body.username, password=body.password, version="", context="")
    return _identity(visitor.gate, (await served(visitor.call, login.log_in, request)).user_id)


@router.post("/personal-access-tokens/login")
async def log_in_with_token(visitor: VisitorArgument, body: RawTokenBody) -> dict[str, Any]:
    """Log in with a personal access token; gives an access token."""
    request = LoginWithToken(token=body.token)
    return _identity(visitor.gate, (await served(visitor.call, login.log_in_with_token, request)).user_id)


@router.post("/users/refresh-token")
async def refresh(visitor: VisitorArgument, body: RawTokenBody) -> dict[str, Any]:
    """Change an access token for a new one; the old one is good until its time is over."""
    try:
        token = visitor.gate.tokens.check(body.token)
    except NoAccess as error:
        raise Refused(ErrorCode.UNAUTHENTICATED, str(error)) from None
    user, _ = visitor.gate.admit(body.token)
    assert user.id == token.user_id, "it was just checked"
    return _identity(visitor.gate, user.id)


@router.delete("/users/logout", status_code=204)
async def log_out(visitor: GuestArgument) -> None:
    """Log out: the access token is good no more."""
    if visitor.token is not None:
        visitor.gate.tokens.revoke(visitor.token)


# Users


class NewUser(BaseModel):
    """A user to be made."""

    username: str
    password: str
    status: Status
    permissions: PermissionsForm | None = None


class ChangedUser(BaseModel):
    """What is to be changed of a user."""

    username: str | None = None
    status: Status | None = None
    options: dict[str, str] = {}


class Passwords(BaseModel):
    """The password so far, and the one from now on."""

    current_password: str
    new_password: str


class NewPermissions(BaseModel):
    """What a user may do from now on; null for nothing."""

    permissions: PermissionsForm | None = None


def _details(told: UserDetails) -> dict[str, Any]:
    return {**user_form(told.user), "permissions": permissions_form(told.permissions)}


@router.get("/users")
async def get_users(call: CallArgument) -> list[dict[str, Any]]:
    """All users."""
    return [user_form(user) for user in (await served(call, users.get_all, Empty())).users]


@router.get("/users/{user_id}")
async def get_user(call: CallArgument, user_id: str) -> dict[str, Any]:
    """A user by number or name; "me" is who asks."""
    key = call.user.id if user_id == _ME else identifier(user_id)
    return _details(await served_or_missing(call, users.get, UserRequest(user=key)))


@router.post("/users")
async def create_user(call: CallArgument, body: NewUser) -> dict[str, Any]:
    """Make a user."""
    request = CreateUser(
        name=body.username,
        password=body.password,
        status=_NUMBERS[body.status],
        permissions=None if body.permissions is None else body.permissions.message(),
    )
    return _details(await served(call, users.create, request))


@router.put("/users/{user_id}", status_code=204)
async def update_user(call: CallArgument, user_id: str, body: ChangedUser) -> None:
    """Change a user's name, or whether it may log in."""
    options = [UserHeader(key.encode(), value.encode(), HeaderKind.STRING) for key, value in body.options.items()]
    status = None if body.status is None else _NUMBERS[body.status]
    request = UpdateUser(user=identifier(user_id), name=body.username, status=status, options=options)
    await served(call, users.update, request)


@router.delete("/users/{user_id}", status_code=204)
async def delete_user(call: CallArgument, user_id: str) -> None:
    """Delete a user."""
    await served(call, users.delete, UserRequest(user=identifier(user_id)))


@router.put("/users/{user_id}/password", status_code=204)
async def change_password(call: CallArgument, user_id: str, body: Passwords) -> None:
    """Change a password."""
    request = ChangePassword(user=identifier(user_id), current=body.current_password, new=body.new_password)
    await served(call, users.change_password, request)


@router.put("/users/{user_id}/permissions", status_code=204)
async def update_permissions(call: CallArgument, user_id: str, body: NewPermissions) -> None:
    """Replace what a user may do."""
    permissions = None if body.permissions is None else body.permissions.message()
    await served(call, users.update_permissions, UpdatePermissions(user=identifier(user_id), permissions=permissions))
