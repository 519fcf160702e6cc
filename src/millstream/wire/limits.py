"""Bounds on what is taken from a peer, each with its unit and its reason."""

from typing import Final

__all__ = ["ARRAY_ENTRIES_MAX", "BATCH_RECORDS_MAX", "INFLATED_BATCH_BYTES_MAX", "INFLATED_REQUEST_BYTES_MAX"]

ARRAY_ENTRIES_MAX: Final = 200_000
"""Entries of all arrays of structs or strings in one message: as many partitions as a large cluster has. An empty
struct takes one byte on the wire and some hundred in memory, so that the bytes alone are no bound."""

BATCH_RECORDS_MAX: Final = 1_000_000
"""Records in one batch that may be compressed: as many as librdkafka lets an application ask for. Taken apart for
clients of another protocol, that many take a second or two, in which everyone else waits. Empty records compress to
next to nothing, so that the bytes alone are no bound."""

INFLATED_BATCH_BYTES_MAX: Final = 128 * 1024 * 1024
"""Bytes that the body of one compressed batch may unpack to. A producer fills a batch to its batch.size before
compression (16 KiB to some MiB); a body that unpacks to more than this is a bomb."""

INFLATED_REQUEST_BYTES_MAX: Final = 256 * 1024 * 1024
"""Bytes that all compressed batches of one request may unpack to: a request of thousands of small bombs would keep
everyone else waiting for minutes. Clients keep a request to some MiB, over all its partitions."""
