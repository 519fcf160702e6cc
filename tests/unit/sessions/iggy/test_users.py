"""Logging in, users, permissions and personal access tokens."""

from pathlib import Path

import pytest

from millstream.broker.users import TOKENS_MAX
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.framing import EvictionReason
from millstream.wire.iggy.messages.register import RegisterWithToken
from millstream.wire.iggy.messages.streams import CreateStream
from millstream.wire.iggy.messages.topics import TopicRequest
from millstream.wire.iggy.messages.users import (
    ChangePassword,
    CreateToken,
    CreateUser,
    GlobalPermissions,
    LoginUser,
    LoginWithToken,
    Permissions,
    StreamPermissions,
    TokenRequest,
    TopicPermissions,
    UpdatePermissions,
    UpdateUser,
    UserRequest,
)
from tests.unit.sessions.iggy.conversation import BY_NAME, Conversation, IggyBroker, Outgoing

WITH_USERS = [one for one in Dialect if one.has_login]
SHORT = [one for one in WITH_USERS if not one.long_headers]
LONG = [one for one in WITH_USERS if one.long_headers]
every_dialect = pytest.mark.parametrize("dialect", WITH_USERS)


@pytest.fixture
def server() -> IggyBroker:
    return IggyBroker()


def create(name: str = "bob", permissions: Permissions | None = None, status: int = 1) -> CreateUser:
    return CreateUser(name=name, password="secret", status=status, permissions=permissions)


def rights(**everywhere: bool) -> Permissions:
    return Permissions(everywhere=GlobalPermissions(**everywhere))


@every_dialect
def test_users_come_and_go(server: IggyBroker, dialect: Dialect) -> None:
    root = server.connect(dialect)
    topic = TopicPermissions(topic=4, poll_messages=True)
    permissions = Permissions(
        everywhere=GlobalPermissions(read_users=True),
        streams=[StreamPermissions(stream=3, read_stream=True, topics=[topic]), StreamPermissions(stream=5)],
    )
    made = root.ask("CREATE_USER", create(permissions=permissions))
    assert (made.user.name, made.user.status, made.permissions) == ("bob", 1, permissions)
    assert root.refusal("CREATE_USER", create()) == 46
    assert [one.name for one in root.ask("GET_USERS").users] == ["iggy", "bob"]
    root.ask("UPDATE_USER", UpdateUser(user="bob", name="rob", status=2))
    found = root.ask("GET_USER", UserRequest(user=made.user.id))
    assert (found.user.name, found.user.status, found.permissions) == ("rob", 2, permissions)
    root.ask("UPDATE_PERMISSIONS", UpdatePermissions(user="rob", permissions=None))
    assert root.ask("GET_USER", UserRequest(user="rob")).permissions is None
    root.ask("DELETE_USER", UserRequest(user="rob"))
    assert root.refusal("DELETE_USER", UserRequest(user="rob")) == 20
    if dialect >= Dialect.B3:
        assert root.ask("GET_USER", UserRequest(user="rob")) is None


@every_dialect
def test_what_users_are_refused_for(server: IggyBroker, dialect: Dialect) -> None:
    root = server.connect(dialect)
    assert root.refusal("CREATE_USER", create(name="ab")) == 43
    short = CreateUser(name="bob", password="x", status=1, permissions=None)
    assert root.refusal("CREATE_USER", short) == 44
    assert root.refusal("CREATE_USER", create(status=9)) == 45
    assert root.refusal("DELETE_USER", UserRequest(user="iggy")) == 48
    assert root.refusal("UPDATE_PERMISSIONS", UpdatePermissions(user=1, permissions=None)) == 49


@pytest.mark.parametrize("dialect", SHORT)
def test_wrong_passwords(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect, login=False)
    client.ask("PING")
    version = {Dialect.B1: ""}.get(dialect, "0.6.0")
    for name, password in (("iggy", "wrong"), ("nobody", "iggy")):
        assert client.refusal("LOGIN_USER", LoginUser(name=name, password=password, version=version)) == 42
    assert client.refusal("GET_STREAMS") == 40
    assert client.held == 0


