"""Checks of names, and options as they are kept."""

from collections.abc import Iterable, Sequence
from typing import Any

from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.headers import UserHeader
from millstream.wire.iggy.limits import NAME_BYTES_MAX

__all__ = ["check_name", "stored_options", "told_options"]


def check_name(name: str, code: ErrorCode) -> None:
    """Check the length of a name. Raises Refused with a code."""
    if not 1 <= len(name.encode()) <= NAME_BYTES_MAX or not name.strip():
        raise Refused(code, f"a name of {len(name.encode())} bytes")


def stored_options(options: Iterable[UserHeader]) -> list[list[Any]]:
    """Options as JSON has them: key, kind, value in hexadecimal."""
    return [[str(one.key, "utf-8", "replace"), one.kind, one.value.hex()] for one in options]


def told_options(stored: Sequence[Sequence[Any]]) -> list[UserHeader]:
    """Options as they were given."""
    return [UserHeader(key.encode(), bytes.fromhex(value), kind) for key, kind, value in stored]
