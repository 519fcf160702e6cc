"""Who is let in: the handshake, its mechanisms, and what is refused before."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, ClassVar

import pytest

from millstream.model.pending import Pending
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.kafka.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from millstream.wire.kafka.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from millstream.wire.kafka.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeUserScramCredentialsRequest,
    UserName,
)
from millstream.wire.kafka.messages.metadata import METADATA, MetadataRequest
from millstream.wire.kafka.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from millstream.wire.kafka.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from tests.unit.sessions.kafka.conversation import Conversation

ALL = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"


class Guarded(Conversation):
    """A server that lets in whom it knows."""

    passwords: ClassVar[dict[str, str]] = {"ada": "secret"}

    def __init__(self, database: str = "", mechanisms: str = ALL) -> None:
        super().__init__(database, sasl__enabled__mechanisms=mechanisms)

    def shake(self, mechanism: str, version: int = 1) -> Any:
        return self.ask(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism), version)

    def token(self, token: bytes, version: int = 2) -> Any:
        return self.ask(SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=token), version)

    def bare(self, token: bytes) -> bytes:
        answer = self.session.handle(memoryview(bytearray(token)))
        assert isinstance(answer, Pending)
        return b"".join(bytes(one) for one in self.wait(answer))

    def metadata(self) -> Any:
        return self.ask(METADATA, MetadataRequest(topics=[]))

    def plain(self, name: str = "ada", password: str = "secret") -> Any:
        assert not self.shake("PLAIN").error_code
        return self.token(f"\0{name}\0{password}".encode())

    def scram(self, kind: str, name: str = "ada", password: str = "secret") -> Any:
        """Log in as RFC 5802 says, in words of its own."""
        digest = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[kind]
        assert not self.shake(kind).error_code
        bare = f"n={name},r=mine"
        first = self.token(b"n,," + bare.encode())
        if first.error_code:
            return first
        challenge = first.auth_bytes.decode()
        fields = dict(one.split("=", 1) for one in challenge.split(","))
        assert fields["r"].startswith("mine")
        assert fields["r"] != "mine"
        salted = hashlib.pbkdf2_hmac(digest, password.encode(), b64decode(fields["s"]), int(fields["i"]))
        client_key = hmac.digest(salted, b"Client Key", digest)
        final = f"c=biws,r={fields['r']}"
        message = f"{bare},{challenge},{final}".encode()
        signature = hmac.digest(hashlib.new(digest, client_key).digest(), message, digest)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        last = self.token(f"{final},p={b64encode(proof).decode()}".encode())
        if not last.error_code:
            expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), message, digest)
            assert last.auth_bytes == b"v=" + b64encode(expected)
        return last

    def set(self, name: str, password: str, kind: str = "sha256", iterations: int = 4096) -> Any:
        salted = hashlib.pbkdf2_hmac(kind, password.encode(), b"salt", iterations)
        mechanism = {"sha256": 1, "sha512": 2}.get(kind, 3)
        one = ScramCredentialUpsertion(
            name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
        )
        return self.alter(upsertions=[one])[0]

    def alter(self, **changes: Any) -> list[Any]:
        response = self.ask(ALTER_USER_SCRAM_CREDENTIALS, AlterUserScramCredentialsRequest(**changes))
        results: list[Any] = response.results
        return results


def test_nothing_is_served_before(ada: Guarded) -> None:
    assert ada.ask(API_VERSIONS, ApiVersionsRequest()).api_keys
    with pytest.raises(MalformedMessage, match="has not shown who it is"):
        ada.metadata()


@pytest.fixture
def ada() -> Guarded:
    return Guarded()


def test_plain(ada: Guarded) -> None:
    answer = ada.plain()
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
    assert ada.metadata().brokers
    assert ada.client.principal == "User:ada"


def test_a_large_request_behind_a_login_is_one_of_who_has_logged_in(ada: Guarded) -> None:
    ada.plain()
    assert not ada.set("eve", "hers").error_code
    ada.connect()
    ada.shake("PLAIN")
    login = ada.send(SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=b"\0eve\0hers"), 2)
    assert login is not None
    assert not login.done
    large = memoryview((1024 * 1024).to_bytes(4, "big") + bytes(100))
    assert ada.session.measure(large) == 0
    assert not ada.wait(login).error_code
    assert ada.session.measure(large) == 1024 * 1024 + 4


@pytest.mark.parametrize(("name", "password"), [("ada", "other"), ("eve", "secret"), ("ada", ""), ("", "secret")])
def test_a_wrong_password_is_told_and_ends_the_connection(ada: Guarded, name: str, password: str) -> None:
    answer = ada.plain(name, password)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "the name or the password is wrong"
    for again in (ada.metadata, lambda: ada.shake("PLAIN"), lambda: ada.token(b"\0ada\0secret")):
        with pytest.raises(MalformedMessage):
            again()


def test_tokens_that_are_none(ada: Guarded) -> None:
    for token in (b"", b"ada", b"\0ada", b"a\0b\0c\0d", b"\0\xff\0x", b"eve\0ada\0secret"):
        ada.connect()
        ada.shake("PLAIN")
        assert ada.token(token).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("kind", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram(ada: Guarded, kind: str) -> None:
    assert not ada.scram(kind).error_code
    assert ada.metadata().brokers
    for name, password in (("ada", "other"), ("eve", "secret")):
        ada.connect()
        assert ada.scram(kind, name, password).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        with pytest.raises(MalformedMessage):
            ada.metadata()


def test_a_mechanism_that_is_not_offered() -> None:
    server = Guarded(mechanisms="SCRAM-SHA-512")
    for mechanism in ("PLAIN", "GSSAPI", "scram-sha-512", ""):
        answer = server.shake(mechanism)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["SCRAM-SHA-512"])
        assert server.ended == [f"there is no SASL mechanism {mechanism!r} here"]
        server.connect()
    assert not server.scram("SCRAM-SHA-512").error_code


def test_steps_out_of_order(ada: Guarded) -> None:
    assert ada.token(b"\0ada\0secret").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert not ada.shake("PLAIN").error_code
    assert ada.shake("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert not ada.token(b"\0ada\0secret").error_code
    assert ada.token(b"\0ada\0secret").error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_bare_tokens_after_the_first_version_of_the_handshake(ada: Guarded) -> None:
    assert not ada.shake("PLAIN", 0).error_code
    assert ada.session.measure(memoryview(b"\0\0\0\0")) == 4, "a token may be empty"
    assert ada.bare(b"\0ada\0secret") == b"\0\0\0\0"
    assert ada.metadata().brokers


def test_a_bare_token_that_is_wrong_ends_the_connection(ada: Guarded) -> None:
    ada.shake("PLAIN", 0)
    assert ada.bare(b"\0ada\0wrong") == b""
    assert ada.ended == ["authentication failed: the name or the password is wrong"]
    with pytest.raises(MalformedMessage):
        ada.session.handle(memoryview(bytearray(b"\0ada\0secret")))


def test_large_requests_come_after(ada: Guarded) -> None:
    large = memoryview((512 * 1024 + 1).to_bytes(4, "big"))
    with pytest.raises(MalformedMessage):
        ada.session.measure(large)
    ada.plain()
    assert ada.session.measure(large) == 512 * 1024 + 5


def test_everybody_is_let_in_while_it_is_off() -> None:
    server = Conversation()
    assert server.ask(METADATA, MetadataRequest(topics=[])).brokers
    shaken = server.ask(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert (shaken.error_code, shaken.mechanisms) == (0, ["PLAIN"])
    token = SaslAuthenticateRequest(auth_bytes=b"\0anybody\0anything")
    assert not server.ask(SASL_AUTHENTICATE, token).error_code
    assert server.ask(METADATA, MetadataRequest(topics=[])).brokers
    refused = server.ask(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
    assert refused.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM


def test_credentials_are_set_and_last(tmp_path: Path) -> None:
    server = Guarded(str(tmp_path / "metadata.sqlite"))
    server.plain()
    assert not server.set("bob", "builder", "sha512").error_code
    server.kill()
    server.start()
    assert not server.scram("SCRAM-SHA-512", "bob", "builder").error_code
    server.connect()
    assert not server.plain("bob", "builder").error_code, "a password that SCRAM knows is one for PLAIN"
    server.connect()
    assert server.scram("SCRAM-SHA-256", "bob", "builder").error_code, "it was set for the other hash"


def test_a_password_that_was_set_goes_before_that_of_the_file(ada: Guarded) -> None:
    ada.plain()
    assert not ada.set("ada", "changed").error_code
    for password, code in (("secret", ErrorCode.SASL_AUTHENTICATION_FAILED), ("changed", ErrorCode.NONE)):
        ada.connect()
        assert ada.plain("ada", password).error_code == code
        ada.connect()
        assert ada.scram("SCRAM-SHA-256", "ada", password).error_code == code


def test_credentials_that_are_refused(ada: Guarded) -> None:
    ada.plain()
    assert ada.set("bob", "x", iterations=4095).error_code == ErrorCode.UNACCEPTABLE_CREDENTIAL
    assert ada.set("bob", "x", iterations=16385).error_code == ErrorCode.UNACCEPTABLE_CREDENTIAL
    assert ada.set("", "x").error_code == ErrorCode.UNACCEPTABLE_CREDENTIAL
    assert ada.set("bob", "x", "sha1").error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    gone = ScramCredentialDeletion(name="bob", mechanism=1)
    assert ada.alter(deletions=[gone])[0].error_code == ErrorCode.RESOURCE_NOT_FOUND
    assert ada.alter(deletions=[gone, gone])[0].error_code == ErrorCode.DUPLICATE_RESOURCE
    assert ada.set("bob", "x").error_code == 0
    assert ada.alter(deletions=[gone])[0].error_code == 0


def test_credentials_are_described_but_never_told(ada: Guarded) -> None:
    ada.plain()
    ada.set("bob", "x")
    ada.set("bob", "x", "sha512", 8192)

    def describe(*names: str) -> list[Any]:
        users = [UserName(name=name) for name in names] or None
        request = DescribeUserScramCredentialsRequest(users=users)
        results: list[Any] = ada.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, request).results
        return results

    (bob,) = describe()
    assert (bob.user, [(one.mechanism, one.iterations) for one in bob.credential_infos]) == (
        "bob",
        [(1, 4096), (2, 8192)],
    )
    assert [one.error_code for one in describe("bob", "eve")] == [0, ErrorCode.RESOURCE_NOT_FOUND]
    assert [one.error_code for one in describe("bob", "bob")] == [ErrorCode.DUPLICATE_RESOURCE]


def test_who_need_not_show_who_it_is_stays_nobody() -> None:
    talk = Guarded(mechanisms="")
    answer = talk.plain("root", "anything")
    assert answer.error_code == 0
    assert talk.client.principal == "User:ANONYMOUS"
