"""One task: the records of a range of offsets of one partition, as Arrow record batches."""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from millstream.spark.client import Client
from millstream.spark.errors import BrokerUnreachable, DirectReadImpossible
from millstream.spark.read.decoder import Decoder
from millstream.spark.read.frames import walk
from millstream.spark.read.offsets import report_loss
from millstream.spark.read.options import Direct
from millstream.spark.read.segments import Piece, SegmentFiles, partition_directory

__all__ = ["OffsetRange", "read_range"]

_FETCH_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """What one task reads. It travels from the driver to where the task runs.

    Args:
        servers: brokers to begin with.
        topic, topic_id, partition, leader: whose records, and where the broker is.
        data_dir: the leader's data directory, empty if it is not known.
        start, stop: the first offset, and the one behind the last; the log held them when the task was planned.
        direct: whether segment files may or must be read.
        fails_on_data_loss: whether records that are gone are an error.
    """

    servers: str
    topic: str
    topic_id: UUID
    partition: int
    leader: str
    data_dir: str
    start: int
    stop: int
    direct: Direct
    fails_on_data_loss: bool

    def split(self, count: int) -> list["OffsetRange"]:
        """Cut into so many parts of about the same size."""
        size = self.stop - self.start
        cuts = [self.start + size * number // count for number in range(count + 1)]
        return [replace(self, start=first, stop=behind) for first, behind in itertools.pairwise(cuts)]


def read_range(wanted: OffsetRange, schema: Any) -> Iterator[Any]:
    """Read a range.

    Args:
        wanted: what to read.
        schema: the Arrow schema of the columns wanted.

    Yields:
        pyarrow.RecordBatch.

    Raises:
        DataLost: records are gone, and that is an error.
        DirectReadImpossible: files must be read and cannot be.
        BrokerUnreachable, TopicMissing, MalformedRecords: as they say.
    """
    decoder = Decoder(schema, wanted.topic, wanted.partition)
    directory = _directory(wanted)
    offset = wanted.start
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(Client(wanted.servers))
        files = None if directory is None else stack.enter_context(contextlib.closing(SegmentFiles(directory)))
        while offset < wanted.stop:
            piece = files.read(offset, wanted.stop) if files is not None else None
            if piece is None:
                # Here the files are damaged, or gone: the broker knows more.
                piece = _fetch(client, wanted, offset)
            first = piece.frames[0].header.base_offset if piece.frames else piece.next_offset
            if first > offset:
                behind = min(first, wanted.stop)
                report_loss(wanted.topic, wanted.partition, offset, behind, fails=wanted.fails_on_data_loss)
            yield from decoder.decode(piece.data, piece.frames, offset, wanted.stop)
            offset = piece.next_offset


def _directory(wanted: OffsetRange) -> str | None:
    if wanted.direct is Direct.NEVER:
        return None
    directory = partition_directory(wanted.data_dir, wanted.topic_id, wanted.partition)
    if directory is None and wanted.direct is Direct.ALWAYS:
        raise DirectReadImpossible(
            f"direct=always, but the data directory {wanted.data_dir!r} of {wanted.leader} with topic "
            f"{wanted.topic!r} cannot be read here; take direct=auto"
        )
    return directory


def _fetch(client: Client, wanted: OffsetRange, offset: int) -> Piece:
    """Fetch some frames; none, and the next offset, if there is nothing at this one."""
    fetched = client.fetch(wanted.topic, wanted.topic_id, wanted.partition, wanted.leader, offset, _FETCH_BYTES)
    if fetched.is_out_of_range and fetched.start_offset > offset:
        return Piece(b"", [], fetched.start_offset)
    if not fetched.records:
        return Piece(b"", [], wanted.stop)  # the log has been cut since the task was planned
    walked = walk(memoryview(fetched.records), None, offset, wanted.stop)
    if not walked.found and walked.next_offset <= offset:
        raise BrokerUnreachable(
            f"{wanted.leader} sent no valid batch for offset {offset} of topic {wanted.topic!r} partition "
            f"{wanted.partition}"
        )
    return Piece(fetched.records, walked.found, walked.next_offset)
