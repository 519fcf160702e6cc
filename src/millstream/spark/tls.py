"""TLS on connections to brokers: the options that say how, and what is done with them."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from millstream.spark.errors import AuthenticationFailed, BadOption

if TYPE_CHECKING:
    import ssl

__all__ = ["TLS_OPTIONS", "TLS_SECRETS", "Tls"]

_CA: Final = ("kafka.ssl.ca.location", "kafka.ssl.truststore.location")
_CERTIFICATE: Final = ("kafka.ssl.certificate.location", "kafka.ssl.keystore.location")
_TYPES: Final = ("kafka.ssl.truststore.type", "kafka.ssl.keystore.type")
_KEY: Final = "kafka.ssl.key.location"
_KEY_PHRASE: Final = "kafka.ssl.key.password"
_NAME_CHECK: Final = "kafka.ssl.endpoint.identification.algorithm"
TLS_OPTIONS: Final = (*_CA, *_CERTIFICATE, *_TYPES, _KEY, _KEY_PHRASE, _NAME_CHECK)
"""The options, in Java's words and in librdkafka's where these have others."""
TLS_SECRETS: Final = frozenset({_KEY_PHRASE})
_REFUSALS: Final = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")
"""In the name of an alert: that the broker does not take the certificate that it was shown, or misses one."""


class _File(NamedTuple):
    option: str
    path: str


@dataclass(frozen=True, slots=True)
class Tls:
    """How a broker shows who it is, and what it is shown. Files are in PEM, and are read where a connection is made.

    Args:
        ca: the authorities that may have signed the broker's certificate; None for those that this machine trusts.
        certificate: what the broker is shown, and maybe the key; None to show nothing.
        key: the private key; None if it stands in the same file.
        key_password: of an encrypted key; empty if it is not.
        checks_name: whether the broker's certificate must be of the host that is connected to.
    """

    ca: _File | None
    certificate: _File | None
    key: _File | None
    key_password: str = field(repr=False)
    checks_name: bool

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """Read the options.

        Args:
            given: by the names in TLS_OPTIONS.

        Raises:
            BadOption: they contradict each other, or name what is not done.
        """
        for name in _TYPES:
            if given.get(name, "PEM").upper() != "PEM":
                raise BadOption(
                    f"{name} is always PEM, not {given[name]!r}; convert the file with openssl or keytool"
                )
        certificate, key = _one_of(given, _CERTIFICATE), _one_of(given, (_KEY,))
        if certificate is None and (key is not None or _KEY_PHRASE in given):
            raise BadOption(f"{_CERTIFICATE[0]} is missing: a private key is for a certificate")
        check = given.get(_NAME_CHECK, "https").lower()
        if check not in {"https", "none", ""}:
            raise BadOption(f"{_NAME_CHECK} is https, or none (or empty) not to check names, not {check!r}")
        return cls(
            ca=_one_of(given, _CA),
            certificate=certificate,
            key=key,
            key_password=given.get(_KEY_PHRASE, ""),
            checks_name=check == "https",
        )

    def context(self) -> "ssl.SSLContext":
        """Read the files.

        Raises:
            BadOption: one cannot be read, or is not what it should be.
        """
        # Tasks without TLS do not pay for the import.
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.checks_name
        if self.ca is None:
            context.load_default_certs()
        else:
            try:
                context.load_verify_locations(self.ca.path)
            except OSError as error:
                raise _unusable(self.ca, "certificates in PEM", error) from None
        if self.certificate is not None:
            try:
                # A password in any case, so that nobody is asked for one at a terminal.
                context.load_cert_chain(
                    self.certificate.path, None if self.key is None else self.key.path, self.key_password
                )
            except OSError as error:
                what = "a certificate in PEM and its private key"
                file = self.key if self.key is not None and _is_readable(self.certificate) else self.certificate
                raise _unusable(file, what, error) from None
        return context

    def over(self, connection: socket.socket, context: "ssl.SSLContext", server: str, host: str) -> socket.socket:
        """Put TLS on a new connection.

        Args:
            connection: it is closed if that fails.
            context: of this.
            server, host: HOST:PORT of the broker, and the first of it.

        Raises:
            AuthenticationFailed: the broker's certificate is not trusted, or this side's is not taken.
            OSError: the connection fails, or the broker does not speak TLS.
        """
        import ssl

        try:
            return context.wrap_socket(connection, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            connection.close()
            raise AuthenticationFailed(
                f"the certificate of {server} is not trusted: {error.verify_message.rstrip('.')}; see {_CA[0]}"
            ) from None
        except OSError:
            connection.close()
            raise

    @staticmethod
    def refusal(server: str, error: OSError) -> AuthenticationFailed | None:
        """What an error of a connection means, if it is that the broker does not take this side's certificate."""
        import ssl

        reason = error.reason or "" if isinstance(error, ssl.SSLError) else ""
        if "ALERT" not in reason or not any(one in reason for one in _REFUSALS):
            return None
        what = reason.partition("ALERT_")[2].lower().replace("_", " ")
        return AuthenticationFailed(f"{server} refuses TLS with this side ({what}); see {_CERTIFICATE[0]}")


def _one_of(given: Mapping[str, str], names: tuple[str, ...]) -> _File | None:
    named = [name for name in names if name in given]
    if len(named) > 1:
        raise BadOption(f"{' and '.join(named)} say the same; give one of them")
    if named and not given[named[0]]:
        raise BadOption(f"{named[0]} is empty: the path of a file")
    return _File(named[0], given[named[0]]) if named else None


def _unusable(file: _File, what: str, error: OSError) -> BadOption:
    if not _is_readable(file):
        return BadOption(f"{file.option}: {file.path} cannot be read here ({error.strerror})")
    return BadOption(f"{file.option}: {file.path} does not hold {what}")


def _is_readable(file: _File) -> bool:
    try:
        with open(file.path, "rb"):
            return True
    except OSError:
        return False
