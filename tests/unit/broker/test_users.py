"""Users, their passwords and their tokens."""

import pytest

from millstream.broker.permissions import Permissions
from millstream.broker.users import (
    ROOT_ID,
    CannotChangeRoot,
    InvalidToken,
    TokenExists,
    TokenExpired,
    UnknownUser,
    UserExists,
    UserInactive,
    Users,
    WrongPassword,
)
from tests.unit.broker.simulated_broker import SimulatedBroker


@pytest.fixture
def server() -> SimulatedBroker:
    return SimulatedBroker()


@pytest.fixture
def users(server: SimulatedBroker) -> Users:
    return made(server)


def made(server: SimulatedBroker) -> Users:
    return Users(server.runtime, server.broker.documents, root_name="root", root_password="first")


def create(server: SimulatedBroker, users: Users, name: str = "bob", *, active: bool = True) -> int:
    pending = users.create(name, "secret", active=active, permissions=None, attributes={})
    return server.wait(pending).id


def test_there_is_always_a_root_user(server: SimulatedBroker, users: Users) -> None:
    root = server.wait(users.log_in("root", "first"))
    assert (root.id, root.permissions) == (ROOT_ID, Permissions.all())
    with pytest.raises(CannotChangeRoot):
        users.delete(root)
    with pytest.raises(CannotChangeRoot):
        users.set_permissions(root, None)
    with pytest.raises(CannotChangeRoot):
        users.change(root, active=False)


def test_passwords(server: SimulatedBroker, users: Users) -> None:
    number = create(server, users)
    assert server.wait(users.log_in("bob", "secret")).id == number
    for name, password in (("bob", "wrong"), ("nobody", "secret"), ("root", "wrong")):
        with pytest.raises(WrongPassword):
            server.wait(users.log_in(name, password))
    with pytest.raises(WrongPassword):
        server.wait(users.change_password(users.get("bob"), "wrong", "other"))
    server.wait(users.change_password(users.get("bob"), "secret", "other"))
    server.wait(users.log_in("bob", "other"))
    assert "other" not in users.get("bob").password


def test_the_root_password_is_changed(server: SimulatedBroker, users: Users) -> None:
    server.wait(users.change_password(users.get(ROOT_ID), "first", "second"))
    again = made(server)
    server.wait(again.log_in("root", "second"))
    with pytest.raises(WrongPassword):
        server.wait(again.log_in("root", "first"))


def test_names_are_unique(server: SimulatedBroker, users: Users) -> None:
    create(server, users)
    with pytest.raises(UserExists):
        create(server, users)
    create(server, users, "eve")
    with pytest.raises(UserExists):
        users.change(users.get("eve"), name="bob")
    server.wait(users.change(users.get("eve"), name="eve", active=False))
    with pytest.raises(UserInactive):
        server.wait(users.log_in("eve", "secret"))


def test_numbers_are_not_used_again(server: SimulatedBroker, users: Users) -> None:
    first = create(server, users)
    server.wait(users.delete(users.get("bob")))
    with pytest.raises(UnknownUser):
        users.get("bob")
    assert create(server, made(server)) == first + 1


def test_tokens(server: SimulatedBroker, users: Users) -> None:
    create(server, users)
    expires_us = (server.runtime.now_ms() + 1000) * 1000
    raw = server.wait(users.create_token(users.get("bob"), "mine", expires_us))
    assert len(raw) == 50
    with pytest.raises(TokenExists):
        users.create_token(users.get("bob"), "mine", 0)
    for known in (users, made(server)):
        assert known.log_in_with_token(raw).name == "bob"
    assert raw not in str(server.broker.documents.of_kind("user"))
    server.pass_ms(1000)
    with pytest.raises(TokenExpired):
        users.log_in_with_token(raw)
    server.wait(users.delete_token(users.get("bob"), "mine"))
    with pytest.raises(InvalidToken):
        users.log_in_with_token(raw)
    with pytest.raises(InvalidToken):
        users.delete_token(users.get("bob"), "mine")


def test_tokens_go_with_their_user(server: SimulatedBroker, users: Users) -> None:
    create(server, users)
    raw = server.wait(users.create_token(users.get("bob"), "mine", 0))
    server.wait(users.change(users.get("bob"), active=False))
    with pytest.raises(UserInactive):
        users.log_in_with_token(raw)
    server.wait(users.delete(users.get("bob")))
    with pytest.raises(InvalidToken):
        users.log_in_with_token(raw)
