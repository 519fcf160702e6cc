"""Errors of Pulsar sessions: what only this protocol refuses.

SessionError
├── NotAllowed       something that the rules of the protocol, or of this server, do not let a client do
├── MessageUnknown   a message that came before, of which it is not known yet whether it is safe
└── UnknownListener  an advertised listener that the server does not have
"""

from millstream.model.errors import MillstreamError

__all__ = ["MessageUnknown", "NotAllowed", "SessionError", "UnknownListener"]


class SessionError(MillstreamError):
    """Base of the errors of this package."""


class NotAllowed(SessionError):
    """The rules of the protocol, or of this server, do not let a client do this."""


class UnknownListener(SessionError):
    """The server has no listener of the name by which a client wants to be told addresses."""


class MessageUnknown(SessionError):
    """A message came before, and it is not known yet whether it is safe: the producer is to send it again."""
