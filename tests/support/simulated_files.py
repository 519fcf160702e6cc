"""`storage.files.Files` in memory, on a disk that forgets and fails on request.

What is written is seen by every reader at once, as through a page cache, but it is lasting only when it was synced:
the content of a file by `File.sync`, the names in a directory by `sync_directory`. `crash(seed)` is a power loss:
of everything that was not synced, any part may be there and any part may not, sector by sector and name by name,
in no order. `kill()` is the death of the process alone: the page cache stays as it is, and may be lost later.

The fault model of a sync that fails is Linux's: the pages count as clean from then on, a second sync succeeds, and
what they held is gone with the next power loss.
"""

import copy
import errno
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal

from millstream.storage.errors import DiskFull
from millstream.storage.files import Buffer, File, Lock

__all__ = ["SECTOR_BYTES", "Fault", "Operation", "SimulatedFiles"]

SECTOR_BYTES: Final = 512
"""What a disk writes whole or not at all."""

Operation = Literal["open", "read", "write", "sync", "truncate", "replace", "remove", "sync_directory"]


@dataclass(slots=True)
class Fault:
    """An error that one call, or every call from one on, will meet.

    Args:
        operation: which kind of call.
        at: the n-th such call from now on, 1 for the next.
        code: what errno it fails with. A write or an open without room becomes DiskFull, as on a real disk.
        kept_bytes: how much of a write reaches the file before it fails.
        path_ending: only calls on paths with this ending count.
        lasting: whether the calls after it fail as well.
    """

    operation: Operation
    at: int = 1
    code: int = errno.EIO
    kept_bytes: int = 0
    path_ending: str = ""
    lasting: bool = False


@dataclass(slots=True)
class _Write:
    position: int
    data: bytes


@dataclass(slots=True)
class _Truncation:
    size: int


@dataclass(slots=True)
class _Inode:
    content: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    unsynced: list[_Write | _Truncation] = field(default_factory=list)


_Names = dict[str, _Inode]


@dataclass(slots=True)
class _Directory:
    names: _Names = field(default_factory=dict)
    durable: _Names = field(default_factory=dict)
    unsynced: list[dict[str, _Inode | None]] = field(default_factory=list)
    lost: OSError | None = None

    def change(self, names: dict[str, _Inode | None]) -> None:
        """Set and remove (None) names, all in one."""
        _rename(self.names, names)
        self.unsynced.append(names)


