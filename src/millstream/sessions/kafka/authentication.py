"""How a connection shows who it is: the mechanisms of SASL, and how far one has come.

While security is off everybody is let in: a client that is set up for SASL may log in by PLAIN with any name and
password, so that it need not be changed. The other mechanism, SCRAM, cannot be pretended: both sides prove that they
know the password.

Source: Kafka protocol guide, "SASL Authentication Sequence"; RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM).
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from millstream.broker.credentials import Credentials, ScramCredential, ScramHash
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Runtime
from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.kafka.scram import (
    ClientFirst,
    auth_message,
    read_client_final,
    read_client_first,
    server_first,
)

__all__ = ["SCRAM_HASHES", "Authentication", "AuthenticationFailed", "Security", "Step"]

PLAIN: Final = "PLAIN"
SCRAM_HASHES: Final[Mapping[str, ScramHash]] = {
    "SCRAM-SHA-256": ScramHash.SHA_256,
    "SCRAM-SHA-512": ScramHash.SHA_512,
}
_NONCE_BYTES: Final = 18


class AuthenticationFailed(MillstreamError):
    """A client has not shown who it is. The message may be told to it: it does not say what was wrong."""


_WRONG: Final = "the name or the password is wrong"


class Step(NamedTuple):
    """What a token is answered with.

    Args:
        token: the server's.
        name: who the client is, None as long as that is not shown.
    """

    token: bytes
    name: str | None


class Mechanism(Protocol):
    """One way to show who one is, on one connection."""

    def step(self, token: bytes) -> Pending[Step]:
        """Take a token. Raises, or fails with, MalformedMessage, AuthenticationFailed."""


@dataclass(frozen=True, slots=True)
class Security:
    """Who is let in.

    Args:
        credentials: what users show who they are by.
        mechanisms: those that are taken; none lets everybody in.
        runtime: chance.
    """

    credentials: Credentials
    mechanisms: tuple[str, ...]
    runtime: Runtime

    @property
    def offered(self) -> tuple[str, ...]:
        """The mechanisms that clients are told of."""
        return self.mechanisms or (PLAIN,)

    @property
    def required(self) -> bool:
        """Whether a client must show who it is before anything else."""
        return bool(self.mechanisms)


class Authentication:
    """How far one connection has come.

    Args:
        security: who is let in.
    """

    def __init__(self, security: Security) -> None:
        self._security = security
        self._mechanism: Mechanism | None = None
        self.tokens_are_bare = False
        self.ended = False

    def choose(self, name: str, *, bare: bool) -> bool:
        """Begin with a mechanism; false if it is not offered.

        Args:
            bare: whether the tokens come without a request around them, as after version 0 of the handshake.
        """
        security = self._security
        if name not in security.offered:
            return False
        self.tokens_are_bare = bare
        if name == PLAIN:
            self._mechanism = _Plain(security.credentials if security.required else None)
        else:
            self._mechanism = _Scram(security, SCRAM_HASHES[name])
        return True

    @property
    def checked(self) -> bool:
        """Whether what the client shows is compared with anything."""
        return self._security.required

    @property
    def begun(self) -> bool:
        """Whether a mechanism was chosen."""
        return self._mechanism is not None

    def step(self, token: bytes) -> Pending[Step]:
        """Take a token of the chosen mechanism; fails with MalformedMessage, AuthenticationFailed."""
        mechanism = self._mechanism
        assert mechanism is not None, "a mechanism was chosen"
        return Pending.attempt(lambda: mechanism.step(token))


class _Plain:
    """PLAIN: authorization NUL name NUL password.

    Args:
        credentials: None to take whatever is shown.
    """

    def __init__(self, credentials: Credentials | None) -> None:
        self._credentials = credentials

    def step(self, token: bytes) -> Pending[Step]:
        parts = token.split(b"\0")
        try:
            authorization, name, password = (part.decode() for part in parts)
        except ValueError:
            raise MalformedMessage("a token of PLAIN is [name] NUL name NUL password") from None
        if not name or not password:
            raise AuthenticationFailed(_WRONG)
        if authorization not in ("", name):
            raise AuthenticationFailed("nobody may act for somebody else")
        if self._credentials is None:
            return settled(Step(b"", name))

        def decide(known: bool) -> Step:
            if not known:
                raise AuthenticationFailed(_WRONG)
            return Step(b"", name)

        return self._credentials.knows(name, password).then(decide)


class _Scram:
    """SCRAM: a challenge, and a proof.

    Args:
        security: who is let in.
        kind: the hash.
    """

    def __init__(self, security: Security, kind: ScramHash) -> None:
        self._security = security
        self._kind = kind
        self._first: ClientFirst | None = None
        self._challenge = ""
        self._nonce = ""
        self._credential: ScramCredential | None = None

    def step(self, token: bytes) -> Pending[Step]:
        if self._first is None:
            first = self._first = read_client_first(token)
            found = self._security.credentials.scram(first.name, self._kind)
            return found.then(lambda credential: self._challenged(first, credential))
        return settled(self._proven(self._first, token))

    def _challenged(self, first: ClientFirst, credential: ScramCredential | None) -> Step:
        if credential is None:
            raise AuthenticationFailed(_WRONG)
        own = self._security.runtime.random_bytes(_NONCE_BYTES).hex()
        self._credential, self._nonce = credential, first.nonce + own
        self._challenge = server_first(first, own, credential.salt, credential.iterations)
        return Step(self._challenge.encode(), None)

    def _proven(self, first: ClientFirst, token: bytes) -> Step:
        credential, final = self._credential, read_client_final(token)
        if credential is None:
            raise MalformedMessage("the proof came before the challenge")
        message = auth_message(first, self._challenge, final)
        if final.nonce != self._nonce or not credential.proven(final.proof, message):
            raise AuthenticationFailed(_WRONG)
        self._credential = None  # a proof is taken once
        return Step(b"v=" + b64encode(credential.signed(message)), first.name)
