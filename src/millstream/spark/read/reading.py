"""One task: the records of a range of offsets of one partition, as Arrow record batches."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from millstream.model.frame import HEADER_BYTES, Attributes, Magic
from millstream.spark.client import Client
from millstream.spark.errors import BrokerUnreachable, DirectReadImpossible
from millstream.spark.read.committed import without_aborted
from millstream.spark.read.decoder import Decoder
from millstream.spark.read.frames import Frame, walk
from millstream.spark.read.offsets import report_loss
from millstream.spark.read.options import Direct
from millstream.spark.read.origin import with_origins
from millstream.spark.read.pushdown import NOTHING_PUSHED, Pushed
from millstream.spark.read.segments import Piece, SegmentFiles, partition_directory
from millstream.spark.servers import Servers
from millstream.wire.translation import kafka_batch

__all__ = ["OffsetRange", "read_range"]

_FETCH_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """What one task reads. It travels from the driver to where the task runs.

    Args:
        servers: brokers to begin with, and how to speak to them.
        topic, topic_id, partition, leader: whose records, and where the broker is.
        data_dir: the leader's data directory, empty if it is not known.
        start, stop: the first offset, and the one behind the last; the log held them when the task was planned, and
            transactions had decided all of them.
        direct: whether segment files may or must be read.
        fails_on_data_loss: whether records that are gone are an error.
        patience_s: for how long a broker that does not answer is asked again.
        pushed: what the rows must meet.
    """

    servers: Servers
    topic: str
    topic_id: UUID
    partition: int
    leader: str
    data_dir: str
    start: int
    stop: int
    direct: Direct
    fails_on_data_loss: bool
    patience_s: float = 0.0
    pushed: Pushed = NOTHING_PUSHED

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
        pyarrow.RecordBatch, without the rows that do not meet what was pushed down.

    Raises:
        DataLost: records are gone, and that is an error.
        DirectReadImpossible: files must be read and cannot be.
        BrokerUnreachable, TopicMissing, MalformedRecords: as they say.
    """
    with contextlib.ExitStack() as stack:
        task = _Task(wanted, schema, stack.enter_context(Client(wanted.servers, wanted.patience_s)))
        directory = task.directory()
        files = None
        if directory is not None:
            files = stack.enter_context(contextlib.closing(SegmentFiles(directory, wanted.pushed.since_ms)))
        offset = wanted.start
        while offset < wanted.stop:
            piece = files.read(offset, wanted.stop) if files is not None else None
            if piece is None:
                # Here the files are damaged, or gone: the broker knows more.
                piece = task.fetch(offset, wanted.stop)
                yield from task.batches(piece, offset)
                offset = piece.next_offset
                continue
            if not piece.frames:
                offset = piece.next_offset  # what was passed over is not as late as it must be
                continue
            for frames in _stretches(piece.frames):
                end = frames[-1].header.last_offset + 1
                if not frames[0].header.attributes & Attributes.TRANSACTIONAL:
                    task.took_from_file(piece.data, frames[-1])
                    yield from task.batches(Piece(piece.data, frames, end), offset)
                    offset = end
                    continue
                # Only the broker knows how transactions have ended.
                while offset < min(end, wanted.stop):
                    fetched = task.fetch(offset, min(end, wanted.stop))
                    yield from task.batches(fetched, offset)
                    offset = fetched.next_offset
        task.check_files()


def _stretches(frames: Sequence[Frame]) -> list[list[Frame]]:
    """Frames in runs of those that are in transactions, and those that are not."""
    if not any(frame.header.attributes & Attributes.TRANSACTIONAL for frame in frames):
        return [list(frames)]
    runs = itertools.groupby(frames, lambda frame: frame.header.attributes & Attributes.TRANSACTIONAL)
    return [list(run) for _, run in runs]


