"""By what users show who they are: passwords that the server was started with, and SCRAM credentials that it keeps.

A SCRAM credential is what a server needs to check a password without knowing it (RFC 5802, section 3). Those that
were set while the server runs last in the metadata store, one for each user and hash; they go before a password that
the server was started with.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from millstream.broker.documents import Document, Documents
from millstream.broker.errors import BrokerError
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Runtime

__all__ = [
    "ITERATIONS_MAX",
    "ITERATIONS_MIN",
    "Credentials",
    "ScramCredential",
    "ScramHash",
    "UnacceptableCredential",
    "UnknownCredential",
]

_KIND: Final = "scram-credential"
CREDENTIALS_LANE: Final = "credentials"
"""Where passwords are hashed, which takes some ms for each."""
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
"""Rounds of the hash that a credential may have, as Apache Kafka has it: fewer are too easily guessed, more are work
that a client could put on the server."""
_SALT_BYTES: Final = 24
_NAME_BYTES_MAX: Final = 255


class UnacceptableCredential(BrokerError):
    """A credential that is not taken: no name, or too few or too many iterations."""


class UnknownCredential(BrokerError):
    """The user has no such credential."""


class ScramHash(Enum):
    """The hash of a credential, by the name that hashlib has for it."""

    SHA_256 = "sha256"
    SHA_512 = "sha512"


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What tells whether somebody knows a password.

    Args:
        hash: the hash.
        salt: what the password was salted with.
        iterations: rounds of the hash.
        stored_key, server_key: see RFC 5802, section 3.
    """

    hash: ScramHash
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of_salted(cls, kind: ScramHash, salt: bytes, iterations: int, salted_password: bytes) -> "ScramCredential":
        """The credential of a password that was salted already."""
        client_key = hmac.digest(salted_password, b"Client Key", kind.value)
        stored_key = hashlib.new(kind.value, client_key).digest()
        return cls(kind, salt, iterations, stored_key, hmac.digest(salted_password, b"Server Key", kind.value))

    @classmethod
    def of_password(cls, kind: ScramHash, salt: bytes, iterations: int, password: str) -> "ScramCredential":
        """The credential of a password; takes some ms."""
        salted = hashlib.pbkdf2_hmac(kind.value, password.encode(), salt, iterations)
        return cls.of_salted(kind, salt, iterations, salted)

    def proven(self, proof: bytes, message: bytes) -> bool:
        """Whether a proof shows that its maker knows the password.

        Args:
            proof: the client's.
            message: what both sides sign.
        """
        signature = hmac.digest(self.stored_key, message, self.hash.value)
        if len(proof) != len(signature):
            return False
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        return hmac.compare_digest(hashlib.new(self.hash.value, client_key).digest(), self.stored_key)

    def signed(self, message: bytes) -> bytes:
        """The server's own proof."""
        return hmac.digest(self.server_key, message, self.hash.value)


class Credentials:
    """All credentials.

    Args:
        runtime: chance, and the lane.
        documents: where they last.
        passwords: those that the server was started with, by user.
    """

    def __init__(self, runtime: Runtime, documents: Documents, passwords: Mapping[str, str]) -> None:
        self._runtime = runtime
        self._documents = documents
        self._passwords = dict(passwords)
        self._derived: dict[tuple[str, ScramHash], ScramCredential] = {}

    def kept(self) -> dict[str, list[ScramCredential]]:
        """The credentials that are kept, by user."""
        found: dict[str, list[ScramCredential]] = {}
        for key, document in self._documents.of_kind(_KIND).items():
            found.setdefault(key.partition("/")[2], []).append(_credential(document))
        return found

    def put(self, name: str, credential: ScramCredential) -> Pending[None]:
        """Keep a credential in place of the one of the same hash; resolves once that lasts.

        Raises:
            UnacceptableCredential: it is not one.
        """
        if not name or len(name.encode()) > _NAME_BYTES_MAX:
            raise UnacceptableCredential(f"a user's name has 1 to {_NAME_BYTES_MAX} bytes")
        if not ITERATIONS_MIN <= credential.iterations <= ITERATIONS_MAX:
            raise UnacceptableCredential(
                f"a credential has {ITERATIONS_MIN} to {ITERATIONS_MAX} iterations, not {credential.iterations}"
            )
        document = {
            "hash": credential.hash.value,
            "salt": b64encode(credential.salt).decode(),
            "iterations": credential.iterations,
            "stored_key": b64encode(credential.stored_key).decode(),
            "server_key": b64encode(credential.server_key).decode(),
        }
        return self._documents.put(_KIND, _key(name, credential.hash), document)

    def delete(self, name: str, kind: ScramHash) -> Pending[None]:
        """Forget a credential; resolves once that lasts. Raises UnknownCredential."""
        if self._documents.find(_KIND, _key(name, kind)) is None:
            raise UnknownCredential(f"the user {name!r} has no such credential")
        return self._documents.delete(_KIND, _key(name, kind))

    def scram(self, name: str, kind: ScramHash) -> Pending[ScramCredential | None]:
        """The credential of a user; None if there is none."""
        document = self._documents.find(_KIND, _key(name, kind))
        if document is not None:
            return settled(_credential(document))
        password = self._passwords.get(name)
        known = self._derived.get((name, kind))
        if password is None or known is not None:
            return settled(known)
        salt = self._runtime.random_bytes(_SALT_BYTES)

        def remember(made: ScramCredential) -> ScramCredential | None:
            return self._derived.setdefault((name, kind), made)

        return self._runtime.run_blocking(
            CREDENTIALS_LANE, lambda: ScramCredential.of_password(kind, salt, ITERATIONS_MIN, password)
        ).then(remember)

    def knows(self, name: str, password: str) -> Pending[bool]:
        """Whether a password is the user's."""
        kept = [document for kind in ScramHash if (document := self._documents.find(_KIND, _key(name, kind)))]
        if kept:
            credential = _credential(kept[0])
            return self._runtime.run_blocking(CREDENTIALS_LANE, lambda: _matches(credential, password))
        own = self._passwords.get(name)
        return settled(own is not None and hmac.compare_digest(own.encode(), password.encode()))


def _matches(credential: ScramCredential, password: str) -> bool:
    made = ScramCredential.of_password(credential.hash, credential.salt, credential.iterations, password)
    return hmac.compare_digest(made.stored_key, credential.stored_key)


def _key(name: str, kind: ScramHash) -> str:
    return f"{kind.value}/{name}"


def _credential(document: Document) -> ScramCredential:
    return ScramCredential(
        ScramHash(document["hash"]),
        b64decode(document["salt"]),
        document["iterations"],
        b64decode(document["stored_key"]),
        b64decode(document["server_key"]),
    )
