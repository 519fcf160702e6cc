"""MESSAGE: what the log holds, as one consumer gets it.

An entry of a Pulsar producer goes out as it came in: its bytes are those of the log. A frame of another protocol is
one entry as well, or several if one would be too large.

Of an entry that is acknowledged in part, a set of bits says which messages are left, and clients leave out the rest.
But a client that keeps no account of single messages acknowledges a batch only when it has seen all of it, so that it
would never be done with such an entry. Where nobody on the subscription keeps such an account, and it is the first
messages of a batch that are acknowledged (which is where a consumer of another protocol leaves off), the others are
sent as an entry of their own.

Source: Pulsar binary protocol specification 3.0, "Message"; broker entry metadata, PIP-70.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from millstream.broker.subscriptions import Delivery, FrameSource
from millstream.model.frame import HEADER_BYTES, FrameHeader, Magic
from millstream.model.frame_span import FRAME_BYTES_MAX
from millstream.sessions.pulsar.entry_tail import entry_tail
from millstream.sessions.pulsar.remembered import Part, Remembered
from millstream.sessions.pulsar.single_entries import single_entries
from millstream.sessions.pulsar.translations import Piece, Translations, Where
from millstream.sessions.session import Buffer
from millstream.wire.pulsar.ack_set import encode_ack_set, open_messages
from millstream.wire.pulsar.entry import broker_entry_prefix, read_entry
from millstream.wire.pulsar.entry_run import EntryRun
from millstream.wire.pulsar.errors import InvalidEntry
from millstream.wire.pulsar.hot_commands import encode_message
from millstream.wire.pulsar.message_heads import MessageHeads

__all__ = ["Encoded", "MessageEncoder"]

_MAGIC: Final = b"\x0e\x01"
_CHECKSUM_END: Final = 6


class Encoded(NamedTuple):
    """Deliveries as frames of the protocol.

    Args:
        buffers: to write, one after the other; two a message, the bodies uncopied.
        empty: frames, or parts of frames, in which there is no message for anybody: base offset; the records of the
            frame that are to be had all the same, bit n for record n, None for none; how many are not.
    """

    buffers: list[Buffer]
    empty: list[tuple[int, int | None, int]]


@dataclass(slots=True, kw_only=True)
class MessageEncoder:
    """Encodes what one consumer is delivered.

    Args:
        consumer_id: the client's number of it.
        ledger_id, shown: what stands in its message ids: the ledger, and the number of the partition.
        where: the partition.
        translations: of frames that other protocols wrote.
        source: what it reads instead of the log, if anything.
        strips_checksum: whether the client knows no checksums.
        splits_batches: whether it knows no batches.
        broker_metadata: whether it is to be told when the broker took an entry, and its index.
        tells_epoch: whether it has given an epoch, to be given back.
        keeps_ids: whether it looks at message ids to leave out what came before one.
    """

    consumer_id: int
    ledger_id: int
    shown: int
    where: Where
    translations: Translations
    source: FrameSource | None
    strips_checksum: bool
    splits_batches: bool
    broker_metadata: bool
    tells_epoch: bool
    keeps_ids: bool
    _heads: MessageHeads | None = field(default=None, init=False)

    def encode(self, deliveries: Sequence[Delivery], epoch: int, remembered: Remembered) -> Encoded:
        """Encode the deliveries of one turn.

        Args:
            deliveries: as the subscription gives them.
            epoch: the consumer's.
            remembered: of the subscription.
        """
        encoded = Encoded([], [])
        told_epoch = epoch if self.tells_epoch else None
        heads = self._heads
        if heads is None or heads.epoch != told_epoch:
            heads = self._heads = MessageHeads(self.consumer_id, self.ledger_id, self.shown, told_epoch)
        head_of, append = heads.head, encoded.buffers.append
        plain = not (self.strips_checksum or self.splits_batches or self.broker_metadata or self.source is not None)
        runs: dict[int, EntryRun] | None = None
        run_offset = run_end = -1
        all_small = False
        rest = iter(deliveries)
        for delivery in rest:
            header, frame, redeliveries, wanted = delivery
            if plain and wanted is None and not redeliveries:
                base_offset = header.base_offset
                if header.magic == Magic.PULSAR_ENTRY and header.record_count > header.last_offset_delta:
                    append(head_of(base_offset, len(frame) - HEADER_BYTES))
                    append(frame[HEADER_BYTES:])
                    continue
                if run_offset < base_offset < run_end:
                    continue  # is in the run that is encoded already
                if runs is None:
                    frames = _small_frames(deliveries)
                    all_small = len(frames) == len(deliveries)
                    runs = self.translations.runs(self.where, frames)
                run = runs.get(base_offset)
                if run is not None:
                    append(heads.frames(run))
                    run_offset, run_end = base_offset, run.end_offset
                    if all_small:  # what is in the run stands side by side
                        count = len(run.offsets) - 1
                        next(islice(rest, count, count), None)
                    continue
            self._encode_pieces(encoded, delivery, told_epoch, remembered)
        return encoded

    def _encode_pieces(self, encoded: Encoded, delivery: Delivery, epoch: int | None, remembered: Remembered) -> None:
        header = delivery.header
        base_offset, frame_count = header.base_offset, header.last_offset_delta + 1
        pieces = self._pieces(header, delivery.frame)
        if self.splits_batches:
            pieces = tuple(single for piece in pieces for single in _apart(piece))
        if not pieces:
            encoded.empty.append((base_offset, None, frame_count))
        for piece in pieces:
            start, whole = piece.first_offset - base_offset, (1 << piece.message_count) - 1
            wanted = whole if delivery.wanted is None else delivery.wanted >> start & whole
            left = wanted if piece.open is None else wanted & piece.open
            if not wanted:
                continue
            if not left:
                part = Part(base_offset, start, piece.message_count, frame_count)
                encoded.empty.append((*part.acknowledged(None), wanted.bit_count()))
                continue
            sent, ack_set = piece, left
            if left != whole:
                sent = self._tail(piece, left, remembered) or piece
                ack_set = left >> sent.first_offset - piece.first_offset
            if sent.message_count != frame_count:
                part = Part(base_offset, sent.first_offset - base_offset, sent.message_count, frame_count)
                remembered.deliver_part(sent.first_offset, part)
            words = () if ack_set == (1 << sent.message_count) - 1 else encode_ack_set(ack_set)
            data, prefix = sent.data, b""
            if self.strips_checksum and bytes(data[:2]) == _MAGIC:
                data = data[_CHECKSUM_END:]
            if self.broker_metadata:
                prefix = broker_entry_prefix(sent.first_offset + sent.message_count - 1, max(header.max_timestamp, 0))
            size_bytes = len(prefix) + len(data)
            ids = self.consumer_id, self.ledger_id, sent.first_offset, self.shown
            encoded.buffers.append(encode_message(*ids, size_bytes, delivery.redelivery_count, words, epoch) + prefix)
            encoded.buffers.append(data)

    def _pieces(self, header: FrameHeader, frame: memoryview) -> tuple[Piece, ...]:
        """The entries that stand for a frame."""
        if header.magic != Magic.PULSAR_ENTRY:
            return self.translations.of(self.where, header, frame).entries
        data = frame[HEADER_BYTES:]
        left: int | None = None
        in_source = self.source is not None and header.base_offset < self.source.horizon
        if in_source or header.record_count <= header.last_offset_delta:
            try:
                left = open_messages(read_entry(data))
            except InvalidEntry:
                return ()
        return (Piece(header.base_offset, header.last_offset_delta + 1, data, left),)

    def _tail(self, piece: Piece, left: int, remembered: Remembered) -> Piece | None:
        """The rest of a batch as an entry of its own; None where it is to be sent with a set of bits."""
        start = (left & -left).bit_length() - 1
        offset = piece.first_offset + start
        if (
            left != (1 << piece.message_count) - (1 << start)
            or self.keeps_ids
            or remembered.acknowledges_messages
            or remembered.sought == offset
        ):
            return None
        try:
            data = entry_tail(read_entry(piece.data), start)
        except InvalidEntry:
            return None
        return Piece(offset, piece.message_count - start, memoryview(data)) if data is not None else None


def _apart(piece: Piece) -> Iterator[Piece]:
    """The messages of a batch, each as an entry; any other entry as it is."""
    try:
        singles = single_entries(read_entry(piece.data))
    except InvalidEntry:
        singles = None
    if singles is None:
        yield piece
        return
    for index, data in enumerate(singles):
        is_open = data is not None and (piece.open is None or piece.open >> index & 1)
        yield Piece(piece.first_offset + index, 1, memoryview(data or b""), None if is_open else 0)


def _small_frames(deliveries: Sequence[Delivery]) -> list[memoryview]:
    """The frames of other protocols that are sent whole and for the first time, but for large ones."""
    return [
        frame
        for _, frame, redeliveries, wanted in deliveries
        if wanted is None and not redeliveries and len(frame) <= FRAME_BYTES_MAX and frame[16] != Magic.PULSAR_ENTRY
    ]