@pytest.mark.parametrize("dialect", LONG)
def test_wrong_passwords_send_a_client_away(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect, login=False)
    client.ask("PING")
    assert client.refusal("GET_STREAMS") == 40
    with pytest.raises(AssertionError, match="sent away"):
        client.log_in("iggy", "wrong")
    frame = b"".join(client.pushed)
    assert len(frame) == 256
    assert (frame[60], frame[255]) == (13, EvictionReason.INVALID_CREDENTIALS)
    assert frame[128:144] == bytes(range(16))
    assert client.ended


@every_dialect
def test_passwords_are_changed(server: IggyBroker, dialect: Dialect) -> None:
    root = server.connect(dialect)
    change = ChangePassword(user="iggy", current="iggy", new="better")
    assert root.refusal("CHANGE_PASSWORD", ChangePassword(user="iggy", current="wrong", new="better")) == 42
    root.ask("CHANGE_PASSWORD", change)
    again = server.connect(dialect, login=False)
    again.log_in("iggy", "better")
    again.ask("GET_STREAMS")
    assert again.held == 0


@pytest.mark.parametrize("dialect", SHORT)
def test_inactive_users_stay_out(server: IggyBroker, dialect: Dialect) -> None:
    root = server.connect(dialect)
    root.ask("CREATE_USER", create(permissions=rights(manage_streams=True)))
    bob = server.connect(dialect, login=False)
    bob.log_in("bob", "secret")
    bob.ask("GET_STREAMS")
    root.ask("UPDATE_USER", UpdateUser(user="bob", name=None, status=2))
    assert bob.refusal("GET_STREAMS") == 41
    version = {Dialect.B1: ""}.get(dialect, "0.6.0")
    login = LoginUser(name="bob", password="secret", version=version)
    assert server.connect(dialect, login=False).refusal("LOGIN_USER", login) == 47


def test_nobody_does_what_is_not_theirs(server: IggyBroker) -> None:
    root = server.connect(Dialect.C3)
    root.make()
    root.make(stream="s2", topic="t2")
    root.put(b"x")
    one_topic = TopicPermissions(topic=0, poll_messages=True)
    permissions = Permissions(
        everywhere=GlobalPermissions(), streams=[StreamPermissions(stream=0, topics=[one_topic])]
    )
    root.ask("CREATE_USER", create(permissions=permissions))
    bob = server.connect(Dialect.C3, login=False)
    bob.log_in("bob", "secret")
    assert bob.values() == [b"x"]
    refused: list[tuple[str, object | None]] = [
        ("GET_STREAMS", None),
        ("GET_USERS", None),
        ("GET_STATS", None),
        ("GET_CLIENTS", None),
        ("CREATE_STREAM", CreateStream(name="s3")),
        ("DELETE_TOPIC", TopicRequest(stream=0, topic=0)),
        ("SEND_MESSAGES", bob.sending([Outgoing(b"y")])),
        ("GET_USER", UserRequest(user="iggy")),
    ]
    for name, request in refused:
        assert bob.refusal(name, request) == 41, name
    assert bob.ask("GET_USER", UserRequest(user="bob")).user.name == "bob"
    assert bob.ask("GET_ME").client.user_id == 2


@every_dialect
def test_tokens(server: IggyBroker, dialect: Dialect) -> None:
    root = server.connect(dialect)
    token = root.ask("CREATE_PERSONAL_ACCESS_TOKEN", CreateToken(name="mine", expiry_us=5_000_000)).token
    (told,) = root.ask("GET_PERSONAL_ACCESS_TOKENS").tokens
    assert (told.name, told.expiry_at_us) == ("mine", server.runtime.now_ms() * 1000 + 5_000_000)
    assert root.refusal("CREATE_PERSONAL_ACCESS_TOKEN", CreateToken(name="mine", expiry_us=0)) == 51
    assert root.refusal("CREATE_PERSONAL_ACCESS_TOKEN", CreateToken(name="x", expiry_us=0)) == 50
    client = server.connect(dialect, login=False)
    with_token(client, token)
    client.ask("GET_STREAMS")
    server.pass_ms(5000)
    assert is_refused(server.connect(dialect, login=False), token) == 54
    root.ask("DELETE_PERSONAL_ACCESS_TOKEN", TokenRequest(name="mine"))
    assert is_refused(server.connect(dialect, login=False), token) == 53
    assert root.refusal("DELETE_PERSONAL_ACCESS_TOKEN", TokenRequest(name="mine")) == 20


