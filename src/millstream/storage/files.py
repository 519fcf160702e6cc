"""The only door to the operating system's files. Paths are strings with "/" between their parts."""

import errno
import fcntl
import os
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, Protocol

from millstream.storage.errors import DiskFull

__all__ = ["File", "Files", "Lock", "OsFiles"]

Buffer = bytes | bytearray | memoryview

_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_BUFFERS_MAX: Final = 1024
"""Buffers that Linux takes in one call, IOV_MAX; with more it refuses the call."""
_READ_HANDLES_MAX: Final = 256
"""Descriptors kept open for sealed segments: enough for what is read at one time, far below any limit."""


class File(Protocol):
    """A file open for reading and writing at given positions."""

    def read(self, position: int, size: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end of the file. Raises OSError."""

    def write(self, position: int, buffers: Sequence[Buffer]) -> None:
        """Write all of the buffers, one after the other.

        Raises:
            DiskFull: there is no room. The file may hold a part.
            OSError: any other failure.
        """

    def sync(self) -> None:
        """Return when all that was written is on the disk. May be called from any thread. Raises OSError."""

    def truncate(self, size: int) -> None:
        """Cut the file to a size. Raises OSError."""

    def size(self) -> int:
        """Bytes in the file."""

    def close(self) -> None:
        """Give the descriptor back."""


class Lock(Protocol):
    """A lock that ends with the process at the latest."""

    def release(self) -> None:
        """Let the next one in."""


class Files(Protocol):
    """All that storage asks of an operating system."""

    def open(self, path: str) -> File:
        """Open a file for reading and writing, created if need be. Raises OSError, DiskFull."""

    def read_at(self, path: str, position: int, size: int) -> bytes:
        """Read a piece of a file that is no longer written. Raises OSError."""

    def drop_cache(self, path: str) -> None:
        """Let the next read of a file come from the disk, as far as it holds what was written."""

    def forget(self, path: str) -> None:
        """Close what `read_at` may keep open for a path."""

    def read_whole(self, path: str) -> bytes | None:
        """All of a file; None if there is none."""

    def replace_whole(self, path: str, content: bytes) -> None:
        """Write a file so that after a crash it holds either the old or the new content. Raises OSError, DiskFull."""

    def rename(self, path: str, target: str) -> None:
        """Give a file another name, in the same directory; what had that name before is gone. The content was synced;
        the name lasts once the directory is. Raises OSError."""

    def size(self, path: str) -> int:
        """Bytes in a file, 0 if there is none."""

    def space(self, path: str) -> tuple[int, int]:
        """Bytes of the file system that holds a path: all, and those still free. Raises OSError."""

    def list_directory(self, path: str) -> list[str]:
        """Names in a directory, sorted; none if it does not exist."""

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents, lasting."""

    def sync_directory(self, path: str) -> None:
        """Return when the names in a directory are on the disk. Raises OSError."""

    def names_lost(self, path: str) -> OSError | None:
        """Why names in a directory may not be on the disk, whatever `sync_directory` says now: it has failed before.

        What the system could not write it may have dropped, and it tells only one of those who ask.
        """

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory and the files in it and below, if it exists."""

    def lock(self, path: str) -> Lock | None:
        """Lock a file, created if need be; None if another process or opener holds it."""


class OsFile:
    """A `File` on a descriptor."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def read(self, position: int, size: int) -> bytes:
        return _read(self._fd, position, size)

    def write(self, position: int, buffers: Sequence[Buffer]) -> None:
        total = sum(map(len, buffers))
        if len(buffers) > _BUFFERS_MAX:
            buffers = [b"".join(buffers)]
        try:
            written = os.pwritev(self._fd, buffers, position)
            if written == total:
                return
            # A short write: go on where it stopped, which tells why if there is a reason.
            whole = memoryview(b"".join(buffers))
            while written < total:
                written += os.pwrite(self._fd, whole[written:], position + written)
        except OSError as error:
            raise _room(error) from None

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)


class _OsLock:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        os.close(self._fd)


class OsFiles:
    """`Files` on the real operating system.

    `read_at` and `forget` belong to the loop's thread; all others may be called from any.
    """

    def __init__(self) -> None:
        self._handles: OrderedDict[str, int] = OrderedDict()
        self._names_lost: dict[str, OSError] = {}

    def open(self, path: str) -> File:
        try:
            return OsFile(path)
        except OSError as error:
            raise _room(error) from None

    def read_at(self, path: str, position: int, size: int) -> bytes:
        fd = self._handles.get(path)
        if fd is None:
            fd = self._handles[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            if len(self._handles) > _READ_HANDLES_MAX:
                os.close(self._handles.popitem(last=False)[1])
        else:
            self._handles.move_to_end(path)
        return _read(fd, position, size)

    def drop_cache(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)

    def forget(self, path: str) -> None:
        fd = self._handles.pop(path, None)
        if fd is not None:
            os.close(fd)

    def read_whole(self, path: str) -> bytes | None:
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def replace_whole(self, path: str, content: bytes) -> None:
        draft = path + ".new"
        file = self.open(draft)
        try:
            file.truncate(0)
            file.write(0, [content])
            file.sync()
        finally:
            file.close()
        os.replace(draft, path)
        self.sync_directory(path.rpartition("/")[0])

    def rename(self, path: str, target: str) -> None:
        os.replace(path, target)

    def size(self, path: str) -> int:
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return 0

    def space(self, path: str) -> tuple[int, int]:
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def list_directory(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def make_directory(self, path: str) -> None:
        missing = []
        while path and not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for directory in reversed(missing):
            try:
                os.mkdir(directory)
            except OSError as error:
                raise _room(error) from None
            self.sync_directory(os.path.dirname(directory) or ".")

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            self._names_lost.setdefault(path, error)
            raise
        finally:
            os.close(fd)

    def names_lost(self, path: str) -> OSError | None:
        return self._names_lost.get(path)

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def remove_tree(self, path: str) -> None:
        self._names_lost.pop(path, None)
        for name in self.list_directory(path):
            entry = f"{path}/{name}"
            if os.path.isdir(entry) and not os.path.islink(entry):
                self.remove_tree(entry)
            else:
                self.remove(entry)
        if os.path.isdir(path):
            os.rmdir(path)

    def lock(self, path: str) -> Lock | None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return _OsLock(fd)


def _read(fd: int, position: int, size: int) -> bytes:
    data = os.pread(fd, size, position)
    if len(data) == size or not data:
        return data
    # One call moves at most 2 GiB and may be cut short by a signal.
    parts = [data]
    position += len(data)
    size -= len(data)
    while size and (data := os.pread(fd, size, position)):
        parts.append(data)
        position += len(data)
        size -= len(data)
    return b"".join(parts)


def _room(error: OSError) -> Exception:
    if error.errno in _NO_ROOM:
        return DiskFull(f"no room on the disk: {error.strerror}")
    return error
