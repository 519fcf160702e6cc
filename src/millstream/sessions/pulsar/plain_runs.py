"""SEND, the fast way: plain messages that one read of the socket brought go into the log in one piece.

What is stored and answered is the same as `send.handle_send` does message by message, which takes all others.
"""

from array import array
from typing import Final

from crc32c import crc32c

from millstream.model.errors import MillstreamError
from millstream.model.frame import Magic
from millstream.model.frame_run import FrameRun
from millstream.sessions.pulsar.error_table import Refusal
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.producers import LinkedProducer
from millstream.sessions.pulsar.send import PASSING, send_error
from millstream.wire.limits import INFLATED_BATCH_BYTES_MAX
from millstream.wire.pulsar.entry import MESSAGE_BYTES_MIN
from millstream.wire.pulsar.limits import BATCH_MESSAGES_MAX, MESSAGE_BYTES_MAX
from millstream.wire.pulsar.plain_sends import (
    BATCH_COUNT,
    CHECKSUM,
    COMPILED,
    HIGHEST_SEQUENCE_ID,
    IS_BATCH,
    PRODUCER_ID,
    PUBLISH_TIME,
    RECEIPT_BYTES_MAX,
    ROOM_BYTES,
    SEQUENCE_ID,
    VALUES,
    read_plain_send,
    write_receipts,
)
from millstream.wire.pulsar.stored_frame import add_to_run

__all__ = ["PlainRuns"]

_CHECKSUM_FROM: Final = 6
_VALUES: Final = memoryview(array("Q", bytes(8 * VALUES)))
"""What `read_plain_send` writes to: it is read before the next message."""


class _Run:
    """Messages of one producer, one behind the other."""

    __slots__ = ("frames", "highest_sequence_ids", "linked", "sequence_ids")

    def __init__(self, linked: LinkedProducer) -> None:
        self.linked = linked
        self.frames = FrameRun(Magic.PULSAR_ENTRY)
        self.sequence_ids: array[int] = array("Q")
        self.highest_sequence_ids: array[int] = array("Q")


class PlainRuns:
    """The plain messages of one connection that were read and are not stored yet: all of one producer.

    They are stored before anything else of the connection is served, and when what one read brought is served.

    Args:
        link: the connection.
        used: whether any are taken; by default, whether the loop that reads them is compiled.
    """

    def __init__(self, link: Link, *, used: bool = COMPILED) -> None:
        self._link = link
        self._used = used
        self._run: _Run | None = None

    def take(self, frame: memoryview) -> bool:
        """Take a frame if it is a SEND of a plain message that can be stored without a further question.

        Returns:
            Whether it was taken. If not, what was taken before is stored.
        """
        values = _VALUES
        if self._used:
            position = read_plain_send(frame, values)
            if position >= 0:
                run = self._run
                number = values[PRODUCER_ID]
                if run is None or run.linked.number != number:
                    run = self._begin(number)
                if run is not None and self._add(run, frame[position:], values):
                    return True
        self.store()
        return False

    def _begin(self, number: int) -> _Run | None:
        """Begin a run of a producer, if there is one whose messages are stored without a further question."""
        self.store()
        linked = self._link.producers.get(number)
        if not isinstance(linked, LinkedProducer) or not linked.ready or linked.deduplicator is not None:
            return None
        self._run = _Run(linked)
        return self._run

    @staticmethod
    def _add(run: _Run, entry: memoryview, values: memoryview) -> bool:
        count, room_bytes = values[BATCH_COUNT], values[ROOM_BYTES]
        if (
            len(entry) > MESSAGE_BYTES_MAX
            or room_bytes > INFLATED_BATCH_BYTES_MAX
            or (values[IS_BATCH] and not 1 <= count <= min(room_bytes // MESSAGE_BYTES_MIN, BATCH_MESSAGES_MAX))
            or crc32c(entry[_CHECKSUM_FROM:]) != values[CHECKSUM]
        ):
            return False
        add_to_run(run.frames, entry, count, values[PUBLISH_TIME])
        run.sequence_ids.append(values[SEQUENCE_ID])
        run.highest_sequence_ids.append(values[HIGHEST_SEQUENCE_ID])
        return True

    def store(self) -> None:
        """Store what was taken; the receipts, or refusals, follow."""
        run, self._run = self._run, None
        if run is None or not run.frames.sizes:
            return
        receipts, linked = self._link.receipts, run.linked
        try:
            base_offset = linked.partition.append_run(run.frames, all_replicas=True)
            durable = linked.partition.durable()
        except (MillstreamError, OSError) as error:
            passing = isinstance(error, PASSING)
            # As one by one: where the producer connects again, the rest is passed over like what it sends meanwhile.
            refused = send_error(linked.number, run.sequence_ids[0], error) if passing else _refusals(run, error)
            receipts.add(None, lambda: refused, lambda _: refused, count=len(run.frames.sizes))
            if passing:
                linked.evict()
            return
        receipts.add(
            durable,
            lambda: _receipts(run, base_offset),
            lambda error: _refusals(run, error),
            count=len(run.frames.sizes),
        )


def _receipts(run: _Run, base_offset: int) -> bytes:
    linked, count = run.linked, len(run.sequence_ids)
    out = bytearray(count * RECEIPT_BYTES_MAX)
    written = write_receipts(
        memoryview(out),
        linked.number,
        linked.ledger_id,
        base_offset,
        linked.place.shown,
        count,
        memoryview(run.sequence_ids),
        memoryview(run.highest_sequence_ids),
        memoryview(array("Q", run.frames.counts)),
    )
    return bytes(memoryview(out)[:written])


def _refusals(run: _Run, error: Refusal) -> bytes:
    return b"".join(send_error(run.linked.number, sequence_id, error) for sequence_id in run.sequence_ids)
