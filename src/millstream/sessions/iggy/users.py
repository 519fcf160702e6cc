"""The commands of users and of their personal access tokens."""

from typing import Final

from millstream.broker import permissions as rights
from millstream.broker.permissions import Action
from millstream.broker.users import User
from millstream.model.pending import Pending
from millstream.sessions.iggy.call import Call
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.messages.system import Empty
from millstream.wire.iggy.messages.users import (
    ChangePassword,
    CreateToken,
    CreateUser,
    GlobalPermissions,
    Permissions,
    RawToken,
    StreamPermissions,
    TokenInfo,
    TokenList,
    TokenRequest,
    TopicPermissions,
    UpdatePermissions,
    UpdateUser,
    UserDetails,
    UserInfo,
    UserList,
    UserRequest,
)

__all__ = [
    "change_password",
    "create",
    "create_token",
    "delete",
    "delete_token",
    "get",
    "get_all",
    "get_tokens",
    "update",
    "update_permissions",
]

_ACTIVE, _INACTIVE = 1, 2
_NAME_BYTES: Final = range(3, 51)
_PASSWORD_BYTES: Final = range(3, 101)
_TOKEN_NAME_BYTES: Final = range(3, 31)
_NEVER: Final = (0, 2**64 - 1)
_EVERYWHERE: Final = tuple(rights.Everywhere.__slots__)
_IN_STREAM: Final = tuple(name for name in rights.InStream.__slots__ if name != "topics")
_IN_TOPIC: Final = tuple(rights.InTopic.__slots__)


def get(call: Call, request: UserRequest) -> UserDetails:
    """A user; everybody may ask for themselves."""
    user = call.shared.users.get(request.user)
    if user.id != call.user.id:
        call.permit(Action.READ_USERS)
    return _details(user)


def get_all(call: Call, request: Empty) -> UserList:
    """All users."""
    call.permit(Action.READ_USERS)
    return UserList(users=[_info(user) for user in call.shared.users])


def create(call: Call, request: CreateUser) -> Pending[UserDetails]:
    """Make a user."""
    call.permit(Action.MANAGE_USERS)
    _check(request.name, _NAME_BYTES, ErrorCode.INVALID_USERNAME)
    _check(request.password, _PASSWORD_BYTES, ErrorCode.INVALID_PASSWORD)
    _refuse_options(bool(request.options))
    made = call.shared.users.create(
        request.name,
        request.password,
        active=_status(request.status),
        permissions=_stored(request.permissions),
        attributes={},
    )
    return made.then(_details)


def update(call: Call, request: UpdateUser) -> Pending[Empty]:
    """Change a user's name, or whether it may log in."""
    call.permit(Action.MANAGE_USERS)
    user = call.shared.users.get(request.user)
    if request.name is not None:
        _check(request.name, _NAME_BYTES, ErrorCode.INVALID_USERNAME)
    _refuse_options(bool(request.options))
    active = None if request.status is None else _status(request.status)
    return call.shared.users.change(user, name=request.name, active=active).then(lambda _: Empty())


def update_permissions(call: Call, request: UpdatePermissions) -> Pending[Empty]:
    """Replace what a user may do."""
    call.permit(Action.MANAGE_USERS)
    users = call.shared.users
    user = users.get(request.user)
    if user.permissions == rights.Permissions.all() and user.id == 1:
        raise Refused(ErrorCode.CANNOT_CHANGE_PERMISSIONS)
    return users.set_permissions(user, _stored(request.permissions)).then(lambda _: Empty())


def change_password(call: Call, request: ChangePassword) -> Pending[Empty]:
    """Change a password; everybody may change their own."""
    user = call.shared.users.get(request.user)
    if user.id != call.user.id:
        call.permit(Action.MANAGE_USERS)
    _check(request.new, _PASSWORD_BYTES, ErrorCode.INVALID_PASSWORD)
    return call.shared.users.change_password(user, request.current, request.new).then(lambda _: Empty())


