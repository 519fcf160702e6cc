"""Errors of the log and its disk.

StorageError
├── DataDirectoryInUse      another server holds the data directory
├── DataDirectoryUnusable   it cannot be created, read or written, or is of another format
├── DiskFull                no room; it may come back
├── LogFailed               an I/O error; this log takes no more writes until the server restarts
├── OffsetOutOfRange        before the first or behind the last record
└── ProducerError           an idempotent batch that does not follow from the one before
    ├── OutOfOrderSequence
    └── StaleProducerEpoch
"""

from millstream.model.errors import MillstreamError

__all__ = [
    "DataDirectoryInUse",
    "DataDirectoryUnusable",
    "DiskFull",
    "LogFailed",
    "OffsetOutOfRange",
    "OutOfOrderSequence",
    "ProducerError",
    "StaleProducerEpoch",
    "StorageError",
]


class StorageError(MillstreamError):
    """Base of the errors of this package."""


class DataDirectoryInUse(StorageError):
    """Another server holds the data directory."""


class DataDirectoryUnusable(StorageError):
    """The data directory cannot be created, read or written, or is of another format."""


class DiskFull(StorageError):
    """There is no room for a write. Nothing of it was kept; later writes may succeed."""


class LogFailed(StorageError):
    """A write or a flush failed: what the disk holds is not known, so the log takes no more writes."""


class OffsetOutOfRange(StorageError):
    """An offset before the first record that is left, or behind the end."""


class ProducerError(StorageError):
    """An idempotent batch that does not follow from what its producer wrote before."""


class OutOfOrderSequence(ProducerError):
    """A sequence number leaves a gap, or is too old to be recognised as a duplicate."""


class StaleProducerEpoch(ProducerError):
    """The epoch is older than one that the producer has already used."""
