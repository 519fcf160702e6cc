"""The data directory: who holds it, and where each log lies.

    <data dir>/format                          one line, the version of this layout
    <data dir>/lock                            held by the server that uses the directory
    <data dir>/metadata.sqlite                 see millstream.storage.metadata
    <data dir>/topics/<topic id>/<partition>/  see millstream.storage.log

Topics lie under their ids, not their names: a name may hold characters that no file system takes, and a topic
made anew under an old name must never meet the old one's files.
"""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from millstream.storage.errors import DataDirectoryInUse, DataDirectoryUnusable, DiskFull
from millstream.storage.files import Files, Lock
from millstream.storage.log import LogSettings, PartitionLog
from millstream.storage.recovery import RecoveryReport, open_log

__all__ = ["FORMAT", "DataDirectory"]

FORMAT: Final = b"millstream 1\n"


class DataDirectory:
    """A data directory that this process holds.

    Args:
        files: the door to the disk.
        path: the directory; made if it does not exist.

    Raises:
        DataDirectoryInUse: another server holds it.
        DataDirectoryUnusable: it cannot be made or written, or was written in another format.
    """

    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = path
        try:
            files.make_directory(path)
            lock = files.lock(f"{path}/lock")
            if lock is None:
                raise DataDirectoryInUse(f"another server is using {path}; give this one a --data-dir of its own")
            self._lock: Lock = lock
            try:
                self._prepare()
            except (DiskFull, OSError, DataDirectoryUnusable):
                lock.release()
                raise
        except (DiskFull, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise DataDirectoryUnusable(f"the data directory {path} cannot be used: {reason}") from None

    def _prepare(self) -> None:
        """Check the format, or write it into a new directory."""
        found = self.files.read_whole(f"{self.path}/format")
        if found is None:
            self.files.replace_whole(f"{self.path}/format", FORMAT)
        elif found != FORMAT:
            text = found[:40].decode("ascii", "replace").strip()
            raise DataDirectoryUnusable(
                f"{self.path} holds data of the format {text!r}, which this version cannot read"
            )
        self.files.make_directory(f"{self.path}/topics")

    @property
    def metadata_path(self) -> str:
        """The file of the embedded metadata store."""
        return f"{self.path}/metadata.sqlite"

    def topic_path(self, topic_id: UUID) -> str:
        """The directory of a topic."""
        return f"{self.path}/topics/{topic_id}"

    def open_log(
        self, topic_id: UUID, partition: int, settings: LogSettings, now_ms: int
    ) -> tuple[PartitionLog, RecoveryReport]:
        """Open the log of a partition, created if there is none. Raises OSError, DiskFull."""
        return open_log(self.files, f"{self.topic_path(topic_id)}/{partition}", settings, now_ms)

    def remove_topic(self, topic_id: UUID) -> None:
        """Remove all files of a topic. Its logs are closed."""
        self.files.remove_tree(self.topic_path(topic_id))

    def remove_partitions(self, topic_id: UUID, partitions: Iterable[int]) -> None:
        """Remove all files of some partitions of a topic, so that they stay removed. Their logs are closed."""
        path = self.topic_path(topic_id)
        for partition in partitions:
            self.files.remove_tree(f"{path}/{partition}")
        self.files.sync_directory(path)

    def strangers(self, known: set[UUID]) -> list[str]:
        """Directories among the topics' that belong to none of them, such as those of a lost metadata store.

        They are never removed: they may be all that is left of somebody's data.
        """
        names = {str(topic_id) for topic_id in known}
        return [name for name in self.files.list_directory(f"{self.path}/topics") if name not in names]

    def release(self) -> None:
        """Let another server use the directory."""
        self._lock.release()
