"""The simulated disk itself: a test that passes on it is worth what it can lose."""

import pytest

from millstream.storage.errors import DiskFull
from tests.support.simulated_files import SECTOR_BYTES, Fault, SimulatedFiles

OLD = b"o" * SECTOR_BYTES * 4
NEW = b"n" * SECTOR_BYTES * 4


def outcomes(files: SimulatedFiles, path: str = "d/f") -> set[bytes | None]:
    """What power losses make of a file."""
    found = set()
    for seed in range(300):
        disk = files.copy()
        disk.crash(seed)
        found.add(disk.read_whole(path))
    return found


@pytest.fixture
def files() -> SimulatedFiles:
    files = SimulatedFiles()
    files.make_directory("d")
    return files


def test_without_a_sync_anything_may_be_left(files: SimulatedFiles) -> None:
    files.put("d/f", OLD)
    files.open("d/f").write(0, [NEW])
    found = outcomes(files)
    assert len(found) == 2**4, "every subset of the sectors"
    assert {OLD, NEW} <= found


def test_a_file_may_be_shorter_or_end_in_zeros(files: SimulatedFiles) -> None:
    files.put("d/f", b"")
    file = files.open("d/f")
    file.write(0, [NEW[:SECTOR_BYTES]])
    file.write(SECTOR_BYTES, [NEW[SECTOR_BYTES:]])
    found = {content for content in outcomes(files) if content is not None}
    assert {0, SECTOR_BYTES, 4 * SECTOR_BYTES} <= {len(content) for content in found}
    assert bytes(SECTOR_BYTES) + NEW[SECTOR_BYTES:] in found, "later sectors without earlier ones"
    assert any(content and not any(content) for content in found)


def test_a_sync_makes_all_of_it_lasting(files: SimulatedFiles) -> None:
    files.put("d/f", OLD)
    file = files.open("d/f")
    file.write(0, [NEW])
    file.truncate(SECTOR_BYTES * 3)
    file.sync()
    assert outcomes(files) == {NEW[: SECTOR_BYTES * 3]}


def test_files_are_lost_independently(files: SimulatedFiles) -> None:
    for name in ("d/f", "d/g"):
        files.put(name, b"")
        files.open(name).write(0, [b"x"])
    found = set()
    for seed in range(300):
        disk = files.copy()
        disk.crash(seed)
        found.add((disk.content("d/f") == b"x", disk.content("d/g") == b"x"))
    assert len(found) == 4


def test_a_name_lasts_only_with_its_directory(files: SimulatedFiles) -> None:
    file = files.open("d/f")
    file.write(0, [b"x"])
    file.sync()
    assert outcomes(files) == {None, b"x"}
    files.sync_directory("d")
    assert outcomes(files) == {b"x"}
    files.remove("d/f")
    assert outcomes(files) == {None, b"x"}
    files.sync_directory("d")
    assert outcomes(files) == {None}


def test_replacing_gives_the_old_or_the_new(files: SimulatedFiles) -> None:
    files.put("d/f", b"old")
    files.replace_whole("d/f", b"new")
    assert outcomes(files) == {b"new"}
    files.inject(Fault("sync_directory"))
    with pytest.raises(OSError, match="Input"):
        files.replace_whole("d/f", b"newer")
    assert outcomes(files) == {b"new"}


def test_a_failed_sync_loses_what_it_was_for_even_if_the_next_succeeds(files: SimulatedFiles) -> None:
    files.put("d/f", OLD)
    file = files.open("d/f")
    file.write(0, [NEW[:SECTOR_BYTES]])
    files.inject(Fault("sync"))
    with pytest.raises(OSError, match="Input"):
        file.sync()
    file.write(SECTOR_BYTES, [NEW[:SECTOR_BYTES]])
    file.sync()
    assert file.read(0, SECTOR_BYTES) == NEW[:SECTOR_BYTES], "the cache shows it"
    assert outcomes(files) == {OLD[:SECTOR_BYTES] + NEW[:SECTOR_BYTES] + OLD[: 2 * SECTOR_BYTES]}


def test_a_kill_keeps_the_cache_and_closes_everything(files: SimulatedFiles) -> None:
    file = files.open("d/f")
    file.write(0, [b"x"])
    assert files.lock("d/lock") is not None
    files.kill()
    assert files.content("d/f") == b"x"
    assert files.lock("d/lock") is not None
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.write(0, [b"y"])
    assert outcomes(files) == {None, b"", b"\0", b"x"}


def test_the_same_seed_gives_the_same_loss(files: SimulatedFiles) -> None:
    files.open("d/f").write(0, [NEW * 4])
    for seed in range(20):
        one, two = files.copy(), files.copy()
        one.crash(seed)
        two.crash(seed)
        assert one.read_whole("d/f") == two.read_whole("d/f")


def test_room(files: SimulatedFiles) -> None:
    files.room_bytes = 10
    file = files.open("d/f")
    file.write(0, [b"12345678"])
    with pytest.raises(DiskFull):
        file.write(8, [b"abcd"])
    assert files.content("d/f") == b"12345678ab", "what fits is written"
    file.write(0, [b"87654321"])
    file.truncate(4)
    file.write(4, [b"abcdef"])
    with pytest.raises(DiskFull):
        files.replace_whole("d/g", b"x")
    files.room_bytes = None
    files.replace_whole("d/g", b"x")


def test_the_nth_call_fails(files: SimulatedFiles) -> None:
    file, other = files.open("d/f"), files.open("d/g")
    files.inject(Fault("write", at=2, kept_bytes=1, path_ending="f"))
    for _ in range(3):
        other.write(0, [b"xy"])
    file.write(0, [b"ab"])
    with pytest.raises(OSError, match="Input"):
        file.write(0, [b"cd"])
    file.write(2, [b"ef"])
    assert files.content("d/f") == b"cbef"
    files.inject(Fault("sync", at=2, lasting=True))
    file.sync()
    for _ in range(2):
        with pytest.raises(OSError, match="Input"):
            file.sync()
    files.heal()
    file.sync()
