"""Errors of the server: what a user asked of it at its start cannot be done.

ServerError
├── BadSetting          an option, a setting or a configuration file
└── ListenerFailed      an address that cannot be listened on
"""

from millstream.model.errors import MillstreamError

__all__ = ["BadSetting", "ListenerFailed", "ServerError"]


class ServerError(MillstreamError):
    """Base of the errors of this package."""


class BadSetting(ServerError):
    """An option, a setting or a configuration file that makes no sense; the message says what would."""


class ListenerFailed(ServerError):
    """An address that cannot be listened on."""
