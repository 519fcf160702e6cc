"""The dialects of the Iggy protocol, oldest first, and what sets whole groups of them apart.

A    2023-09, the documented protocol: no users
B1   SDK 0.3 - 0.4        B2  SDK 0.5        B3  SDK 0.6
C1   SDK 0.7              C2  SDK 0.8        C3  SDK 0.9 - 0.11.0-edge.1
D0   protocol 0.10, 0.11.0-edge.1: headers of 256 bytes before the bodies of C3
D    protocol 0.11: headers of 256 bytes, batches, options
D12  protocol 0.12: as D, with more in the login; which other bodies it changed is not known here
"""

from enum import IntEnum
from typing import Final

__all__ = ["LOGIN_DIALECTS", "Dialect", "of_protocol_version", "of_sdk_version"]


class Dialect(IntEnum):
    """A dialect; later ones compare greater."""

    A = 0
    B1 = 1
    B2 = 2
    B3 = 3
    C1 = 4
    C2 = 5
    C3 = 6
    D0 = 7
    D = 8
    D12 = 9

    @property
    def first_id(self) -> int:
        """The number of the first stream, topic and partition on the wire; this server counts from 0."""
        return 1 if self < Dialect.C2 else 0

    @property
    def has_login(self) -> bool:
        """Whether its clients log in."""
        return self > Dialect.A

    @property
    def long_headers(self) -> bool:
        """Whether its frames begin with headers of 256 bytes, in place of a length and a code."""
        return self >= Dialect.D0

    @property
    def folds_names(self) -> bool:
        """Whether names of streams and topics are unique without regard to case, and made lower case."""
        return self < Dialect.C1


LOGIN_DIALECTS: Final = (Dialect.B1, Dialect.B2, Dialect.B3, Dialect.C1, Dialect.C2, Dialect.C3)
"""Dialects with a login in frames of a length and a code: what a client speaks that logs in without a version."""

_SDK_VERSIONS: Final = (
    ((0, 9), Dialect.C3),
    ((0, 8), Dialect.C2),
    ((0, 7), Dialect.C1),
    ((0, 6), Dialect.B3),
    ((0, 5), Dialect.B2),
)
_MINOR_BITS: Final = 10
_MINOR_MASK: Final = 0x3FF
_PROTOCOL_MINORS: Final = {10: Dialect.D0, 11: Dialect.D, 12: Dialect.D12}


def of_sdk_version(text: str) -> Dialect | None:
    """The dialect of an SDK's version string such as "0.6.12"; None if that does not tell."""
    parts = text.split(".")
    if len(parts) < 2 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        return None
    version = int(parts[0]), int(parts[1])
    return next((dialect for least, dialect in _SDK_VERSIONS if version >= least), Dialect.B1)


def of_protocol_version(packed: int) -> Dialect | None:
    """The dialect of a packed protocol version (major << 20 | minor << 10 | patch); None if it is not served."""
    if packed >> (2 * _MINOR_BITS):
        return None
    return _PROTOCOL_MINORS.get(packed >> _MINOR_BITS & _MINOR_MASK)
