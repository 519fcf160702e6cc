"""Where a cluster is, and how its brokers let one in: the options that all that is asked of a broker begins with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from millstream.spark.errors import BadOption
from millstream.spark.sasl import SASL_OPTIONS, SASL_SECRETS, Sasl
from millstream.spark.tls import TLS_OPTIONS, TLS_SECRETS, Tls

__all__ = ["SECRET_OPTIONS", "SERVERS", "SERVER_OPTIONS", "Servers"]

SERVERS: Final = "kafka.bootstrap.servers"
_PROTOCOL: Final = "kafka.security.protocol"
SERVER_OPTIONS: Final = (SERVERS, _PROTOCOL, *TLS_OPTIONS, *SASL_OPTIONS)
SECRET_OPTIONS: Final = TLS_SECRETS | SASL_SECRETS
"""Those that are not written down anywhere."""
_PLAINTEXT: Final = "PLAINTEXT"
_WITH_TLS: Final = frozenset({"SSL", "SASL_SSL"})
_WITH_SASL: Final = frozenset({"SASL_PLAINTEXT", "SASL_SSL"})
_PROTOCOLS: Final = (_PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class Servers:
    """Brokers to begin with, and how they are spoken to. As text, the addresses alone.

    Args:
        addresses: HOST:PORT, each.
        tls: None to speak without TLS.
        sasl: None to show nobody who one is.
        options: what it was read from, by the names of SERVER_OPTIONS: for Spark, to read and write there too.
    """

    addresses: tuple[str, ...]
    tls: Tls | None
    sasl: Sasl | None
    options: Mapping[str, str] = field(repr=False, hash=False)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Read the options.

        Args:
            options: those of SERVER_OPTIONS, whose names count without case. Others are left to others.

        Raises:
            BadOption: the first that is missing, or contradicts another.
        """
        named = {name.lower(): value for name, value in options.items()}
        given: dict[str, str] = {
            # A password may begin or end with a space.
            name: named[name] if name in SECRET_OPTIONS else named[name].strip()
            for name in SERVER_OPTIONS
            if name in named
        }
        protocol = given.get(_PROTOCOL, _PLAINTEXT).upper()
        if protocol not in _PROTOCOLS:
            raise BadOption(f"{_PROTOCOL} is one of {', '.join(_PROTOCOLS)}, not {given[_PROTOCOL]!r}")
        for names, protocols in ((TLS_OPTIONS, _WITH_TLS), (SASL_OPTIONS, _WITH_SASL)):
            idle = next((name for name in names if name in given), None)
            if idle is not None and protocol not in protocols:
                raise BadOption(f"{idle} is for {_PROTOCOL}={' or '.join(sorted(protocols))}, and that is {protocol}")
        return cls(
            addresses=_addresses(given.get(SERVERS, "")),
            tls=Tls.of(given) if protocol in _WITH_TLS else None,
            sasl=Sasl.of(given) if protocol in _WITH_SASL else None,
            options=given,
        )

    @classmethod
    def at(cls, servers: "str | Servers") -> "Servers":
        """The same, or brokers that let everybody in: HOST:PORT, or several separated by commas. Raises BadOption."""
        return cls.of({SERVERS: servers}) if isinstance(servers, str) else servers

    def __str__(self) -> str:
        return ",".join(self.addresses)


def _addresses(text: str) -> tuple[str, ...]:
    if not text:
        raise BadOption(f"the option {SERVERS} is missing: HOST:PORT of a broker")
    addresses = tuple(address.strip() for address in text.split(","))
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise BadOption(f"{SERVERS} takes HOST:PORT, not {address!r}")
    return addresses
