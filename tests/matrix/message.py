"""A message as the tests of the matrix write it and find it, whatever the protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["Header", "Message"]

Header = tuple[str, bytes | None]
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message. What a protocol has no place for, its client leaves as it is here.

    Args:
        value, key: bytes; None for null.
        headers: name and value, None for null.
        time_us: the producer's time, microseconds since 1970, None if its client sets it by itself.
        number: the message's own id, for protocols that have one.
        kinds: the kinds of headers, by name, for protocols that have any.
        more: what one protocol alone has, by name.
        partition, offset: where it was found.
    """

    value: bytes | None = b""
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    time_us: int | None = None
    number: int | None = None
    kinds: Mapping[str, str] = field(default_factory=lambda: _NONE)
    more: Mapping[str, str] = field(default_factory=lambda: _NONE)
    partition: int = 0
    offset: int = -1

    def values_of(self, name: str) -> list[bytes | None]:
        """The values of the headers of a name."""
        return [value for key, value in self.headers if key == name]