def with_token(client: Conversation, token: str) -> None:
    if not client.dialect.long_headers:
        client.ask("LOGIN_WITH_PERSONAL_ACCESS_TOKEN", LoginWithToken(token=token))
        return
    version = {Dialect.D0: 10, Dialect.D: 11, Dialect.D12: 12}[client.dialect] << 10
    login = RegisterWithToken(protocol_version=version, sdk_name="sdk", sdk_version="0.11.0", token=token)
    client.session_number = client.ask("LOGIN_REGISTER", login).session


def is_refused(client: Conversation, token: str) -> int:
    """The status of a refused token; dialect D only says that it is invalid."""
    if not client.dialect.long_headers:
        return client.refusal("LOGIN_WITH_PERSONAL_ACCESS_TOKEN", LoginWithToken(token=token))
    with pytest.raises(AssertionError, match="sent away"):
        with_token(client, token)
    assert b"".join(client.pushed)[255] == EvictionReason.INVALID_TOKEN
    return 54 if client.server.runtime.now_ms() and _is_known(client, token) else 53


def _is_known(client: Conversation, token: str) -> bool:
    return bool(client.server.service.shared.users.get(1).tokens)


def test_tokens_have_a_bound(server: IggyBroker) -> None:
    root = server.connect(Dialect.C3)
    for number in range(TOKENS_MAX):
        root.ask("CREATE_PERSONAL_ACCESS_TOKEN", CreateToken(name=f"token-{number}", expiry_us=0))
    assert root.refusal("CREATE_PERSONAL_ACCESS_TOKEN", CreateToken(name="another", expiry_us=0)) == 52


def test_users_outlive_a_crash(tmp_path: Path) -> None:
    server = IggyBroker(str(tmp_path / "metadata"))
    root = server.connect(Dialect.C3)
    stream = StreamPermissions(stream=3, topics=[TopicPermissions(topic=1, read_topic=True)])
    permissions = Permissions(everywhere=GlobalPermissions(read_streams=True), streams=[stream])
    root.ask("CREATE_USER", create(permissions=permissions))
    token = root.ask("CREATE_PERSONAL_ACCESS_TOKEN", CreateToken(name="mine", expiry_us=0)).token
    server.kill()
    server.start()
    bob = server.connect(Dialect.C3, login=False)
    bob.log_in("bob", "secret")
    assert bob.ask("GET_USER", UserRequest(user="bob")).permissions == permissions
    with_token(server.connect(Dialect.B3, login=False), token)


@every_dialect
def test_logging_out(server: IggyBroker, dialect: Dialect) -> None:
    client = server.connect(dialect)
    client.ask("LOGOUT_USER")
    client.session_number = 0
    assert client.refusal("GET_STREAMS") == 40
    client.log_in("iggy", "iggy")
    client.ask("GET_STREAMS")


def test_what_comes_behind_a_login_waits_for_it(server: IggyBroker) -> None:
    root = server.connect(Dialect.C3)
    root.ask("CREATE_USER", create())
    server.runtime.hold("passwords")
    client = server.connect(Dialect.C3, login=False)
    login = LoginUser(name="bob", password="secret", version="0.9.0")
    pending = client.give(client.frame(BY_NAME["LOGIN_USER"], login))
    assert pending is not None
    assert client.held == 1
    server.runtime.release("passwords")
    server.wait(pending)
    assert client.held == 0
