"""Messages of every command and dialect with values drawn at random, to hold encoder and decoder to each other."""

import dataclasses
from random import Random
from typing import Any

from millstream.wire.iggy import kinds
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.headers import HEADERS, HeaderKind, UserHeader
from millstream.wire.iggy.layout import Kind, fields_of
from millstream.wire.iggy.messages import groups, register, users

__all__ = ["plain", "sample"]

_NUMBERS = {id(kinds.U8): 2**8, id(kinds.U16): 2**16, id(kinds.U32): 2**32, id(kinds.U64): 2**64}


def sample(cls: type, dialect: Dialect, rng: Random) -> Any:
    """A message whose fields have values if the dialect has them, and their defaults otherwise."""
    present = dict(fields_of(cls, dialect))
    return cls(**{name: value(kind, dialect, rng) for name, kind in present.items()})


def text(rng: Random, least: int = 1) -> str:
    return "".join(rng.choice("abcé-_. ") for _ in range(rng.randint(least, 20)))


def header(rng: Random, dialect: Dialect) -> UserHeader:
    key = UserHeader(text(rng).encode(), rng.randbytes(rng.randint(1, 30)), rng.randint(1, 15))
    if dialect >= Dialect.C3:
        return key._replace(key_kind=rng.choice(list(HeaderKind)).value)
    return key


def value(kind: Kind[Any], dialect: Dialect, rng: Random) -> Any:
    """A value of a kind."""
    if id(kind) in _NUMBERS:
        return rng.randrange(_NUMBERS[id(kind)])
    if kind is kinds.F32:
        return float(rng.randrange(1000))
    if kind is kinds.BOOL:
        return rng.random() < 0.5
    if kind is kinds.TEXT8 or kind is kinds.TEXT32:
        return text(rng)
    if kind is kinds.BYTES8 or kind is kinds.BYTES32:
        return rng.randbytes(9)
    if kind is kinds.REST:
        return memoryview(rng.randbytes(rng.randrange(40)))
    if kind is kinds.ID:
        return rng.randrange(2**32 - 1)
    if kind is kinds.OPTIONAL_ID or kind is kinds.OPTIONAL_PARTITION:
        return None if rng.random() < 0.5 and dialect.has_login else rng.randrange(1000)
    if kind is kinds.IDENT or kind is kinds.PLAIN_IDENT:
        return rng.randrange(1000) if rng.random() < 0.5 else text(rng)
    if kind is groups.GROUP_IDENT:
        return rng.randrange(1000) if rng.random() < 0.5 or dialect is Dialect.A else text(rng)
    if kind is kinds.CONSUMER:
        by_number = dialect is Dialect.A or rng.random() < 0.5
        return kinds.Consumer(rng.random() < 0.5, rng.randrange(1000) if by_number else text(rng))
    if kind is kinds.PARTITIONING:
        choices = [kinds.Partitioning(), kinds.Partitioning(rng.randrange(9)), kinds.Partitioning(key=b"key")]
        return rng.choice(choices)
    if kind is HEADERS:
        return [header(rng, dialect) for _ in range(rng.randrange(3))]
    return compound(kind, dialect, rng)


def compound(kind: Any, dialect: Dialect, rng: Random) -> Any:
    """A value of a kind that is made of others."""
    if isinstance(kind, kinds.Struct):
        return sample(kind._cls, dialect, rng)
    if isinstance(kind, kinds.Sized):
        return value(kind._element, dialect, rng)
    if isinstance(kind, kinds.Flagged):
        return value(kind._element, dialect, rng) if rng.random() < 0.5 else None
    if isinstance(kind, users._PermissionsOfUser):
        return sample(users.Permissions, dialect, rng) if rng.random() < 0.5 else None
    if isinstance(kind, register._Opaque):
        return rng.randbytes(32)
    assert isinstance(kind, kinds.Counted | kinds.ToEnd | users._Chained), kind
    return [value(kind._element, dialect, rng) for _ in range(rng.randrange(4))]


def plain(message: Any) -> Any:
    """A message as plain values, so that views compare by their content."""
    if dataclasses.is_dataclass(message) and not isinstance(message, type):
        return {f.name: plain(getattr(message, f.name)) for f in dataclasses.fields(message)}
    if isinstance(message, list):
        return [plain(one) for one in message]
    return bytes(message) if isinstance(message, memoryview) else message
