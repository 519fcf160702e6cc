"""Users: their names, passwords, permissions and access tokens.

There is always a root user, whose name and password are the server's defaults until they are changed. Passwords are
kept as scrypt hashes, which take some 50 ms to make, off the loop; tokens, which nobody can guess, as SHA-256.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from millstream.broker.documents import Documents
from millstream.broker.errors import BrokerError
from millstream.broker.permissions import Permissions
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Runtime

__all__ = [
    "ROOT_ID",
    "TOKENS_MAX",
    "CannotChangeRoot",
    "InvalidToken",
    "Token",
    "TokenExists",
    "TokenExpired",
    "TooManyTokens",
    "UnknownUser",
    "User",
    "UserExists",
    "UserInactive",
    "Users",
    "WrongPassword",
]

_USER: Final = "user"
PASSWORDS_LANE: Final = "passwords"
ROOT_ID: Final = 1
TOKENS_MAX: Final = 100
"""Tokens that one user may have, as Iggy's own server has it by default."""
_TOKEN_BYTES: Final = 37
"""Bytes of chance in a token, which are 50 characters."""
_SALT_BYTES: Final = 16
_SCRYPT: Final = {"n": 2**14, "r": 8, "p": 1}
"""The costs that the function's RFC (7914) gives for logins: 16 MiB and some 50 ms."""


class UserError(BrokerError):
    """Base of what is wrong with users."""


class UnknownUser(UserError):
    """There is no such user."""


class UserExists(UserError):
    """There is a user of this name already."""


class UserInactive(UserError):
    """The user may not log in."""


class WrongPassword(UserError):
    """The name or the password is wrong; which of the two is not told."""


class CannotChangeRoot(UserError):
    """The root user cannot be deleted, and its permissions cannot be changed."""


class InvalidToken(UserError):
    """There is no such token."""


class TokenExpired(UserError):
    """The token's time is over."""


class TokenExists(UserError):
    """The user has a token of this name already."""


class TooManyTokens(UserError):
    """The user has as many tokens as it may have."""


@dataclass(frozen=True, slots=True)
class Token:
    """An access token: its name, its SHA-256, and when it expires, in microseconds since 1970; 0 for never."""

    name: str
    digest: str
    expires_us: int


@dataclass(frozen=True, slots=True)
class User:
    """A user.

    Args:
        id: a number, never used again.
        name: its name.
        password: the hash of its password; empty for the root user's default.
        created_ms: when it was made.
        active: whether it may log in.
        permissions: None for none.
        tokens: by name.
        attributes: what a protocol keeps with it.
    """

    id: int
    name: str
    password: str
    created_ms: int
    active: bool = True
    permissions: Permissions | None = None
    tokens: dict[str, Token] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """What is stored of it."""
        return {
            "name": self.name,
            "password": self.password,
            "created_ms": self.created_ms,
            "active": self.active,
            "permissions": None if self.permissions is None else self.permissions.document(),
            "tokens": {one.name: [one.digest, one.expires_us] for one in self.tokens.values()},
            "attributes": self.attributes,
        }


