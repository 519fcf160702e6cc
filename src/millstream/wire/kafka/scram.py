"""The messages of SCRAM, a challenge and response by which both sides show that they know a password.

    client first   n,,n=NAME,r=CLIENT NONCE[,EXTENSION=VALUE]
    server first   r=CLIENT NONCE SERVER NONCE,s=SALT,i=ITERATIONS
    client final   c=biws,r=CLIENT NONCE SERVER NONCE,p=PROOF
    server final   v=SIGNATURE

Source: RFC 5802, section 7; RFC 7677. Channels are not bound (`n`), as Kafka has it.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import Final

from millstream.wire.kafka.errors import MalformedMessage

__all__ = [
    "ClientFinal",
    "ClientFirst",
    "ScramClient",
    "auth_message",
    "read_client_final",
    "read_client_first",
    "server_first",
]

_TEXT_BYTES_MAX: Final = 8192
"""Bytes of one message; names and nonces of clients have some dozen."""
_ITERATIONS_MAX: Final = 1_000_000
"""Rounds of the hash that a server may ask for: half a second of work. Brokers ask for 4096 to 16384."""


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """What a client begins with.

    Args:
        bare: the message without its first part, which counts for the proof.
        name: of the user.
        nonce: what the client has made up.
    """

    bare: str
    name: str
    nonce: str


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """What a client answers the challenge with.

    Args:
        without_proof: the message up to its proof, which counts for the proof.
        nonce: that of both sides, one after the other.
        proof: the proof.
    """

    without_proof: str
    nonce: str
    proof: bytes


def read_client_first(message: bytes) -> ClientFirst:
    """Read the first message.

    Raises:
        MalformedMessage: it is none, asks for a channel to be bound, or to act for somebody else.
    """
    text = _text(message)
    channel, authorization, bare = [*text.split(",", 2), "", ""][:3]
    fields = _fields(bare)
    name, nonce = fields.get("n", ""), fields.get("r", "")
    if channel != "n" or "m" in fields or not name or not nonce:
        raise MalformedMessage("the first message of SCRAM is n,,n=NAME,r=NONCE")
    if authorization not in ("", f"a={name}"):
        raise MalformedMessage("nobody may act for somebody else")
    if name.replace("=2C", "").replace("=3D", "").count("="):
        raise MalformedMessage("in a name of SCRAM = is written =3D")
    return ClientFirst(bare, name.replace("=2C", ",").replace("=3D", "="), nonce)


def server_first(client: ClientFirst, server_nonce: str, salt: bytes, iterations: int) -> str:
    """The challenge."""
    return f"r={client.nonce}{server_nonce},s={b64encode(salt).decode()},i={iterations}"


def read_client_final(message: bytes) -> ClientFinal:
    """Read the final message. Raises MalformedMessage: it is none."""
    text = _text(message)
    without_proof, separator, proof = text.rpartition(",p=")
    fields = _fields(without_proof)
    try:
        channel = b64decode(fields.get("c", ""), validate=True).decode()
        proof_bytes = b64decode(proof, validate=True)
    except (Base64Error, ValueError):
        raise MalformedMessage("the final message of SCRAM is c=CHANNEL,r=NONCE,p=PROOF") from None
    if not separator or not channel.startswith("n,") or not fields.get("r"):
        raise MalformedMessage("the final message of SCRAM is c=CHANNEL,r=NONCE,p=PROOF")
    return ClientFinal(without_proof, fields["r"], proof_bytes)


def auth_message(first: ClientFirst, challenge: str, final: ClientFinal) -> bytes:
    """What both sides sign."""
    return f"{first.bare},{challenge},{final.without_proof}".encode()


class ScramClient:
    """The client's side of one exchange.

    Args:
        algorithm: the hash, as hashlib names it.
        name, password: of the user.
        nonce: what nobody can guess, of printable characters without a comma.

    Raises (every method):
        MalformedMessage: the server's message is none, or is not an answer to this client's.
    """

    def __init__(self, algorithm: str, name: str, password: str, nonce: str) -> None:
        self._algorithm = algorithm
        self._password = password.encode()
        escaped = name.replace("=", "=3D").replace(",", "=2C")
        self._first = ClientFirst(f"n={escaped},r={nonce}", name, nonce)
        self._signature = b""

    @property
    def first(self) -> bytes:
        """The first message."""
        return f"n,,{self._first.bare}".encode()

    def final(self, challenge: bytes) -> bytes:
        """The message that answers the challenge; takes some ms."""
        text = _text(challenge)
        fields = _fields(text)
        nonce, iterations = fields.get("r", ""), fields.get("i", "")
        try:
            salt = b64decode(fields.get("s", ""), validate=True)
        except (Base64Error, ValueError):
            salt = b""
        if not salt or not iterations.isdecimal() or not 0 < int(iterations) <= _ITERATIONS_MAX:
            raise MalformedMessage("the challenge of SCRAM is r=NONCE,s=SALT,i=ITERATIONS")
        if not nonce.startswith(self._first.nonce) or nonce == self._first.nonce:
            raise MalformedMessage("the challenge of SCRAM is for another client")
        final = ClientFinal(f"c={b64encode(b'n,,').decode()},r={nonce}", nonce, b"")
        message = auth_message(self._first, text, final)
        salted = hashlib.pbkdf2_hmac(self._algorithm, self._password, salt, int(iterations))
        client_key = self._signed(salted, b"Client Key")
        proof = self._signed(hashlib.new(self._algorithm, client_key).digest(), message)
        self._signature = self._signed(self._signed(salted, b"Server Key"), message)
        proof = bytes(one ^ other for one, other in zip(client_key, proof, strict=True))
        return f"{final.without_proof},p={b64encode(proof).decode()}".encode()

    def check(self, server_final: bytes) -> None:
        """Check the server's last message: only who knows the password can send it."""
        if not hmac.compare_digest(server_final, b"v=" + b64encode(self._signature)):
            raise MalformedMessage("the server does not know the password")

    def _signed(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._algorithm)


def _text(message: bytes) -> str:
    if len(message) > _TEXT_BYTES_MAX:
        raise MalformedMessage(f"a message of SCRAM with {len(message)} bytes")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise MalformedMessage("a message of SCRAM is UTF-8") from None


def _fields(text: str) -> dict[str, str]:
    return {one[:1]: one[2:] for one in text.split(",") if one[1:2] == "="}
