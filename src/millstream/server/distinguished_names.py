"""The distinguished name of a certificate's subject as text, by RFC 2253."""

from collections.abc import Mapping
from typing import Final

__all__ = ["Subject", "distinguished_name"]

Subject = tuple[tuple[tuple[str, str], ...], ...]
"""Attributes and their values, as `ssl.SSLSocket.getpeercert` gives them."""

_KEYWORDS: Final[Mapping[str, str]] = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
"""The attributes that the RFC has a short name for, by OpenSSL's; others are called as OpenSSL calls them."""
_SPECIAL: Final = frozenset(',+"\\<>;')


def distinguished_name(subject: Subject) -> str:
    """The name as Java and so Kafka writes it, such as CN=ada,OU=Engines,O=Example: the last part first."""
    return ",".join(
        "+".join(f"{_KEYWORDS.get(name, name)}={_escaped(value)}" for name, value in part)
        for part in reversed(subject)
    )


def _escaped(value: str) -> str:
    text = "".join(f"\\{character}" if character in _SPECIAL else character for character in value)
    if text.startswith(("#", " ")):
        text = f"\\{text}"
    return text[:-1] + "\\ " if value.endswith(" ") and len(value) > 1 else text
