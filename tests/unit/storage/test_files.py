"""The door to the operating system, on a real disk; and the simulated disk held against it."""

import errno
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from millstream.storage.errors import DiskFull
from millstream.storage.files import Files, OsFiles
from tests.support.simulated_files import SimulatedFiles


@pytest.fixture(params=["real", "simulated"])
def files(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    monkeypatch.chdir(tmp_path)
    made: Files = OsFiles() if request.param == "real" else SimulatedFiles()
    made.make_directory("data/deep")
    return made


def open_descriptors(directory: Path) -> set[int]:
    """The descriptors of this process for what lies in a directory; others come and go as they like."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            if os.readlink(f"/proc/self/fd/{fd}").startswith(f"{directory}/"):
                found.add(int(fd))
    return found


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file of this process may grow beyond a size: the error is EFBIG once the signal is ignored."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_what_is_written_is_read(files: Files) -> None:
    file = files.open("data/f")
    file.write(0, [b"abc", bytearray(b"def"), memoryview(b"ghi")])
    file.write(2, [b"X"])
    assert file.read(0, 100) == b"abXdefghi"
    assert file.read(4, 2) == b"ef"
    assert file.read(9, 1) == b""
    assert (file.size(), files.size("data/f")) == (9, 9)
    file.write(12, [b"z"])
    assert file.read(8, 9) == b"i\0\0\0z"
    file.truncate(3)
    assert files.read_whole("data/f") == b"abX"
    file.sync()
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.read(0, 1)
    again = files.open("data/f")
    assert again.read(0, 100) == b"abX", "opening does not empty a file"
    again.close()


def test_a_piece_of_a_file_by_its_path(files: Files) -> None:
    files.replace_whole("data/f", b"0123456789")
    for _ in range(2):
        assert files.read_at("data/f", 3, 4) == b"3456"
        assert files.read_at("data/f", 8, 4) == b"89"
    files.forget("data/f")
    files.forget("data/f")
    with pytest.raises(FileNotFoundError):
        files.read_at("data/none", 0, 1)


def test_replacing_a_whole_file(files: Files) -> None:
    assert files.read_whole("data/f") is None
    assert files.size("data/f") == 0
    for content in (b"a longer content", b"short", b""):
        files.replace_whole("data/f", content)
        assert files.read_whole("data/f") == content
    assert files.list_directory("data") == ["deep", "f"]


def test_directories(files: Files) -> None:
    assert files.list_directory("data") == ["deep"]
    assert files.list_directory("none") == []
    files.make_directory("data/deep/er/est")
    files.make_directory("data/deep/er/est")
    files.replace_whole("data/deep/er/b", b"")
    files.replace_whole("data/deep/er/a", b"")
    files.sync_directory("data/deep/er")
    assert files.list_directory("data/deep/er") == ["a", "b", "est"]
    files.remove("data/deep/er/a")
    files.remove("data/deep/er/a")
    assert files.list_directory("data/deep/er") == ["b", "est"]
    files.remove_tree("data/deep")
    files.remove_tree("data/deep")
    assert files.list_directory("data") == []


def test_a_lock_keeps_the_next_one_out(files: Files) -> None:
    lock = files.lock("data/lock")
    assert lock is not None
    assert files.lock("data/lock") is None
    other = files.lock("data/other")
    assert other is not None
    other.release()
    lock.release()
    again = files.lock("data/lock")
    assert again is not None
    again.release()


def test_a_tree_is_removed_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_bytes(b"x")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "outside")
    OsFiles().remove_tree(str(tmp_path / "tree"))
    assert (tmp_path / "outside" / "kept").exists()
    assert not (tmp_path / "tree").exists()


def test_a_short_write_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = OsFiles().open(str(tmp_path / "f"))
    whole = bytes(range(200))
    calls = 0
    pwrite = os.pwrite

    def short(fd: int, data: bytes, position: int) -> int:
        nonlocal calls
        calls += 1
        return pwrite(fd, data[:7], position)

    monkeypatch.setattr(os, "pwritev", lambda fd, buffers, position: short(fd, b"".join(buffers), position))
    monkeypatch.setattr(os, "pwrite", short)
    file.write(5, [whole[:90], whole[90:]])
    file.close()
    assert (tmp_path / "f").read_bytes() == bytes(5) + whole
    assert calls == 29


def test_a_read_that_is_cut_short_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "f")
    files = OsFiles()
    files.replace_whole(path, bytes(range(100)))
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, position: pread(fd, min(size, 9), position))
    assert files.read_at(path, 10, 60) == bytes(range(10, 70))
    assert files.read_at(path, 90, 60) == bytes(range(90, 100))
    files.forget(path)


def test_no_room_by_a_limit_of_the_process(tmp_path: Path) -> None:
    """RLIMIT_FSIZE gives a short write first and then EFBIG, as a full disk gives ENOSPC."""
    file = OsFiles().open(str(tmp_path / "f"))
    file.write(0, [b"x" * 900])
    with file_size_limit(1000):
        with pytest.raises(DiskFull, match="no room"):
            file.write(900, [b"y" * 60, b"z" * 60])
        with pytest.raises(DiskFull):
            file.write(1000, [b"z"])
    assert file.size() in (900, 1000), "a part of it may be there"
    file.truncate(900)
    file.write(900, [b"y"])
    file.close()


def test_no_room_on_the_device() -> None:
    file = OsFiles().open("/dev/full")
    with pytest.raises(DiskFull, match="No space left"):
        file.write(0, [b"x"])
    file.close()


def test_replacing_without_room_keeps_the_old_content(tmp_path: Path) -> None:
    files = OsFiles()
    path = str(tmp_path / "f")
    files.replace_whole(path, b"old")
    before = open_descriptors(tmp_path)
    with file_size_limit(100), pytest.raises(DiskFull):
        files.replace_whole(path, b"n" * 1000)
    assert files.read_whole(path) == b"old"
    assert open_descriptors(tmp_path) == before
    files.replace_whole(path, b"new")
    assert files.read_whole(path) == b"new"


def test_other_errors_are_not_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        OsFiles().open(str(tmp_path / "none" / "f"))
    with pytest.raises(IsADirectoryError):
        OsFiles().open(str(tmp_path))


def test_descriptors_of_files_that_are_read_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.storage.files._READ_HANDLES_MAX", 8)
    files = OsFiles()
    paths = [str(tmp_path / str(n)) for n in range(50)]
    for n, path in enumerate(paths):
        files.replace_whole(path, bytes([n]))
    before = open_descriptors(tmp_path)
    for _ in range(2):
        for n, path in enumerate(paths):
            assert files.read_at(path, 0, 9) == bytes([n])
            assert len(open_descriptors(tmp_path)) <= len(before) + 8
    for path in paths:
        files.forget(path)
    assert open_descriptors(tmp_path) == before


def test_a_lock_that_is_held_leaves_no_descriptor(tmp_path: Path) -> None:
    files = OsFiles()
    lock = files.lock(str(tmp_path / "lock"))
    assert lock is not None
    before = open_descriptors(tmp_path)
    assert files.lock(str(tmp_path / "lock")) is None
    assert open_descriptors(tmp_path) == before
    lock.release()
    assert len(open_descriptors(tmp_path)) == len(before) - 1


def test_descriptors_do_not_pass_to_children(tmp_path: Path) -> None:
    files = OsFiles()
    before = open_descriptors(tmp_path)
    file = files.open(str(tmp_path / "f"))
    files.read_at(str(tmp_path / "f"), 0, 1)
    lock = files.lock(str(tmp_path / "lock"))
    opened = open_descriptors(tmp_path) - before
    assert len(opened) == 3
    assert not any(os.get_inheritable(fd) for fd in opened)
    assert lock is not None
    lock.release()
    files.forget(str(tmp_path / "f"))
    file.close()


def test_the_codes_that_mean_no_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = OsFiles().open(str(tmp_path / "f"))
    for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):

        def refuse(_fd: int, _buffers: object, _position: int, code: int = code) -> int:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "pwritev", refuse)
        with pytest.raises(OSError if code == errno.EIO else DiskFull):
            file.write(0, [b"x"])
    file.close()


def test_more_buffers_than_the_system_takes_in_one_call(tmp_path: Path) -> None:
    file = OsFiles().open(str(tmp_path / "file"))
    pieces = [b"%d," % number for number in range(5000)]
    file.write(3, pieces)
    assert file.read(3, 100_000) == b"".join(pieces)
    file.close()


def test_names_that_could_not_be_synced_are_lost_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, path = OsFiles(), str(tmp_path / "d")
    files.make_directory(path)
    assert files.names_lost(path) is None

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "gone")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="gone"):
            files.sync_directory(path)
    files.sync_directory(path)
    lost = files.names_lost(path)
    assert lost is not None
    assert lost.errno == errno.EIO
    files.remove_tree(path)
    assert files.names_lost(path) is None
