"""PRODUCER and CLOSE_PRODUCER: connecting to a partition to write to it, and leaving.

Source: Pulsar binary protocol specification 3.0, "Producer"; access modes, PIP-68.
"""

from typing import Final

from millstream.broker.deduplication import Deduplicator
from millstream.broker.errors import ProducersHeld, ProducersRefused
from millstream.broker.namespaces import BacklogAction
from millstream.broker.producers import AccessMode, Producer
from millstream.broker.subscriptions import StartAt
from millstream.model.errors import MillstreamError
from millstream.model.frame import FrameHeader, Magic
from millstream.model.pending import Pending, settled
from millstream.sessions.pulsar.errors import NotAllowed, NotReady
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.message_ids import NO_REQUEST, ledger_id_of
from millstream.sessions.pulsar.names import Place
from millstream.sessions.pulsar.schemas import register_producer_schema
from millstream.sessions.pulsar.topics import link_place
from millstream.wire.pulsar.entry import read_entry
from millstream.wire.pulsar.errors import InvalidEntry
from millstream.wire.pulsar.frames import encode_command
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandCloseProducer,
    CommandProducer,
    CommandProducerSuccess,
    CommandSuccess,
    ProducerAccessMode,
)

__all__ = ["LinkedProducer", "access_mode", "check_producer_count", "handle_close_producer", "handle_producer"]

_PRODUCERS_MAX: Final = 10_000
"""Producers of one connection: clients have one for each topic and partition that they write to."""
_FRAME_HEADER_BYTES: Final = 61
_MODES: Final = {
    ProducerAccessMode.Shared: AccessMode.SHARED,
    ProducerAccessMode.Exclusive: AccessMode.EXCLUSIVE,
    ProducerAccessMode.WaitForExclusive: AccessMode.WAIT_FOR_EXCLUSIVE,
    ProducerAccessMode.ExclusiveWithFencing: AccessMode.EXCLUSIVE_WITH_FENCING,
}


class LinkedProducer:
    """A producer of one connection.

    Args:
        link: the connection.
        number: by which the client knows it.
        place: the partition that it writes to.
        producer: its standing there.
        deduplicator: tells its messages from those that it sends again; None if the namespace does not want that.
        schema_version: of what it writes, as it is told.

    `ready` says whether it may send; `txn_enabled` whether it may send in transactions.
    """

    def __init__(
        self,
        link: Link,
        number: int,
        place: Place,
        producer: Producer,
        deduplicator: Deduplicator | None,
        schema_version: bytes,
    ) -> None:
        self.link = link
        self.number = number
        self.place = place
        self.partition = place.found()
        self.producer = producer
        self.deduplicator = deduplicator
        self.schema_version = schema_version
        self.ledger_id = ledger_id_of(place.topic)
        self.ready = False
        self.gone = False

    def resume(self) -> None:
        """Nothing is kept back here: receipts are small."""

    def close(self) -> None:
        """Leave the partition; the connection is gone, or the client said so."""
        if not self.gone:
            self.gone = True
            self.link.broker.producers.disconnect(self.place.topic.id, self.place.partition, self.producer)

    def evict(self) -> None:
        """Part from the client: it looks the topic up again, and comes back if it may.

        It is told behind the receipts that it is due, as it sends again whatever it has none for.
        """
        self.close()
        link = self.link
        if link.producers.get(self.number) is self:
            del link.producers[self.number]
            link.evicted(self.number)
            closed = CommandCloseProducer(producer_id=self.number, request_id=NO_REQUEST)
            link.receipts.add(None, lambda: link.tell_closed(closed), lambda _: link.tell_closed(closed))


def handle_producer(link: Link, command: CommandProducer) -> None:
    """Connect a producer."""
    number = command.producer_id
    there = link.producers.get(number)
    if isinstance(there, LinkedProducer) and there.ready and there.producer.epoch >= command.epoch:
        # Asked a second time, because the answer took too long: it is the same answer.
        _succeed(link, command.request_id, there)
        return
    check_producer_count(link, number)
    mode = access_mode(command)
    link.connecting[number] = command
    connecting = link_place(link, command.topic).chain(lambda place: _connect(link, command, mode, place))

    def arrived(_: Pending[None]) -> None:
        if link.connecting.get(number) is command:
            del link.connecting[number]

    connecting.when_done(arrived)
    link.answer(command.request_id, connecting, lambda _: None)


def check_producer_count(link: Link, number: int) -> None:
    """Refuse a producer over the limit of a connection. Raises NotAllowed."""
    if number not in link.producers and len(link.producers) + len(link.connecting) >= _PRODUCERS_MAX:
        raise NotAllowed(f"a connection has at most {_PRODUCERS_MAX} producers")


def access_mode(command: CommandProducer) -> AccessMode:
    """Who may write beside a producer. Raises NotAllowed: it asks for something that does not exist."""
    mode = _MODES.get(command.producer_access_mode)
    if mode is None:
        raise NotAllowed(f"there is no access mode {command.producer_access_mode}")
    return mode


def _connect(link: Link, command: CommandProducer, mode: AccessMode, place: Place) -> Pending[None]:
    place.found().check_open()  # the client learns at once that nothing can be written there
    _check_count(link, place)
    _check_backlog(link, place)
    schema = command.schema if command.HasField("schema") else None
    version = register_producer_schema(link, place.topic, schema)
    subscribed = version.chain(lambda _: _initial_subscription(link, command, place))
    deduplicator = subscribed.chain(lambda _: _deduplicator(link, place))
    return deduplicator.chain(lambda found: _enter(link, command, mode, place, found, version.result()))


