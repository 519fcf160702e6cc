"""The root of every error that Millstream raises on purpose.

    MillstreamError
    ├── IoFailed                             the operating system refused
    ├── wire.kafka.errors.WireError          a peer's bytes do not follow its protocol
    ├── storage.errors.StorageError          the log or its disk refuses
    ├── broker.errors.BrokerError            a request that the rules of the log forbid
    └── server.errors.ServerError            a setting or a listener that cannot be used

Each layer keeps its own tree below one class of this module's root, so that a caller can catch a layer
whole. Sessions turn them into their protocol's codes in one table each.
"""

__all__ = ["IoFailed", "MillstreamError"]


class MillstreamError(Exception):
    """Base of all errors raised on purpose; its text is one line, fit to be shown to a user."""


class IoFailed(MillstreamError):
    """The operating system refused something that was done off the loop's thread."""
