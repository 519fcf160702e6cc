"""CONNECT, PING, PONG, AUTH_CHALLENGE and AUTH_RESPONSE: the life of a connection.

Source: Pulsar binary protocol specification 3.0, "Connection establishment" and "Keep alive".
"""

from importlib.metadata import version
from typing import Final

from millstream.sessions.pulsar.authentication import METHOD, Tokens
from millstream.sessions.pulsar.errors import NotAuthenticated
from millstream.sessions.pulsar.link import Link
from millstream.wire.pulsar.errors import MalformedFrame
from millstream.wire.pulsar.limits import MESSAGE_BYTES_MAX
from millstream.wire.pulsar.pulsar_pb2 import (
    AuthData,
    CommandAuthChallenge,
    CommandAuthResponse,
    CommandConnect,
    CommandConnected,
    CommandPing,
    CommandPong,
    FeatureFlags,
)

__all__ = [
    "PROTOCOL_VERSION",
    "handle_auth_response",
    "handle_connect",
    "handle_ping",
    "handle_pong",
    "look_at_token",
]

PROTOCOL_VERSION: Final = 21
"""The highest protocol version that is spoken here."""
_NO_REQUEST: Final = 2**64 - 1
"""The request id of an error that answers no request: -1, unsigned."""
_REFRESH: Final = b"PulsarAuthRefresh"
"""What clients look for in a challenge to know that they are to show their credentials again."""
_SERVER_VERSION: Final = f"Pulsar Server Millstream {version('millstream')}"
"""Clients want some text; several look for nothing in it but that it is there."""


def handle_connect(link: Link, command: CommandConnect) -> None:
    """Agree on a protocol version; a client has to show a token where the server wants one."""
    if link.protocol_version >= 0:
        raise MalformedFrame("a second CONNECT")
    tokens = link.shared.tokens
    if tokens is not None:
        # A proxy shows its own token, and tells whom it speaks for beside it.
        if not _authenticate(link, tokens, command.auth_method_name, command.auth_data):
            return
        if command.original_auth_data and not _authenticate(
            link, tokens, command.original_auth_method or METHOD, command.original_auth_data.encode()
        ):
            return
    link.protocol_version = min(max(command.protocol_version, 0), PROTOCOL_VERSION)
    link.client_version = command.client_version
    link.features.CopyFrom(command.feature_flags)
    link.send(
        CommandConnected(
            server_version=_SERVER_VERSION,
            protocol_version=link.protocol_version,
            max_message_size=MESSAGE_BYTES_MAX,
            feature_flags=FeatureFlags(
                supports_auth_refresh=True,
                supports_broker_entry_metadata=True,
                supports_partial_producer=True,
                supports_topic_watchers=True,
                supports_get_partitioned_metadata_without_auto_creation=True,
            ),
        )
    )


def handle_ping(link: Link, _: CommandPing) -> None:
    """Answer that we are here."""
    link.send(CommandPong())


def handle_pong(link: Link, _: CommandPong) -> None:
    """The peer is there: any frame of it says so."""


def handle_auth_response(link: Link, command: CommandAuthResponse) -> None:
    """Take a client's new token; it may not become another by it."""
    tokens, before = link.shared.tokens, link.identity
    if tokens is None:
        return
    if _authenticate(link, tokens, command.response.auth_method_name, command.response.auth_data):
        if before is not None and link.identity is not None and link.identity.role != before.role:
            link.peer.end("its new token is another's")
        link.challenged = False


def _authenticate(link: Link, tokens: Tokens, method: str, data: bytes) -> bool:
    """Take note of who a client is; one that cannot show it is told, and loses its connection."""
    try:
        link.identity = tokens.check(method, data)
    except NotAuthenticated as error:
        link.refuse(_NO_REQUEST, error)
        link.peer.end(str(error))
        return False
    return True


def look_at_token(link: Link) -> None:
    """Ask a client whose token has expired for a new one; part from one that was asked before."""
    identity = link.identity
    if identity is None or identity.expires_ms is None or identity.expires_ms > link.broker.runtime.now_ms():
        return
    if link.challenged or not link.features.supports_auth_refresh:
        link.peer.end("its token has expired")
        return
    link.challenged = True
    link.send(
        CommandAuthChallenge(
            server_version=_SERVER_VERSION,
            protocol_version=link.protocol_version,
            challenge=AuthData(auth_method_name=METHOD, auth_data=_REFRESH),
        )
    )
