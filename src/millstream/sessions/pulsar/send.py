"""SEND: storing an entry, and telling its producer once it is safe.

Receipts go out in the order of the messages: entries of one partition become durable in their order, and a refusal is
sent behind the receipts of what came before it.

Source: Pulsar binary protocol specification 3.0, "Send"; deduplication, PIP-6.
"""

from typing import Final

from millstream.broker.deduplication import Deduplicator, Verdict
from millstream.broker.errors import UnknownTopic
from millstream.broker.transactions import TransactionError
from millstream.model.errors import MillstreamError
from millstream.model.frame import HEADER_BYTES, read_frame_header, transaction_fields
from millstream.model.pending import Pending
from millstream.sessions.pulsar.error_table import Refusal, code_of
from millstream.sessions.pulsar.errors import MessageUnknown, NotAllowed
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.producers import LinkedProducer
from millstream.sessions.pulsar.transaction_ids import has_transaction, number_of
from millstream.sessions.pulsar.volatile_producers import VolatileProducer, send_volatile
from millstream.storage.errors import StorageError
from millstream.wire.pulsar.entry import Entry, check_entry, split_broker_entry_metadata
from millstream.wire.pulsar.errors import MalformedFrame
from millstream.wire.pulsar.frames import encode_command
from millstream.wire.pulsar.hot_commands import encode_send_receipt
from millstream.wire.pulsar.limits import ENTRY_BYTES_MAX
from millstream.wire.pulsar.pulsar_pb2 import CommandSend, CommandSendError
from millstream.wire.pulsar.stored_frame import build_frame

__all__ = ["PASSING", "handle_send", "send_error"]

_FRAME_BYTES_MAX: Final = HEADER_BYTES + ENTRY_BYTES_MAX
"""Bytes of a stored entry with the frame's own header."""
PASSING: Final = (OSError, StorageError, UnknownTopic)
"""Refusals after which a client connects its producer again, and sends again what was refused. What it had sent
behind that must not be taken: it would stand before it, and comes again as well."""
_NOWHERE: Final = -1
"""Ledger and entry of the receipt of a message that was there already."""


def handle_send(link: Link, command: CommandSend, data: memoryview) -> None:
    """Store an entry.

    Raises:
        MalformedFrame: there is no such producer. One that the server parted from a moment ago is passed over.
    """
    linked = link.producers.get(command.producer_id)
    if not isinstance(linked, LinkedProducer | VolatileProducer) or not linked.ready:
        if link.was_evicted(command.producer_id):
            return
        raise MalformedFrame(f"SEND for a producer {command.producer_id} that is not connected")
    try:
        # What another broker may have put before the entry is not the client's to tell: this one makes its own.
        _, data = split_broker_entry_metadata(data)
        if isinstance(linked, LinkedProducer):
            _store(link, linked, command, data, check_entry(data))
        else:
            send_volatile(link, linked, command, data)
    except (MillstreamError, OSError) as error:
        _refuse(link, command, error)
        if isinstance(error, PASSING):
            linked.evict()


def _store(link: Link, linked: LinkedProducer, command: CommandSend, data: memoryview, entry: Entry) -> None:
    if command.marker:
        raise NotAllowed("a client may not write markers")
    name = linked.producer.name
    highest = max(command.highest_sequence_id, command.sequence_id)
    deduplicator = linked.deduplicator
    if deduplicator is not None:
        verdict = deduplicator.judge(name, command.sequence_id)
        if verdict is Verdict.DUPLICATE:
            _answer(link, linked, command, _NOWHERE, None)
            return
        if verdict is Verdict.UNKNOWN:
            raise MessageUnknown("the message came before, and is not safe yet")
    frame, number = _framed(link, linked, command, data, entry)
    partition = linked.partition
    appended = partition.append(frame, read_frame_header(frame), all_replicas=True, bytes_max=_FRAME_BYTES_MAX)
    next_offset = appended.base_offset + entry.message_count
    if number is not None:
        link.broker.transactions.wrote(number, partition, appended.base_offset, next_offset)
    durable = partition.durable()
    if deduplicator is not None and not entry.has_more_chunks:
        deduplicator.pushed(name, highest)
        _note(deduplicator, name, highest, next_offset, durable)
    _answer(link, linked, command, appended.base_offset, durable)


def _framed(
    link: Link, linked: LinkedProducer, command: CommandSend, data: memoryview, entry: Entry
) -> tuple[memoryview, int | None]:
    """The frame of an entry, and the number of the transaction that it is a part of."""
    if not has_transaction(command):
        return memoryview(build_frame(data, entry)), None
    try:
        number = number_of(command)
        link.broker.transactions.check_writer(number, linked.place.topic, linked.place.partition)
    except TransactionError as error:
        # Of all that may be wrong with a transaction, clients tell their user this one only, and repeat the others.
        raise NotAllowed(str(error)) from None
    epoch, sequence = transaction_fields(number)
    return memoryview(
        build_frame(data, entry, producer_epoch=epoch, base_sequence=sequence, transactional=True)
    ), number


def _note(
    deduplicator: Deduplicator, name: str, highest: int, next_offset: int, durable: Pending[None] | None
) -> None:
    if durable is None:
        deduplicator.persisted(name, highest, next_offset)
        return

    def note(done: Pending[None]) -> None:
        try:
            done.result()
        except MillstreamError:
            deduplicator.failed(name)
        else:
            deduplicator.persisted(name, highest, next_offset)

    durable.when_done(note)


def _answer(
    link: Link, linked: LinkedProducer, command: CommandSend, entry_id: int, durable: Pending[None] | None
) -> None:
    number, sequence_id, highest = command.producer_id, command.sequence_id, command.highest_sequence_id
    ledger_id = _NOWHERE if entry_id == _NOWHERE else linked.ledger_id
    partition = linked.place.shown

    def receipt() -> bytes:
        return encode_send_receipt(number, sequence_id, ledger_id, entry_id, partition, highest)

    link.receipts.add(durable, receipt, lambda error: send_error(number, sequence_id, error))


def send_error(number: int, sequence_id: int, error: Refusal) -> bytes:
    """The frame of a SEND_ERROR."""
    return encode_command(
        CommandSendError(producer_id=number, sequence_id=sequence_id, error=code_of(error), message=str(error))
    )


def _refuse(link: Link, command: CommandSend, error: Refusal) -> None:
    """Tell a producer that a message was not taken, behind the receipts of what was."""
    refusal = send_error(command.producer_id, command.sequence_id, error)
    link.receipts.add(None, lambda: refusal, lambda _: refusal)
