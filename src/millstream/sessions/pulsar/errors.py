"""Errors of Pulsar sessions: what only this protocol refuses.

SessionError
├── NotAllowed       something that the rules of the protocol, or of this server, do not let a client do
├── NotAuthenticated a client that does not show who it is
├── ConsumerNotFound a consumer that is not connected, or not any more
├── NotReady         something of the same name is under way: the client is to try again
├── TooManyConsumers the namespace does not let as many consumers connect
├── CoordinatorNotFound  a transaction coordinator that does not exist
├── MessageUnknown   a message that came before, of which it is not known yet whether it is safe
└── UnknownListener  an advertised listener that the server does not have
"""

from millstream.model.errors import MillstreamError

__all__ = [
    "ConsumerNotFound",
    "CoordinatorNotFound",
    "MessageUnknown",
    "NotAllowed",
    "NotAuthenticated",
    "NotReady",
    "SessionError",
    "TooManyConsumers",
    "UnknownListener",
]


class SessionError(MillstreamError):
    """Base of the errors of this package."""


class NotAllowed(SessionError):
    """The rules of the protocol, or of this server, do not let a client do this."""


class UnknownListener(SessionError):
    """The server has no listener of the name by which a client wants to be told addresses."""


class MessageUnknown(SessionError):
    """A message came before, and it is not known yet whether it is safe: the producer is to send it again."""


class ConsumerNotFound(SessionError):
    """A command names a consumer that is not connected, or not any more."""


class NotReady(SessionError):
    """Something of the same name is under way: the client is to try again."""


class TooManyConsumers(SessionError):
    """The namespace does not let as many consumers connect."""


class CoordinatorNotFound(SessionError):
    """There is no transaction coordinator of that number."""


class NotAuthenticated(SessionError):
    """A client does not show who it is, or not any more."""
