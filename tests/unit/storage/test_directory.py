"""The data directory: its lock, its format, and the directories of topics."""

import errno
from pathlib import Path
from uuid import UUID

import pytest

from millstream.storage.directory import FORMAT, DataDirectory
from millstream.storage.errors import DataDirectoryInUse, DataDirectoryUnusable
from millstream.storage.files import OsFiles
from millstream.storage.log import LogSettings
from tests.support.batches import append, batch
from tests.support.simulated_files import Fault, SimulatedFiles

TOPIC = UUID(int=1)
OTHER = UUID(int=2)


def test_one_server_at_a_time() -> None:
    files = SimulatedFiles()
    first = DataDirectory(files, "/data")
    with pytest.raises(DataDirectoryInUse, match="/data"):
        DataDirectory(files, "/data")
    DataDirectory(files, "/elsewhere")
    first.release()
    DataDirectory(files, "/data")


def test_one_server_at_a_time_on_a_real_disk(tmp_path: Path) -> None:
    path = str(tmp_path / "deep" / "data")
    first = DataDirectory(OsFiles(), path)
    with pytest.raises(DataDirectoryInUse):
        DataDirectory(OsFiles(), path)
    first.release()
    DataDirectory(OsFiles(), path).release()


def test_a_lock_ends_with_its_process() -> None:
    files = SimulatedFiles()
    DataDirectory(files, "/data")
    files.kill()
    DataDirectory(files, "/data")


def test_a_format_of_another_version_is_refused_and_left_alone() -> None:
    files = SimulatedFiles()
    DataDirectory(files, "/data").release()
    assert files.content("/data/format") == FORMAT
    for strange in (b"millstream 2\n", b"", b"\xff" * 1000):
        files.put("/data/format", strange)
        for _ in range(2):
            with pytest.raises(DataDirectoryUnusable, match="format"):
                DataDirectory(files, "/data")
        assert files.content("/data/format") == strange
    files.put("/data/format", FORMAT)
    DataDirectory(files, "/data")


def test_a_power_loss_at_the_first_start_leaves_a_directory_that_can_be_used() -> None:
    for seed in range(30):
        files = SimulatedFiles()
        DataDirectory(files, "/data")
        files.crash(seed)
        DataDirectory(files, "/data")


def test_a_full_disk_is_told() -> None:
    files = SimulatedFiles(room_bytes=3)
    with pytest.raises(DataDirectoryUnusable, match="no room"):
        DataDirectory(files, "/data")
    files.room_bytes = None
    DataDirectory(files, "/data")


def test_a_disk_that_fails_is_told() -> None:
    files = SimulatedFiles()
    files.inject(Fault("sync", code=errno.EIO))
    with pytest.raises(DataDirectoryUnusable, match="Input/output error"):
        DataDirectory(files, "/data")


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataDirectoryUnusable):
        DataDirectory(OsFiles(), str(tmp_path / "file" / "data"))


def test_each_partition_has_a_log_of_its_own() -> None:
    directory = DataDirectory(SimulatedFiles(), "/data")
    logs = [
        directory.open_log(topic, partition, LogSettings(), 0)[0] for topic in (TOPIC, OTHER) for partition in (0, 1)
    ]
    append(logs[2], batch(b"x"))
    assert [log.end_offset for log in logs] == [0, 0, 1, 0]
    assert logs[2].directory == f"/data/topics/{OTHER}/0"


def test_removing_topics() -> None:
    files = SimulatedFiles()
    directory = DataDirectory(files, "/data")
    for topic in (TOPIC, OTHER, UUID(int=3)):
        directory.open_log(topic, 0, LogSettings(), 0)
    files.make_directory("/data/topics/somebody's own")
    directory.remove_topic(TOPIC)
    assert directory.strangers({OTHER}) == [str(UUID(int=3)), "somebody's own"]
    assert files.list_directory("/data/topics") == [str(OTHER), str(UUID(int=3)), "somebody's own"]
    directory.remove_topic(TOPIC)


def test_removing_topics_on_a_real_disk(tmp_path: Path) -> None:
    directory = DataDirectory(OsFiles(), str(tmp_path))
    for topic in (TOPIC, OTHER):
        log, _ = directory.open_log(topic, 0, LogSettings(), 0)
        append(log, batch(b"x"))
        log.close()
    directory.remove_topic(TOPIC)
    assert [path.name for path in (tmp_path / "topics").iterdir()] == [str(OTHER)]
    directory.release()