def delete(call: Call, request: UserRequest) -> Pending[Empty]:
    """Delete a user."""
    call.permit(Action.MANAGE_USERS)
    return call.shared.users.delete(call.shared.users.get(request.user)).then(lambda _: Empty())


def get_tokens(call: Call, request: Empty) -> TokenList:
    """The tokens of who is logged in."""
    user = call.shared.users.get(call.user.id)
    return TokenList(tokens=[TokenInfo(name=one.name, expiry_at_us=one.expires_us) for one in user.tokens.values()])


def create_token(call: Call, request: CreateToken) -> Pending[RawToken]:
    """Make a token for who is logged in."""
    _check(request.name, _TOKEN_NAME_BYTES, ErrorCode.INVALID_PERSONAL_ACCESS_TOKEN_NAME)
    now_us = call.broker.runtime.now_ms() * 1000
    expires_us = 0 if request.expiry_us in _NEVER else now_us + request.expiry_us
    if expires_us > _NEVER[1]:
        raise Refused(ErrorCode.INVALID_PERSONAL_ACCESS_TOKEN_EXPIRY)
    users = call.shared.users
    return users.create_token(users.get(call.user.id), request.name, expires_us).then(lambda raw: RawToken(token=raw))


def delete_token(call: Call, request: TokenRequest) -> Pending[Empty]:
    """Delete a token of who is logged in."""
    users = call.shared.users
    user = users.get(call.user.id)
    if request.name not in user.tokens:
        raise Refused(ErrorCode.RESOURCE_NOT_FOUND, f"there is no token {request.name}")
    return users.delete_token(user, request.name).then(lambda _: Empty())


def _check(text: str, allowed: range, code: ErrorCode) -> None:
    if len(text.encode()) not in allowed:
        raise Refused(code, f"{len(text.encode())} bytes, where {allowed.start} to {allowed.stop - 1} are allowed")


def _status(status: int) -> bool:
    if status not in {_ACTIVE, _INACTIVE}:
        raise Refused(ErrorCode.INVALID_USER_STATUS, f"status {status}")
    return status == _ACTIVE


def _refuse_options(given: bool) -> None:
    """There are no options of users."""
    if given:
        raise Refused(ErrorCode.UNSUPPORTED_OPTION_KEY, "users have no options")


def _info(user: User) -> UserInfo:
    return UserInfo(
        id=user.id,
        created_at_us=user.created_ms * 1000,
        status=_ACTIVE if user.active else _INACTIVE,
        name=user.name,
        options=[],
    )


def _details(user: User) -> UserDetails:
    return UserDetails(user=_info(user), permissions=_told(user.permissions))


def _stored(told: Permissions | None) -> rights.Permissions | None:
    if told is None:
        return None
    streams = {}
    for one in told.streams:
        topics = {
            topic.topic: rights.InTopic(**{name: getattr(topic, name) for name in _IN_TOPIC}) for topic in one.topics
        }
        streams[one.stream] = rights.InStream(**{name: getattr(one, name) for name in _IN_STREAM}, topics=topics)
    everywhere = rights.Everywhere(**{name: getattr(told.everywhere, name) for name in _EVERYWHERE})
    return rights.Permissions(everywhere=everywhere, streams=streams)


def _told(stored: rights.Permissions | None) -> Permissions | None:
    if stored is None:
        return None
    streams = []
    for stream, one in stored.streams.items():
        topics = [
            TopicPermissions(topic=topic, **{name: getattr(mine, name) for name in _IN_TOPIC})
            for topic, mine in one.topics.items()
        ]
        own = {name: getattr(one, name) for name in _IN_STREAM}
        streams.append(StreamPermissions(stream=stream, topics=topics, **own))
    everywhere = GlobalPermissions(**{name: getattr(stored.everywhere, name) for name in _EVERYWHERE})
    return Permissions(everywhere=everywhere, streams=streams)
