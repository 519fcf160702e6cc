"""Which dialect a connection speaks."""

import pytest

from millstream.wire.iggy.commands import BY_CODE
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.layout import encode
from millstream.wire.iggy.messages.streams import CreateStream
from millstream.wire.iggy.messages.users import LoginUser, LoginWithToken
from millstream.wire.iggy.recognition import Recogniser, fits
from tests.unit.sessions.iggy.conversation import SDK_VERSIONS
from tests.unit.wire.iggy.batches import Outgoing, request

LOGIN, TOKEN, PING = 38, 44, 1
SHORT = [one for one in Dialect if one.has_login and not one.long_headers]


def login(dialect: Dialect, version: str) -> memoryview:
    return memoryview(encode(LoginUser(name="iggy", password="iggy", version=version), dialect))


def stream(dialect: Dialect) -> memoryview:
    return memoryview(encode(CreateStream(name="a stream", stream_id=6), dialect))


@pytest.mark.parametrize("dialect", SHORT)
def test_a_login_tells(dialect: Dialect) -> None:
    recogniser = Recogniser()
    recogniser.see(PING, memoryview(b""))
    assert recogniser.dialect is None
    assert recogniser.see(LOGIN, login(dialect, SDK_VERSIONS[dialect])) is dialect
    assert recogniser.settled
    assert recogniser.see(202, stream(dialect)) is dialect
    assert recogniser.see(LOGIN, login(Dialect.C3, "0.5.0")) is dialect


def test_anything_before_a_login_is_the_document() -> None:
    recogniser = Recogniser()
    assert recogniser.see(202, stream(Dialect.A)) is Dialect.A
    assert recogniser.settled
    assert recogniser.see(100, memoryview(b"")) is Dialect.A


@pytest.mark.parametrize("first", ["nothing said", "a token"])
@pytest.mark.parametrize("dialect", SHORT)
def test_what_a_login_leaves_open_requests_tell(dialect: Dialect, first: str) -> None:
    recogniser = Recogniser()
    if first == "a token":
        recogniser.see(TOKEN, memoryview(encode(LoginWithToken(token="x" * 50), dialect)))
    elif dialect >= Dialect.B2:
        recogniser.see(LOGIN, login(dialect, ""))
    else:
        return
    guess = recogniser.see(202, stream(dialect))
    assert (guess >= Dialect.C2) == (dialect >= Dialect.C2)
    sent = request(dialect, Outgoing(b"a message"))
    if dialect >= Dialect.C1:
        sent.metadata_bytes = 0
        sent.metadata_bytes = len(encode(sent, dialect)) - len(sent.messages) - 4
    guess = recogniser.see(101, memoryview(encode(sent, dialect)))
    # All of B send alike.
    assert guess is dialect or {guess, dialect} < {Dialect.B1, Dialect.B2, Dialect.B3}
    assert recogniser.settled == (dialect >= Dialect.C1)


def test_what_fits_nobody_changes_nothing() -> None:
    recogniser = Recogniser()
    recogniser.see(LOGIN, login(Dialect.C3, ""))
    assert recogniser.see(202, memoryview(b"\x09nonsense and more")) is Dialect.C3


def test_a_request_of_an_unknown_command_fits_nobody() -> None:
    assert not fits(BY_CODE[122], Dialect.A, memoryview(b""))
