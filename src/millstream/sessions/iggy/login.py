"""Logging in and out, in all its forms."""

from typing import Final

from millstream.broker.users import User
from millstream.model.pending import Pending, settled
from millstream.sessions.iggy.call import Call
from millstream.wire.iggy.messages.register import Register, RegisterReply, RegisterWithToken
from millstream.wire.iggy.messages.system import Empty
from millstream.wire.iggy.messages.users import LoginReply, LoginUser, LoginWithToken

__all__ = ["SERVER_VERSION", "log_in", "log_in_with_token", "log_out", "register"]

SERVER_VERSION: Final = "0.11.0"
"""The version of Iggy's own server whose behaviour this one has: what clients look at is that."""


def log_in(call: Call, request: LoginUser) -> Pending[LoginReply]:
    """Log in with a name and a password."""
    return call.shared.users.log_in(request.name, request.password).then(lambda user: _reply(call, user))


def log_in_with_token(call: Call, request: LoginWithToken) -> LoginReply:
    """Log in with a personal access token."""
    return _reply(call, call.shared.users.log_in_with_token(request.token))


def _reply(call: Call, user: User) -> LoginReply:
    call.client.user = user
    return LoginReply(user_id=user.id)


def register(call: Call, request: Register | RegisterWithToken) -> Pending[RegisterReply]:
    """Log in as dialect D does, which opens a session."""
    users = call.shared.users
    if isinstance(request, RegisterWithToken):
        admitted = settled(users.log_in_with_token(request.token))
    else:
        admitted = users.log_in(request.name, request.password)

    def open_session(user: User) -> RegisterReply:
        call.shared.last_session += 1
        call.client.user, call.client.session = user, call.shared.last_session
        return RegisterReply(
            user_id=user.id,
            session=call.client.session,
            protocol_version=request.protocol_version,
            server_version=SERVER_VERSION,
        )

    return admitted.then(open_session)


def log_out(call: Call, request: Empty) -> Empty:
    """Log out: the connection may log in again."""
    call.client.user, call.client.session = None, 0
    for group in call.client.groups:
        group.sharing.leave(call.client.id)
    call.client.groups.clear()
    return Empty()
