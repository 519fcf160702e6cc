"""The root of the errors of all codecs: a peer's bytes do not follow its protocol.

Each protocol's package has a tree of its own below it. They are always the peer's fault; our own mistakes raise the
usual Python exceptions, loudly.
"""

from millstream.model.errors import MillstreamError

__all__ = ["WireError"]


class WireError(MillstreamError):
    """Base of the errors of all codecs."""
