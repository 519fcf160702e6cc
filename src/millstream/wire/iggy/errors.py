"""Errors of the Iggy codecs.

millstream.wire.errors.WireError
└── IggyWireError
    ├── Undecodable    a frame whose end, or whose dialect, cannot be told: it costs the connection
    ├── Refused        a command that is answered with an error code; the connection lives
    └── DamagedBatch   a stored batch that does not hold what its header says
"""

from millstream.wire.errors import WireError
from millstream.wire.iggy.error_codes import ErrorCode

__all__ = ["DamagedBatch", "IggyWireError", "Refused", "Undecodable"]


class IggyWireError(WireError):
    """Base of the errors of this package."""


class Undecodable(IggyWireError):
    """A frame that nothing can be made of."""


class Refused(IggyWireError):
    """A command that cannot be done.

    Args:
        code: what the client is told.
        text: for logs; the code's name if nothing more is to be said.
    """

    def __init__(self, code: ErrorCode, text: str = "") -> None:
        super().__init__(text or code.name)
        self.code = code


class DamagedBatch(IggyWireError):
    """A stored batch that cannot be taken apart."""