class _Task:
    """What one task reads with.

    Args:
        wanted: what to read.
        schema: the Arrow schema of the columns wanted.
        client: asks the broker.
    """

    def __init__(self, wanted: OffsetRange, schema: Any, client: Client) -> None:
        self._wanted = wanted
        self._client = client
        self._decoder = Decoder(schema, wanted.topic, wanted.partition)
        self._last: tuple[bytes, Frame] | None = None

    def directory(self) -> str | None:
        """Where the partition's files lie, if they are to be read from here."""
        wanted = self._wanted
        if wanted.direct is Direct.NEVER:
            return None
        directory = partition_directory(wanted.data_dir, wanted.topic_id, wanted.partition)
        if directory is None and wanted.direct is Direct.ALWAYS:
            raise DirectReadImpossible(
                f"direct=always, but the data directory {wanted.data_dir!r} of {wanted.leader} with topic "
                f"{wanted.topic!r} cannot be read here; take direct=auto"
            )
        return directory

    def took_from_file(self, data: bytes, frame: Frame) -> None:
        """Remember the last frame that came out of a file."""
        self._last = data, frame

    def check_files(self) -> None:
        """Check that the files are those of the broker, and not a copy that went its own way.

        The last frame that was read is compared with what the broker sends for it: logs that differ anywhere before
        differ there too, because a frame holds the times and the checksum of its own records.

        Raises:
            DirectReadImpossible: it is another one.
        """
        wanted = self._wanted
        if self._last is None or wanted.direct is not Direct.AUTO:
            return
        data, frame = self._last
        offset = frame.header.base_offset
        sent = self._client.fetch(wanted.topic, wanted.topic_id, wanted.partition, wanted.leader, offset, 1)
        if sent.is_out_of_range and sent.start_offset > offset:
            return  # deleted meanwhile
        here = memoryview(data)[frame.position : frame.position + frame.header.size]
        if frame.header.magic != Magic.KAFKA_V2:
            here = memoryview(kafka_batch(here, frame.header))
        if sent.records[:HEADER_BYTES] != here[:HEADER_BYTES]:
            raise DirectReadImpossible(
                f"the files of topic {wanted.topic!r} partition {wanted.partition} in {wanted.data_dir!r} are not "
                f"those of the broker at {wanted.leader}, but of another one with the same topics; take direct=never"
            )

    def fetch(self, offset: int, stop: int) -> Piece:
        """Fetch some frames; none, and the next offset, if there is nothing at this one."""
        wanted = self._wanted
        fetched = self._client.fetch(
            wanted.topic, wanted.topic_id, wanted.partition, wanted.leader, offset, _FETCH_BYTES
        )
        if fetched.is_out_of_range and fetched.start_offset > offset:
            return Piece(b"", [], min(fetched.start_offset, stop))
        if not fetched.records:
            return Piece(b"", [], stop)  # the log has been cut since the task was planned
        walked = walk(memoryview(fetched.records), None, offset, stop)
        if not walked.found and walked.next_offset <= offset:
            raise BrokerUnreachable(
                f"{wanted.leader} sent no valid batch for offset {offset} of topic {wanted.topic!r} partition "
                f"{wanted.partition}"
            )
        frames = with_origins(walked.found, fetched.encodings)
        return Piece(fetched.records, without_aborted(frames, fetched.aborted), walked.next_offset)

    def batches(self, piece: Piece, offset: int) -> Iterator[Any]:
        """Decode a piece that was read for an offset, and report what is missing before it."""
        wanted = self._wanted
        first = piece.frames[0].header.base_offset if piece.frames else piece.next_offset
        if first > offset:
            behind = min(first, wanted.stop)
            report_loss(wanted.topic, wanted.partition, offset, behind, fails=wanted.fails_on_data_loss)
        frames = wanted.pushed.frames(piece.frames)
        for batch in self._decoder.decode(piece.data, frames, offset, wanted.stop):
            kept = wanted.pushed.rows(batch)
            if kept.num_rows:
                yield kept
