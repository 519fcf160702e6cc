"""The messages of SCRAM, by the examples of the RFCs."""

from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.broker.credentials import ScramCredential, ScramHash
from millstream.wire.kafka.errors import MalformedMessage
from millstream.wire.kafka.scram import (
    ScramClient,
    auth_message,
    read_client_final,
    read_client_first,
    server_first,
)

# RFC 7677, section 3: the user "user" with the password "pencil".
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
OWN_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CHALLENGE = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def test_the_example_of_the_rfc() -> None:
    first = read_client_first(FIRST)
    assert (first.name, first.nonce) == ("user", "rOprNGfwEbeRWgbNEkqO")
    assert server_first(first, OWN_NONCE, SALT, 4096) == CHALLENGE
    final = read_client_final(FINAL)
    assert final.nonce == "rOprNGfwEbeRWgbNEkqO" + OWN_NONCE
    credential = ScramCredential.of_password(ScramHash.SHA_256, SALT, 4096, "pencil")
    message = auth_message(first, CHALLENGE, final)
    assert credential.proven(final.proof, message)
    assert b64encode(credential.signed(message)) == SIGNATURE
    assert not credential.proven(final.proof, message + b"x")
    assert not credential.proven(final.proof[:-1], message)
    assert not ScramCredential.of_password(ScramHash.SHA_256, SALT, 4096, "pencils").proven(final.proof, message)


def test_names_with_signs_that_are_escaped() -> None:
    assert read_client_first(b"n,,n=a=2Cb=3Dc,r=x").name == "a,b=c"
    assert read_client_first(b"n,a=me,n=me,r=x,tokenauth=true").name == "me"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n",
        b"n,,",
        b"n,,n=,r=x",
        b"n,,n=a",
        b"n,,n=a,r=",
        b"y,,n=a,r=x",
        b"p=tls-unique,,n=a,r=x",
        b"n,a=other,n=a,r=x",
        b"n,,m=ext,n=a,r=x",
        b"n,,n=a=2,r=x",
        b"n,,n=\xff,r=x",
        b"n,,n=" + b"a" * 9000 + b",r=x",
    ],
)
def test_what_is_no_first_message(message: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_client_first(message)


@pytest.mark.parametrize(
    "message", [b"", b"c=biws,r=x", b"c=biws,p=AAAA", b"r=x,p=AAAA", b"c=biws,r=x,p=?", b"c=eSws,r=x,p=AAAA", b"\xff"]
)
def test_what_is_no_final_message(message: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_client_final(message)


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(message: bytes) -> None:
    for read in (read_client_first, read_client_final):
        try:
            read(message)
        except MalformedMessage:
            continue


def test_a_client_by_the_example_of_the_rfc() -> None:
    client = ScramClient("sha256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert client.first == FIRST
    assert client.final(CHALLENGE.encode()) == FINAL
    client.check(b"v=" + SIGNATURE)
    with pytest.raises(MalformedMessage):
        client.check(b"v=" + SIGNATURE.lower())
    assert ScramClient("sha512", "a,b=c", "p", "x").first == b"n,,n=a=2Cb=3Dc,r=x"


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"e=other-error",
        CHALLENGE.replace("r=r", "r=x").encode(),
        b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        CHALLENGE.replace("i=4096", "i=0").encode(),
        CHALLENGE.replace("i=4096", "i=99999999999").encode(),
        CHALLENGE.replace("i=4096", "i=x").encode(),
        CHALLENGE.replace("s=W", "s=!").encode(),
        CHALLENGE.encode() + b"\xff",
    ],
)
def test_what_is_no_challenge(challenge: bytes) -> None:
    with pytest.raises(MalformedMessage):
        ScramClient("sha256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO").final(challenge)