class SimulatedFiles:
    """A disk in memory.

    Args:
        room_bytes: what fits on it, in bytes of file content; None for no limit. May be changed at any time.
    """

    def __init__(self, room_bytes: int | None = None) -> None:
        self.room_bytes = room_bytes
        self.calls: Counter[Operation] = Counter()
        self._directories: dict[str, _Directory] = {"": _Directory(), ".": _Directory()}
        self._faults: list[Fault] = []
        self._locked: set[str] = set()
        self._life = 0

    # What a test does to the disk.

    def inject(self, fault: Fault) -> None:
        """Let a call fail that is yet to come."""
        self._faults.append(fault)

    def heal(self) -> None:
        """Take back all faults."""
        self._faults.clear()

    def copy(self) -> "SimulatedFiles":
        """The same disk once more, to do something else to it. Files open on this one are not open on the copy."""
        twin = copy.deepcopy(self)
        twin.kill()
        return twin

    def kill(self) -> None:
        """The process dies: open files and locks are gone, what was written stays as it is."""
        self._life += 1
        self._locked.clear()
        for directory in self._directories.values():
            directory.lost = None

    def crash(self, seed: int) -> None:
        """The power fails: see the module's text for what may be lost."""
        self.kill()
        random = Random(seed)
        inodes: dict[int, _Inode] = {}
        for directory in self._directories.values():
            kept_share = random.choice((0.0, 0.5, 1.0))
            for change in directory.unsynced:
                if random.random() < kept_share:
                    _rename(directory.durable, change)
            directory.names, directory.unsynced = dict(directory.durable), []
            inodes.update((id(inode), inode) for inode in directory.names.values())
        for inode in inodes.values():
            _lose(inode, random)

    def keep_all(self) -> None:
        """Everything written so far becomes lasting, as after some time without a crash."""
        for directory in self._directories.values():
            directory.durable, directory.unsynced = dict(directory.names), []
            for inode in directory.names.values():
                inode.durable, inode.unsynced = bytearray(inode.content), []

    def content(self, path: str) -> bytes:
        """What a file holds. Raises FileNotFoundError."""
        return bytes(self._inode(path).content)

    def put(self, path: str, content: bytes) -> None:
        """Give a file a content, lasting; files open on it see it."""
        inode = self._create(path)
        inode.content, inode.durable, inode.unsynced = bytearray(content), bytearray(content), []
        directory, name = self._place(path)
        directory.durable[name] = inode

    def flip_bit(self, path: str, bit: int) -> None:
        """Turn one bit of a file over; bit 0 is the lowest of the first byte."""
        inode = self._inode(path)
        for content in (inode.content, inode.durable):
            if bit // 8 < len(content):
                content[bit // 8] ^= 1 << bit % 8

    def used_bytes(self) -> int:
        """Bytes of content in all files."""
        return sum(len(i.content) for d in self._directories.values() for i in d.names.values())

    # What storage asks for.

    def open(self, path: str) -> File:
        self._meet("open", path)
        return _SimulatedFile(self, path, self._create(path), self._life)

    def read_at(self, path: str, position: int, size: int) -> bytes:
        self._meet("read", path)
        return bytes(self._inode(path).content[position : position + size])

    def forget(self, path: str) -> None:
        return

    def read_whole(self, path: str) -> bytes | None:
        directory, name = self._place(path)
        if name not in directory.names:
            return None
        return self.content(path)

    def replace_whole(self, path: str, content: bytes) -> None:
        draft = path + ".new"
        file = self.open(draft)
        file.truncate(0)
        file.write(0, [content])
        file.sync()
        file.close()
        self._meet("replace", path)
        directory, name = self._place(path)
        directory.change({name: directory.names[name + ".new"], name + ".new": None})
        self.sync_directory(path.rpartition("/")[0])

    def rename(self, path: str, target: str) -> None:
        self._meet("replace", target)
        directory, name = self._place(path)
        inode = self._inode(path)
        directory.change({self._place(target)[1]: inode, name: None})

    def drop_cache(self, path: str) -> None:
        inode = self._inode(path)
        shown = inode.content
        inode.content = bytearray(inode.durable)
        for change in inode.unsynced:  # pages that are not clean stay as they are
            if isinstance(change, _Write):
                stop = change.position + len(change.data)
                change = _Write(change.position, bytes(shown[change.position : stop]))
            _apply(inode.content, change)
        inode.content.extend(bytes(max(len(shown) - len(inode.content), 0)))

    def size(self, path: str) -> int:
        directory, name = self._place(path)
        return len(directory.names[name].content) if name in directory.names else 0

    def space(self, path: str) -> tuple[int, int]:
        total = 2**40 if self.room_bytes is None else self.room_bytes
        return total, max(total - self.used_bytes(), 0)

    def list_directory(self, path: str) -> list[str]:
        if path not in self._directories:
            return []
        below = {d[len(path) + 1 :].split("/")[0] for d in self._directories if d.startswith(path + "/")}
        return sorted(below | set(self._directories[path].names))

    def make_directory(self, path: str) -> None:
        while path not in self._directories:
            self._directories[path] = _Directory()
            path = path.rpartition("/")[0]

    def sync_directory(self, path: str) -> None:
        directory = self._directories[path]
        try:
            self._meet("sync_directory", path)
        except OSError as error:
            directory.unsynced = []
            directory.lost = directory.lost or error
            raise
        for change in directory.unsynced:
            _rename(directory.durable, change)
        directory.unsynced = []

    def names_lost(self, path: str) -> OSError | None:
        return self._directories[path].lost

    def remove(self, path: str) -> None:
        self._meet("remove", path)
        directory, name = self._place(path)
        if name in directory.names:
            directory.change({name: None})

    def remove_tree(self, path: str) -> None:
        for directory in [d for d in self._directories if d == path or d.startswith(path + "/")]:
            del self._directories[directory]

    def lock(self, path: str) -> Lock | None:
        self._create(path)
        if path in self._locked:
            return None
        self._locked.add(path)
        return _SimulatedLock(self._locked, path)

    # Inside.

    def _place(self, path: str) -> tuple[_Directory, str]:
        directory, _, name = path.rpartition("/")
        if directory not in self._directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._directories[directory], name

    def _inode(self, path: str) -> _Inode:
        directory, name = self._place(path)
        if name not in directory.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return directory.names[name]

    def _create(self, path: str) -> _Inode:
        directory, name = self._place(path)
        if name not in directory.names:
            directory.change({name: _Inode()})
        return directory.names[name]

    def _meet(self, operation: Operation, path: str) -> None:
        """Count a call, and raise what was injected for it."""
        fault = self._fault(operation, path)
        if fault is not None:
            raise _error(operation, fault.code, path)

    def _fault(self, operation: Operation, path: str) -> Fault | None:
        self.calls[operation] += 1
        for fault in self._faults:
            if fault.operation == operation and path.endswith(fault.path_ending):
                fault.at -= 1
                if fault.at == 0 or (fault.at < 0 and fault.lasting):
                    return fault
        return None


class _SimulatedLock:
    def __init__(self, locked: set[str], path: str) -> None:
        self._locked = locked
        self._path = path

    def release(self) -> None:
        self._locked.discard(self._path)


class _SimulatedFile:
    """A file of a simulated disk that is open in one life of the process."""

    def __init__(self, disk: SimulatedFiles, path: str, inode: _Inode, life: int) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self._life: int | None = life

    def read(self, position: int, size: int) -> bytes:
        self._check()
        self._disk._meet("read", self._path)
        return bytes(self._inode.content[position : position + size])

    def write(self, position: int, buffers: Sequence[Buffer]) -> None:
        self._check()
        data = b"".join(buffers)
        fault = self._disk._fault("write", self._path)
        kept_bytes = len(data) if fault is None else min(fault.kept_bytes, len(data))
        code = errno.ENOSPC if fault is None else fault.code
        if self._disk.room_bytes is not None:
            growth = position + kept_bytes - len(self._inode.content)
            room = self._disk.room_bytes - self._disk.used_bytes()
            if growth > room:
                kept_bytes = max(kept_bytes - (growth - max(room, 0)), 0)
        if kept_bytes:
            write = _Write(position, data[:kept_bytes])
            _apply(self._inode.content, write)
            self._inode.unsynced.append(write)
        if fault is not None or kept_bytes < len(data):
            raise _error("write", code, self._path)

    def sync(self) -> None:
        self._check()
        try:
            self._disk._meet("sync", self._path)
        except OSError:
            self._inode.unsynced = []
            raise
        for change in self._inode.unsynced:
            _apply(self._inode.durable, change)
        self._inode.unsynced = []

    def truncate(self, size: int) -> None:
        self._check()
        self._disk._meet("truncate", self._path)
        _apply(self._inode.content, _Truncation(size))
        self._inode.unsynced.append(_Truncation(size))

    def size(self) -> int:
        self._check()
        return len(self._inode.content)

    def close(self) -> None:
        self._check()
        self._life = None

    def _check(self) -> None:
        if self._life != self._disk._life:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._path)


