"""CONNECT, PING, PONG and AUTH_RESPONSE: the life of a connection.

Source: Pulsar binary protocol specification 3.0, "Connection establishment" and "Keep alive".
"""

from importlib.metadata import version
from typing import Final

from millstream.sessions.pulsar.link import Link
from millstream.wire.pulsar.errors import MalformedFrame
from millstream.wire.pulsar.limits import MESSAGE_BYTES_MAX
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandAuthResponse,
    CommandConnect,
    CommandConnected,
    CommandPing,
    CommandPong,
    FeatureFlags,
)

__all__ = ["PROTOCOL_VERSION", "handle_auth_response", "handle_connect", "handle_ping", "handle_pong"]

PROTOCOL_VERSION: Final = 21
"""The highest protocol version that is spoken here."""
_SERVER_VERSION: Final = f"Pulsar Server Millstream {version('millstream')}"
"""Clients want some text; several look for nothing in it but that it is there."""


def handle_connect(link: Link, command: CommandConnect) -> None:
    """Agree on a protocol version. There is no authentication: every method is let in."""
    if link.protocol_version >= 0:
        raise MalformedFrame("a second CONNECT")
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


def handle_auth_response(link: Link, _: CommandAuthResponse) -> None:
    """Credentials renewed: taken as they were at CONNECT."""
