"""Users, their permissions, their tokens, and logging in."""

from typing import Generic, TypeVar

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.headers import HEADERS, UserHeader
from millstream.wire.iggy.kinds import (
    BOOL,
    ID,
    NAME,
    PLAIN_IDENT,
    TEXT8,
    TEXT32,
    U8,
    U32,
    U64,
    Flagged,
    Identifier,
    Sized,
    Struct,
    ToEnd,
)
from millstream.wire.iggy.layout import Codec, Kind, field, message

__all__ = [
    "ChangePassword",
    "CreateToken",
    "CreateUser",
    "GlobalPermissions",
    "LoginReply",
    "LoginUser",
    "LoginWithToken",
    "Permissions",
    "RawToken",
    "StreamPermissions",
    "TokenInfo",
    "TokenList",
    "TokenRequest",
    "TopicPermissions",
    "UpdatePermissions",
    "UpdateUser",
    "UserDetails",
    "UserInfo",
    "UserList",
    "UserRequest",
]

T = TypeVar("T")


class _Chained(Generic[T]):
    """A list whose first entry stands behind a byte that says whether there is one, as does each further entry."""

    def __init__(self, element: Kind[T]) -> None:
        self._element = element

    def codec(self, dialect: Dialect) -> Codec[list[T]]:
        element = self._element.codec(dialect)

        def read(payload: memoryview, position: int) -> tuple[list[T], int]:
            values = []
            while payload[position]:
                value, position = element.read(payload, position + 1)
                values.append(value)
            return values, position + 1

        def write(values: list[T], out: bytearray) -> None:
            for value in values:
                out.append(1)
                element.write(value, out)
            out.append(0)

        return Codec(read, write)


@message
class GlobalPermissions:
    """What a user may do everywhere."""

    manage_servers: bool = field(BOOL, default=False)
    read_servers: bool = field(BOOL, default=False)
    manage_users: bool = field(BOOL, default=False)
    read_users: bool = field(BOOL, default=False)
    manage_streams: bool = field(BOOL, default=False)
    read_streams: bool = field(BOOL, default=False)
    manage_topics: bool = field(BOOL, default=False)
    read_topics: bool = field(BOOL, default=False)
    poll_messages: bool = field(BOOL, default=False)
    send_messages: bool = field(BOOL, default=False)


@message
class TopicPermissions:
    """What a user may do in one topic."""

    topic: int = field(ID)
    manage_topic: bool = field(BOOL, default=False)
    read_topic: bool = field(BOOL, default=False)
    poll_messages: bool = field(BOOL, default=False)
    send_messages: bool = field(BOOL, default=False)


@message
class StreamPermissions:
    """What a user may do in one stream."""

    stream: int = field(ID)
    manage_stream: bool = field(BOOL, default=False)
    read_stream: bool = field(BOOL, default=False)
    manage_topics: bool = field(BOOL, default=False)
    read_topics: bool = field(BOOL, default=False)
    poll_messages: bool = field(BOOL, default=False)
    send_messages: bool = field(BOOL, default=False)
    topics: list[TopicPermissions] = field(_Chained(Struct(TopicPermissions)), default=list)


@message
class Permissions:
    """What a user may do."""

    everywhere: GlobalPermissions = field(Struct(GlobalPermissions))
    streams: list[StreamPermissions] = field(_Chained(Struct(StreamPermissions)), default=list)


class _PermissionsOfUser:
    """The permissions of a user in an answer: a u8 and a sized block; four zero bytes stand for none."""

    def codec(self, dialect: Dialect) -> Codec[Permissions | None]:
        sized = Sized(Struct(Permissions)).codec(dialect)

        def read(payload: memoryview, position: int) -> tuple[Permissions | None, int]:
            if not payload[position]:
                return None, position + 4
            return sized.read(payload, position + 1)

        def write(value: Permissions | None, out: bytearray) -> None:
            if value is None:
                out += bytes(4)
            else:
                out.append(1)
                sized.write(value, out)

        return Codec(read, write)


_SIZED_PERMISSIONS = Flagged(Sized(Struct(Permissions)))


@message
class UserRequest:
    """GET_USER and DELETE_USER."""

    user: Identifier = field(PLAIN_IDENT)


@message
class CreateUser:
    """CREATE_USER. Status: 1 active, 2 inactive."""

    name: str = field(NAME)
    password: str = field(TEXT8)
    status: int = field(U8)
    permissions: Permissions | None = field(_SIZED_PERMISSIONS)
    options: list[UserHeader] = field(HEADERS, since=Dialect.D, default=list)


@message
class UpdateUser:
    """UPDATE_USER: what is None is left as it is."""

    user: Identifier = field(PLAIN_IDENT)
    name: str | None = field(Flagged(NAME))
    status: int | None = field(Flagged(U8))
    options: list[UserHeader] = field(HEADERS, since=Dialect.D, default=list)


@message
class UpdatePermissions:
    """UPDATE_PERMISSIONS."""

    user: Identifier = field(PLAIN_IDENT)
    permissions: Permissions | None = field(_SIZED_PERMISSIONS)


@message
class ChangePassword:
    """CHANGE_PASSWORD."""

    user: Identifier = field(PLAIN_IDENT)
    current: str = field(TEXT8)
    new: str = field(TEXT8)


@message
class UserInfo:
    """A user in an answer."""

    id: int = field(U32)
    created_at_us: int = field(U64)
    status: int = field(U8)
    name: str = field(NAME)
    options: list[UserHeader] = field(Sized(HEADERS), since=Dialect.D, default=list)
    derived_options: list[UserHeader] = field(Sized(HEADERS), since=Dialect.D12, default=list)


@message
class UserDetails:
    """The answer to GET_USER and CREATE_USER."""

    user: UserInfo = field(Struct(UserInfo))
    permissions: Permissions | None = field(_PermissionsOfUser())


@message
class UserList:
    """The answer to GET_USERS."""

    users: list[UserInfo] = field(ToEnd(Struct(UserInfo)), default=list)


@message
class LoginUser:
    """LOGIN_USER. An SDK that says nothing of its version leaves both texts empty."""

    name: str = field(NAME)
    password: str = field(TEXT8)
    version: str = field(TEXT32, since=Dialect.B2, default="")
    context: str = field(TEXT32, since=Dialect.B2, default="")


@message
class LoginWithToken:
    """LOGIN_WITH_PERSONAL_ACCESS_TOKEN."""

    token: str = field(TEXT8)


@message
class LoginReply:
    """The answer to both logins."""

    user_id: int = field(U32)


@message
class TokenRequest:
    """DELETE_PERSONAL_ACCESS_TOKEN."""

    name: str = field(NAME)


@message
class CreateToken:
    """CREATE_PERSONAL_ACCESS_TOKEN. Expiry in microseconds; 0 and 2^64-1 stand for never."""

    name: str = field(NAME)
    expiry_us: int = field(U64)


@message
class RawToken:
    """The answer to CREATE_PERSONAL_ACCESS_TOKEN: the only time that the token is told."""

    token: str = field(TEXT8)


@message
class TokenInfo:
    """A token in an answer; `expiry_at_us` is 0 for never."""

    name: str = field(NAME)
    expiry_at_us: int = field(U64)


@message
class TokenList:
    """The answer to GET_PERSONAL_ACCESS_TOKENS."""

    tokens: list[TokenInfo] = field(ToEnd(Struct(TokenInfo)), default=list)
