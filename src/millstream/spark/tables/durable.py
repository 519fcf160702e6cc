"""Steps on files that are done wholly or not at all, and stay done when the power fails."""

import contextlib
import os
import uuid
from collections.abc import Callable
from typing import Final

__all__ = [
    "create_whole",
    "forget",
    "is_temporary",
    "make_whole",
    "move",
    "read_whole",
    "sync_directory",
    "sync_file",
]

_TEMPORARY: Final = ".tmp-"
"""What the name of a file begins with that is not whole yet; no reader looks at names with a dot in front."""


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that `create_whole` has not finished."""
    return name.startswith(_TEMPORARY)


def create_whole(path: str, content: bytes, *, replaces: bool = False) -> bool:
    """Create a file with all of its content at once, durably.

    Args:
        path: where; its directory is made if need be.
        content: all of it.
        replaces: whether a file that is there is replaced. If not, the first of several writers wins.

    Returns:
        False if there was such a file and it is not to be replaced; nothing was done then.

    Raises:
        OSError: the disk is full, or the file system refuses.
    """

    def write(temporary: str) -> None:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    return make_whole(path, write, replaces=replaces)


def make_whole(path: str, make: Callable[[str], None], *, replaces: bool = False) -> bool:
    """The same for a file that somebody else writes.

    Args:
        path: where.
        make: is given the path of a file that is not there, and makes it.
        replaces: as for `create_whole`.
    """
    directory = os.path.dirname(path)
    os.makedirs(directory, exist_ok=True)
    temporary = os.path.join(directory, f"{_TEMPORARY}{uuid.uuid4().hex}")
    try:
        make(temporary)
        if replaces:
            os.replace(temporary, path)
        else:
            # A link fails where the name is taken; a rename would replace what another writer has put there.
            os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        forget(temporary)
    sync_directory(directory)
    return True


def read_whole(path: str) -> bytes | None:
    """The content of a file; None if there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def move(source: str, target: str) -> None:
    """Give a file another place in the same file system; call `sync_directory` when all of a group are moved."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.rename(source, target)


def forget(path: str) -> bool:
    """Remove a file that may be gone already. Returns whether it was there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def sync_file(path: str) -> None:
    """Have the content of a file on the disk before going on."""
    _sync(path)


def sync_directory(path: str) -> None:
    """Have the names in a directory on the disk before going on."""
    # Some network file systems do not know how to flush a directory; they keep names without being asked.
    with contextlib.suppress(PermissionError, IsADirectoryError):
        _sync(path)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