def _check_backlog(link: Link, place: Place) -> None:
    """Keep producers out while a subscription is too far behind. Raises ProducersHeld, ProducersRefused."""
    quota = link.broker.backlogs.closed_by(place.topic, place.partition)
    if quota is not None:
        error = ProducersHeld if quota.action is BacklogAction.HOLD_PRODUCERS else ProducersRefused
        raise error("a subscription is further behind than its namespace allows")


def _check_count(link: Link, place: Place) -> None:
    """Refuse a producer over the limit of its namespace."""
    namespace = link.broker.namespaces.find(place.topic.name.tenant, place.topic.name.namespace)
    limit = namespace.policies.producers_per_topic_max if namespace is not None else None
    if limit and sum(1 for _ in link.broker.producers.of(place.topic.id, place.partition)) >= limit:
        raise NotAllowed(f"the topic has {limit} producers already, as many as its namespace allows")


def _initial_subscription(link: Link, command: CommandProducer, place: Place) -> Pending[object]:
    """Make the subscription that a producer of dead letters wants to be there before its first message."""
    name = command.initial_subscription_name
    if not name:
        return settled(None)
    made = link.broker.subscriptions.create(place.topic, place.partition, name, StartAt.EARLIEST)
    return made.then(lambda subscription: subscription)


def _enter(
    link: Link,
    command: CommandProducer,
    mode: AccessMode,
    place: Place,
    deduplicator: Deduplicator | None,
    version: bytes,
) -> Pending[None]:
    number = command.producer_id
    if link.closed:
        return settled(None)
    if link.connecting.get(number) is not command:
        raise NotReady("the producer was closed, or asked for again, before it was connected")
    del link.connecting[number]

    def displaced(_: MillstreamError) -> None:
        linked.evict()

    producer = Producer(
        name=command.producer_name,
        connection=link,
        number=number,
        epoch=command.epoch,
        mode=mode,
        displaced=displaced,
        topic_epoch=command.topic_epoch if command.HasField("topic_epoch") else None,
    )
    linked = LinkedProducer(link, number, place, producer, deduplicator, version)
    before = link.producers.get(number)
    link.producers[number] = linked
    if isinstance(before, LinkedProducer) and not before.ready:
        before.close()  # it waits to be alone, and this is the same producer asking again
    entering = link.broker.producers.connect(place.topic.id, place.partition, producer)

    def enter(_: None) -> None:
        if linked.gone:
            return
        if before is not None:
            before.close()
        linked.ready = True
        _succeed(link, command.request_id, linked)

    def refuse(pending: Pending[None]) -> None:
        try:
            pending.result()
        except MillstreamError:
            linked.close()
            if before is not None:
                before.close()
            if link.producers.get(number) is linked:
                del link.producers[number]

    if not entering.done and mode is AccessMode.WAIT_FOR_EXCLUSIVE:
        link.send(
            CommandProducerSuccess(request_id=command.request_id, producer_name=producer.name, producer_ready=False)
        )
    entering.when_done(refuse)
    return entering.then(enter)


def _succeed(link: Link, request_id: int, linked: LinkedProducer) -> None:
    deduplicator, producer = linked.deduplicator, linked.producer
    answer = CommandProducerSuccess(
        request_id=request_id,
        producer_name=producer.name,
        last_sequence_id=-1 if deduplicator is None else deduplicator.last_sequence(producer.name),
        schema_version=linked.schema_version,
        producer_ready=True,
    )
    if producer.topic_epoch is not None:
        answer.topic_epoch = producer.topic_epoch
    link.send(answer)


def _deduplicator(link: Link, place: Place) -> Pending[Deduplicator | None]:
    namespace = link.broker.namespaces.find(place.topic.name.tenant, place.topic.name.namespace)
    wanted = namespace.policies.deduplication if namespace is not None else None
    if not (link.broker.settings.deduplication if wanted is None else wanted):
        return settled(None)
    partition = place.found()
    deduplicator = link.broker.deduplication.of(place.topic.id, partition, _writer_of)
    return deduplicator.ready.then(lambda _: deduplicator)


def _writer_of(header: FrameHeader, frame: memoryview) -> tuple[str, int] | None:
    """Who wrote a stored frame, and the highest sequence id in it."""
    if header.magic != Magic.PULSAR_ENTRY:
        return None
    try:
        entry = read_entry(frame[_FRAME_HEADER_BYTES:])
    except InvalidEntry:
        return None
    if entry.has_more_chunks:
        return None  # the message is not there as long as its last chunk is not
    metadata = entry.metadata
    return metadata.producer_name, max(metadata.sequence_id, metadata.highest_sequence_id)


def handle_close_producer(link: Link, command: CommandCloseProducer) -> None:
    """Let a producer go. What it has sent is answered first."""
    link.connecting.pop(command.producer_id, None)
    linked = link.producers.pop(command.producer_id, None)
    if linked is not None:
        linked.close()
    done = encode_command(CommandSuccess(request_id=command.request_id))
    link.receipts.add(None, lambda: done, lambda _: done)