def _error(operation: Operation, code: int, path: str) -> Exception:
    if operation in ("open", "write") and code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFull(f"no room on the disk: {os.strerror(code)}")
    return OSError(code, os.strerror(code), path)


def _rename(names: _Names, change: dict[str, _Inode | None]) -> None:
    for name, inode in change.items():
        if inode is None:
            names.pop(name, None)
        else:
            names[name] = inode


def _apply(content: bytearray, change: _Write | _Truncation) -> None:
    size = change.size if isinstance(change, _Truncation) else change.position + len(change.data)
    if isinstance(change, _Truncation):
        del content[size:]
    content.extend(bytes(max(size - len(content), 0)))
    if isinstance(change, _Write):
        content[change.position : size] = change.data


def _lose(inode: _Inode, random: Random) -> None:
    """Let a part of what was not synced be all that is left of it.

    Each sector is as it was after one of the changes to it, or before all of them; the size is one that the file had.
    """
    kept_share = random.choice((0.0, 0.2, 0.5, 0.8, 1.0))
    content = bytearray(inode.durable)
    sizes = [len(content)]
    versions: dict[int, list[bytes]] = {}
    for change in inode.unsynced:
        start, stop = _extent(content, change)
        touched = range(start // SECTOR_BYTES, -(-stop // SECTOR_BYTES))
        for sector in touched:
            versions.setdefault(sector, [_sector(content, sector)])
        _apply(content, change)
        sizes.append(len(content))
        for sector in touched:
            versions[sector].append(_sector(content, sector))
    size = sizes[-1] if random.random() < kept_share else random.choice(sizes if kept_share else sizes[:1])
    content = bytearray(inode.durable.ljust(size, b"\0"))
    for sector, states in versions.items():
        state = states[-1] if random.random() < kept_share else random.choice(states if kept_share else states[:1])
        content[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES] = state
    content = content[:size]
    inode.content, inode.durable, inode.unsynced = bytearray(content), content, []


def _extent(content: bytearray, change: _Write | _Truncation) -> tuple[int, int]:
    """Where a change begins and ends that is about to be made, with what it fills with zeros or cuts off."""
    if isinstance(change, _Truncation):
        return min(change.size, len(content)), max(change.size, len(content))
    return min(change.position, len(content)), change.position + len(change.data)


def _sector(content: bytearray, sector: int) -> bytes:
    return bytes(content[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES]).ljust(SECTOR_BYTES, b"\0")
