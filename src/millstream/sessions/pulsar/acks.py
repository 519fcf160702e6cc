"""ACK: what need not be delivered again.

Source: Pulsar binary protocol specification 3.0, "Ack"; acknowledgement of messages of a batch, PIP-54; receipts,
PIP-66.
"""

from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.sessions.pulsar.consumers import LinkedConsumer, find_consumer
from millstream.sessions.pulsar.error_table import Refusal, code_of
from millstream.sessions.pulsar.errors import NotAllowed
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.message_ids import as_signed, wanted_of
from millstream.sessions.pulsar.remembered import Acknowledgement
from millstream.sessions.pulsar.transaction_ids import has_transaction, number_of
from millstream.wire.pulsar.pulsar_pb2 import CommandAck, CommandAckResponse

__all__ = ["handle_ack"]


def handle_ack(link: Link, command: CommandAck) -> None:
    """Acknowledge; tell the client once it lasts, if it wants to know.

    A message that the client could not make sense of (`validation_error`) counts as acknowledged like any other.
    """
    linked = find_consumer(link, command.consumer_id)
    if linked is None:
        return
    if has_transaction(command):
        _acknowledge_in_transaction(link, command, linked)
        return
    if command.ack_type == CommandAck.Individual:
        linked.consumer.acknowledge(_individual(linked, command).items())
    elif len(command.message_id) == 1:
        up_to = _up_to(linked, command)
        if up_to is not None:
            linked.consumer.acknowledge_cumulative(*up_to)
    if command.HasField("request_id"):
        _answer(link, command, linked)


def _individual(linked: LinkedConsumer, command: CommandAck) -> dict[int, int | None]:
    """What of which frame is still wanted. Each frame once: a frame may be large, and be named a thousand times."""
    frames: dict[int, int | None] = {}
    ledger_id, remembered = linked.ledger_id, linked.remembered
    for message_id in command.message_id:
        if message_id.ledgerId != ledger_id:
            continue  # of a topic of this name that is gone
        entry_id = as_signed(message_id.entryId)
        wanted = None
        if message_id.ack_set:
            remembered.acknowledges_messages = True
            wanted = wanted_of(message_id.ack_set)
        part = remembered.part(entry_id)
        if part is not None:
            if wanted is None:
                remembered.forget_part(entry_id)
            entry_id, wanted = part.acknowledged(wanted)
        if entry_id >= 0:
            before = frames.get(entry_id, wanted)
            frames[entry_id] = None if wanted is None or before is None else before & wanted
    return frames


def _up_to(linked: LinkedConsumer, command: CommandAck) -> Acknowledgement | None:
    """What a cumulative acknowledgement means; None if it means nothing."""
    message_id = command.message_id[0]
    entry_id = as_signed(message_id.entryId)
    if message_id.ledgerId != linked.ledger_id or entry_id >= linked.partition.log.end_offset:
        return None
    wanted = None
    if message_id.ack_set:
        linked.remembered.acknowledges_messages = True
        wanted = wanted_of(message_id.ack_set)
    part = linked.remembered.part(entry_id)
    if part is not None:
        entry_id, wanted = part.acknowledged_up_to(wanted)
    return entry_id, wanted


def _acknowledge_in_transaction(link: Link, command: CommandAck, linked: LinkedConsumer) -> None:
    """Acknowledge once a transaction is committed. What cannot be acknowledged so is told in the answer."""
    transactions, subscription = link.broker.transactions, linked.subscription

    def acknowledge() -> Pending[None]:
        number = number_of(command)
        if command.ack_type == CommandAck.Individual:
            return transactions.acknowledge(number, subscription, _individual(linked, command).items())
        up_to = _up_to(linked, command) if len(command.message_id) == 1 else None
        if up_to is None:
            raise NotAllowed("everything up to a message is acknowledged by naming one that there is")
        return transactions.acknowledge_cumulative(number, subscription, *up_to)

    def succeed(_: None) -> None:
        if command.HasField("request_id"):
            link.send(
                CommandAckResponse(
                    consumer_id=command.consumer_id,
                    request_id=command.request_id,
                    txnid_least_bits=command.txnid_least_bits,
                    txnid_most_bits=command.txnid_most_bits,
                )
            )

    Pending.attempt(acknowledge).settle(succeed, lambda error: _answer_error(link, command, error))


def _answer(link: Link, command: CommandAck, linked: LinkedConsumer) -> None:
    consumer_id, request_id = command.consumer_id, command.request_id

    def succeed(_: None) -> None:
        link.send(CommandAckResponse(consumer_id=consumer_id, request_id=request_id))

    def refuse(error: MillstreamError) -> None:
        _answer_error(link, command, error)

    (linked.subscription.persist() or settled(None)).settle(succeed, refuse)


def _answer_error(link: Link, command: CommandAck, error: Refusal) -> None:
    if not command.HasField("request_id"):
        return
    answer = CommandAckResponse(
        consumer_id=command.consumer_id, request_id=command.request_id, error=code_of(error), message=str(error)
    )
    if command.HasField("txnid_least_bits"):
        answer.txnid_least_bits = command.txnid_least_bits
    if command.HasField("txnid_most_bits"):
        answer.txnid_most_bits = command.txnid_most_bits
    link.send(answer)
