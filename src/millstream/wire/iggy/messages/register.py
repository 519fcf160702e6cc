"""The login of dialect D, which is also what opens its session.

protocol version u32, sdk_name name8, sdk_version name8, (32 opaque bytes from D12 on),
user name8 and password (u8 and bytes), or token (u8 and bytes); then context str32
"""

from millstream.wire.iggy.dialects import Dialect, of_protocol_version
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.kinds import TEXT8, TEXT32, U32, U64
from millstream.wire.iggy.layout import Codec, decode, field, message

__all__ = ["Register", "RegisterReply", "RegisterWithToken", "read_register"]


class _Opaque:
    """32 bytes whose meaning is not known, and not needed."""

    def codec(self, dialect: Dialect) -> Codec[bytes]:
        def read(payload: memoryview, position: int) -> tuple[bytes, int]:
            if len(payload) - position < 32:
                raise IndexError
            return bytes(payload[position : position + 32]), position + 32

        return Codec(read, lambda value, out: out.extend(value))


@message
class Register:
    """A login with a name and a password."""

    protocol_version: int = field(U32)
    sdk_name: str = field(TEXT8)
    sdk_version: str = field(TEXT8)
    opaque: bytes = field(_Opaque(), since=Dialect.D12, default=bytes(32))
    name: str = field(TEXT8)
    password: str = field(TEXT8)
    context: str = field(TEXT32, default="")


@message
class RegisterWithToken:
    """A login with a personal access token."""

    protocol_version: int = field(U32)
    sdk_name: str = field(TEXT8)
    sdk_version: str = field(TEXT8)
    opaque: bytes = field(_Opaque(), since=Dialect.D12, default=bytes(32))
    token: str = field(TEXT8)
    context: str = field(TEXT32, default="")


@message
class RegisterReply:
    """What a login gives: `session` is not 0 and comes back in every header."""

    user_id: int = field(U32)
    session: int = field(U64)
    protocol_version: int = field(U32)
    server_version: str = field(TEXT8)


def read_register(body: memoryview, shape: Dialect = Dialect.D) -> tuple[Dialect, Register | RegisterWithToken]:
    """Read a login, of which the protocol's version stands first.

    Args:
        body: what follows the long header.
        shape: what the header tells of the dialect.

    Returns:
        The dialect, and the login in whichever of its two forms takes all of the body.

    Raises:
        Refused: INCOMPATIBLE_PROTOCOL_VERSION, or it is no login.
    """
    if len(body) < 4:
        raise Refused(ErrorCode.INVALID_COMMAND, "a login without a version")
    version = int.from_bytes(body[:4], "little")
    dialect = of_protocol_version(version)
    if dialect is None:
        raise Refused(ErrorCode.INCOMPATIBLE_PROTOCOL_VERSION, f"protocol version {version:#x}")
    if shape is Dialect.D0:
        # Its last releases called their protocol 0.11 already.
        dialect = min(dialect, Dialect.D0)
    try:
        return dialect, decode(Register, dialect, body, whole=True)
    except Refused:
        return dialect, decode(RegisterWithToken, dialect, body, whole=True)
