"""The root of every error that Millstream raises on purpose.

    MillstreamError
    ├── IoFailed                             the operating system refused
    ├── wire.errors.WireError                a peer's bytes do not follow its protocol
    ├── storage.errors.StorageError          the log or its disk refuses
    ├── broker.errors.BrokerError            a request that the rules of the log forbid
    └── server.errors.ServerError            a setting or a listener that cannot be used

Each layer keeps its own tree below one class of this module's root, so that a caller can catch a layer
whole. Sessions turn them into their protocol's codes in one table each.
"""

from typing import Final

__all__ = ["IoFailed", "MillstreamError"]

TEXT_CHARACTERS_MAX: Final = 1000
"""Characters of an error's text: enough for two of the longest topic names and what is said of them."""


class MillstreamError(Exception):
    """Base of all errors raised on purpose; its text is one line, fit to be shown to a user.

    The text may quote what a peer sent, so it is cut to a length that fits every protocol's strings.
    """

    def __str__(self) -> str:
        text = super().__str__()
        return text if len(text) <= TEXT_CHARACTERS_MAX else text[:TEXT_CHARACTERS_MAX] + " ..."


class IoFailed(MillstreamError):
    """The operating system refused something that was done off the loop's thread."""