class Users:
    """All users.

    Args:
        runtime: time, chance, and the lane for passwords.
        documents: where they last.
        root_name, root_password: of the root user, as long as nobody has changed them.
    """

    def __init__(self, runtime: Runtime, documents: Documents, *, root_name: str, root_password: str) -> None:
        self._runtime = runtime
        self._documents = documents
        self._root_password = root_password
        self._users: dict[int, User] = {ROOT_ID: User(ROOT_ID, root_name, "", 0, True, Permissions.all())}
        for key, document in documents.of_kind(_USER).items():
            self._users[int(key)] = _of_document(int(key), document)
        self._by_token = {one.digest: user.id for user in self for one in user.tokens.values()}
        counter = documents.find("counter", _USER) or {}
        self._last_id: int = max(counter.get("last", 0), *self._users)

    def __iter__(self) -> Iterator[User]:
        return iter([self._users[number] for number in sorted(self._users)])

    def find(self, key: int | str) -> User | None:
        """A user by number or name."""
        if isinstance(key, int):
            return self._users.get(key)
        return next((user for user in self._users.values() if user.name == key), None)

    def get(self, key: int | str) -> User:
        """A user by number or name. Raises UnknownUser."""
        user = self.find(key)
        if user is None:
            raise UnknownUser(f"there is no user {key}")
        return user

    # Logging in

    def log_in(self, name: str, password: str) -> Pending[User]:
        """Check a name and a password; fails with WrongPassword, UserInactive."""
        user = self.find(name)
        stored = user.password if user is not None else _NOBODY
        return self._matches(stored, password).then(lambda matches: self._admitted(user, matches))

    def _admitted(self, user: User | None, matches: bool) -> User:
        # Whether there is such a user is not to be learnt, not even from the time that the answer takes.
        if user is None or not matches or self._users.get(user.id) is None:
            raise WrongPassword("the name or the password is wrong")
        if not user.active:
            raise UserInactive(f"the user {user.name} is inactive")
        return user

    def _matches(self, stored: str, password: str) -> Pending[bool]:
        if not stored:
            return settled(hmac.compare_digest(password.encode(), self._root_password.encode()))
        return self._runtime.run_blocking(PASSWORDS_LANE, lambda: _verify(stored, password))

    def log_in_with_token(self, token: str) -> User:
        """Check a token. Raises InvalidToken, TokenExpired, UserInactive."""
        digest = _digest(token)
        user = self._users.get(self._by_token.get(digest, 0))
        if user is None:
            raise InvalidToken("there is no such token")
        found = next(one for one in user.tokens.values() if one.digest == digest)
        if found.expires_us and found.expires_us <= self._runtime.now_ms() * 1000:
            raise TokenExpired(f"the token {found.name} has expired")
        if not user.active:
            raise UserInactive(f"the user {user.name} is inactive")
        return user

    # Making and changing

    def create(
        self, name: str, password: str, *, active: bool, permissions: Permissions | None, attributes: dict[str, Any]
    ) -> Pending[User]:
        """Make a user; resolves once it lasts. Raises UserExists."""
        self._check_name(name)
        self._last_id += 1
        number = self._last_id

        def put(hashed: str) -> Pending[User]:
            self._check_name(name)
            user = User(number, name, hashed, self._runtime.now_ms(), active, permissions, attributes=attributes)
            self._documents.put("counter", _USER, {"last": number})
            return self._put(user).then(lambda _: user)

        return self._hash(password).chain(put)

    def _check_name(self, name: str, but: int = 0) -> None:
        found = self.find(name)
        if found is not None and found.id != but:
            raise UserExists(f"there is a user {name} already")

    def change(self, user: User, *, name: str | None = None, active: bool | None = None) -> Pending[None]:
        """Change a name or whether it may log in. Raises UserExists, CannotChangeRoot."""
        if name is not None:
            self._check_name(name, user.id)
        if user.id == ROOT_ID and active is False:
            raise CannotChangeRoot("the root user cannot be made inactive")
        return self._put(replace(user, name=name or user.name, active=user.active if active is None else active))

    def set_permissions(self, user: User, permissions: Permissions | None) -> Pending[None]:
        """Replace what a user may do. Raises CannotChangeRoot."""
        if user.id == ROOT_ID:
            raise CannotChangeRoot("the permissions of the root user cannot be changed")
        return self._put(replace(user, permissions=permissions))

    def change_password(self, user: User, current: str, new: str) -> Pending[None]:
        """Change a password; fails with WrongPassword if the current one is another."""

        def check(matches: bool) -> Pending[str]:
            if not matches:
                raise WrongPassword("the current password is wrong")
            return self._hash(new)

        def put(hashed: str) -> Pending[None]:
            return self._put(replace(self.get(user.id), password=hashed))

        return self._matches(user.password, current).chain(check).chain(put)

    def delete(self, user: User) -> Pending[None]:
        """Delete a user and its tokens. Raises CannotChangeRoot."""
        if user.id == ROOT_ID:
            raise CannotChangeRoot("the root user cannot be deleted")
        del self._users[user.id]
        for token in user.tokens.values():
            self._by_token.pop(token.digest, None)
        return self._documents.delete(_USER, str(user.id))

    # Tokens

    def create_token(self, user: User, name: str, expires_us: int) -> Pending[str]:
        """Make a token; resolves with it, which is told this once, when it lasts.

        Args:
            expires_us: when it expires, microseconds since 1970; 0 for never.

        Raises:
            TokenExists, TooManyTokens.
        """
        if name in user.tokens:
            raise TokenExists(f"there is a token {name} already")
        if len(user.tokens) >= TOKENS_MAX:
            raise TooManyTokens(f"a user may have {TOKENS_MAX} tokens")
        raw = base64.urlsafe_b64encode(self._runtime.random_bytes(_TOKEN_BYTES)).decode().rstrip("=")
        token = Token(name, _digest(raw), expires_us)
        self._by_token[token.digest] = user.id
        return self._put(replace(user, tokens={**user.tokens, name: token})).then(lambda _: raw)

    def delete_token(self, user: User, name: str) -> Pending[None]:
        """Delete a token. Raises InvalidToken."""
        token = user.tokens.get(name)
        if token is None:
            raise InvalidToken(f"there is no token {name}")
        self._by_token.pop(token.digest, None)
        return self._put(replace(user, tokens={key: one for key, one in user.tokens.items() if key != name}))

    def _put(self, user: User) -> Pending[None]:
        self._users[user.id] = user
        return self._documents.put(_USER, str(user.id), user.document())

    def _hash(self, password: str) -> Pending[str]:
        salt = self._runtime.random_bytes(_SALT_BYTES)
        return self._runtime.run_blocking(PASSWORDS_LANE, lambda: _hash(salt, password))


def _of_document(number: int, document: Any) -> User:
    permissions = document["permissions"]
    if number == ROOT_ID:
        rights: Permissions | None = Permissions.all()
    else:
        rights = None if permissions is None else Permissions.of_document(permissions)
    return User(
        number,
        document["name"],
        document["password"],
        document["created_ms"],
        document["active"],
        rights,
        {name: Token(name, digest, expires_us) for name, (digest, expires_us) in document["tokens"].items()},
        dict(document["attributes"]),
    )


def _hash(salt: bytes, password: str) -> str:
    return f"{salt.hex()}:{hashlib.scrypt(password.encode(), salt=salt, **_SCRYPT).hex()}"


def _verify(stored: str, password: str) -> bool:
    salt, _, _ = stored.partition(":")
    return hmac.compare_digest(_hash(bytes.fromhex(salt), password), stored)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


_NOBODY: Final = f"{bytes(_SALT_BYTES).hex()}:"
"""What no password matches, after the time that any other takes."""
