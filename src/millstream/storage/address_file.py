"""Where the byte addresses of a partition last: a journal of checkpoints beside its segments.

    <log directory>/addresses, little-endian, records of 32 bytes one after the other:
    byte  size  field
       0     4  b"MSA1", the version
       4     8  offset     of a record with which a frame begins
      12     8  address    byte address at which that frame begins
      20     4  frame_crc  checksum of the frame before, which ends there; 0 where none is known
      24     1  variant    how frames of other protocols are encoded from there on
      25     1  rewritten  1 if frames from there to the next checkpoint may have been written anew
      26     2  0
      28     4  crc32c of all before it

Offsets and addresses only grow. The last record may be written over by a later checkpoint; all others stay. A record
that fails its checksum ends the journal: what follows is found again from the log.

Unlike an index of a segment this is no cache. Which addresses records have follows from all that was before them,
and that goes away with retention.
"""

import struct
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from crc32c import crc32c

from millstream.storage.files import File, Files

__all__ = ["ADDRESSES_FILE", "AddressFile", "Checkpoint"]

ADDRESSES_FILE: Final = "addresses"
_VERSION: Final = b"MSA1"
_RECORD: Final = struct.Struct("<4sqqIBB2x")
_CRC: Final = struct.Struct("<I")
_RECORD_BYTES: Final = _RECORD.size + _CRC.size


class Checkpoint(NamedTuple):
    """Where a frame begins; the module's text says what each field means."""

    offset: int
    address: int
    frame_crc: int
    variant: int
    rewritten: int = 0


class AddressFile:
    """The journal of one partition, open for writing.

    Args:
        files: the door to the disk.
        directory: the partition's.

    Raises:
        OSError, DiskFull: it cannot be made.
    """

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._path = f"{directory}/{ADDRESSES_FILE}"
        self._directory = directory
        self._named = False
        self._file: File = files.open(self._path)

    def read(self) -> list[Checkpoint]:
        """All checkpoints up to the first that is damaged, cut off or out of order."""
        content = self._file.read(0, self._file.size())
        found: list[Checkpoint] = []
        for position in range(0, len(content) - _RECORD_BYTES + 1, _RECORD_BYTES):
            checkpoint = _decode(content, position)
            if checkpoint is None or (found and checkpoint[:2] < found[-1][:2]):
                break
            found.append(checkpoint)
        return found

    def write(self, number: int, checkpoints: Iterable[Checkpoint]) -> None:
        """Write checkpoints, the first of them as the record of a number. Raises OSError, DiskFull."""
        self._file.write(number * _RECORD_BYTES, [b"".join(map(_encode, checkpoints))])

    def cut(self, count: int) -> None:
        """Keep so many records and no more. Raises OSError."""
        self._file.truncate(count * _RECORD_BYTES)

    def sync(self) -> None:
        """Return when all that was written is on the disk. May be called from any thread. Raises OSError."""
        self._file.sync()
        if not self._named:
            self._files.sync_directory(self._directory)
            self._named = True

    def replace(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Replace the whole file, lasting, off the loop's thread; `reopen` is due then. Raises OSError, DiskFull."""
        self._files.replace_whole(self._path, b"".join(map(_encode, checkpoints)))

    def reopen(self) -> Callable[[], None]:
        """Write to the file that `replace` has made from now on; returns what closes the old one. Raises OSError."""
        old, self._file = self._file, self._files.open(self._path)
        return old.close

    def close(self) -> None:
        """Give the descriptor back."""
        self._file.close()


def _encode(checkpoint: Checkpoint) -> bytes:
    record = _RECORD.pack(_VERSION, *checkpoint)
    return record + _CRC.pack(crc32c(record))


def _decode(content: bytes, position: int) -> Checkpoint | None:
    record = content[position : position + _RECORD.size]
    (crc,) = _CRC.unpack_from(content, position + _RECORD.size)
    if crc32c(record) != crc:
        return None
    version, *fields = _RECORD.unpack(record)
    return Checkpoint(*fields) if version == _VERSION else None
