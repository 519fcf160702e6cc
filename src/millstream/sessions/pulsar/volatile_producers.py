"""PRODUCER and SEND on topics that keep nothing: non-persistent://...

A receipt goes out at once. Its message id is of a ledger that nobody can read: the number of the topic since the
server started, and the offset that the message had. A message that was dropped because the client has too many under
way gets the id (-1, -1), as from Apache Pulsar.
"""

from typing import Final

from millstream.broker.errors import UnknownTopic
from millstream.broker.producers import AccessMode, Producer
from millstream.broker.volatile import VolatileTopic
from millstream.model.errors import MillstreamError
from millstream.model.frame import read_frame_header
from millstream.model.pending import Pending, settled
from millstream.sessions.pulsar.errors import NotAllowed
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.message_ids import NO_REQUEST
from millstream.sessions.pulsar.names import PulsarName, parse_name
from millstream.sessions.pulsar.producers import access_mode, check_producer_count
from millstream.sessions.pulsar.schemas import declared, register_producer_schema
from millstream.sessions.pulsar.topics import check_creation
from millstream.sessions.pulsar.transaction_ids import has_transaction
from millstream.wire.pulsar.entry import check_entry
from millstream.wire.pulsar.hot_commands import encode_send_receipt
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandCloseProducer,
    CommandProducer,
    CommandProducerSuccess,
    CommandSend,
)
from millstream.wire.pulsar.pulsar_pb2 import Schema as SchemaMessage
from millstream.wire.pulsar.stored_frame import build_frame

__all__ = ["VolatileProducer", "enter_topic", "handle_producer", "send_volatile"]

_IN_FLIGHT_MAX: Final = 1000
"""Messages of one connection that wait for their receipt to be sent, behind those of other topics that wait for the
disk, above which more are dropped; as Apache Pulsar has it."""
_DROPPED: Final = -1


class VolatileProducer:
    """A producer of one connection.

    Args:
        link: the connection.
        number: by which the client knows it.
        topic: what it writes to.
        shown: the number of the partition that message ids carry, -1 for none.
        producer: its standing there.
    """

    def __init__(self, link: Link, number: int, topic: VolatileTopic, shown: int, producer: Producer) -> None:
        self.link = link
        self.number = number
        self.topic = topic
        self.shown = shown
        self.producer = producer
        self.schema_version = b""
        self.ready = False
        self.gone = False

    def resume(self) -> None:
        """Nothing is kept back here: receipts are small."""

    def close(self) -> None:
        """Leave the topic."""
        if not self.gone:
            self.gone = True
            broker = self.link.broker
            broker.producers.disconnect(self.topic.id, 0, self.producer)
            broker.volatile.leave(self.topic)

    def evict(self) -> None:
        """Part from the client: it looks the topic up again, and comes back if it may."""
        self.close()
        link = self.link
        if link.producers.get(self.number) is self:
            del link.producers[self.number]
            link.evicted(self.number)
            closed = CommandCloseProducer(producer_id=self.number, request_id=NO_REQUEST)
            link.receipts.add(None, lambda: link.tell_closed(closed), lambda _: link.tell_closed(closed))


def enter_topic(link: Link, name: PulsarName, *, create: bool = True) -> VolatileTopic:
    """The topic of a name, for one producer or consumer more; it is to be left again.

    Raises:
        UnknownTopic, NamespaceError: it is not there, and none is made.
    """
    broker = link.broker
    partitions = broker.volatile.declarations.partitions(name.base)
    if partitions and (name.partition is None or name.partition >= partitions):
        raise UnknownTopic(f"{name.base.name} has the partitions 0 to {partitions - 1}: there is no topic {name}")
    if not partitions and broker.volatile.find(name.topic) is None:
        check_creation(link, name, create=create)
    return broker.volatile.enter(name.topic, name.partition or 0)


def handle_producer(link: Link, command: CommandProducer) -> None:
    """Connect a producer to a topic that keeps nothing."""
    number = command.producer_id
    there = link.producers.get(number)
    if isinstance(there, VolatileProducer) and there.ready and there.producer.epoch >= command.epoch:
        _succeed(there, command)
        return
    check_producer_count(link, number)
    mode = access_mode(command)
    if command.initial_subscription_name:
        raise NotAllowed("a topic that keeps nothing has no subscriptions without consumers")
    name = parse_name(command.topic)
    topic = enter_topic(link, name)

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
    linked = VolatileProducer(link, number, topic, -1 if name.partition is None else name.partition, producer)
    link.producers[number] = linked

    def enter(schema_version: bytes) -> None:
        if not linked.gone:
            if there is not None:
                there.close()
            linked.ready = True
            linked.schema_version = schema_version
            _succeed(linked, command)

    def forget(entering: Pending[bytes]) -> None:
        try:
            entering.result()
        except MillstreamError:
            linked.close()
            if there is not None:
                there.close()
            if link.producers.get(number) is linked:
                del link.producers[number]

    schema = command.schema if command.HasField("schema") else None
    registered = Pending.attempt(lambda: _register_schema(link, name, schema))
    entering = registered.chain(lambda version: _connect(linked, version))
    if not entering.done and mode is AccessMode.WAIT_FOR_EXCLUSIVE:
        link.send(
            CommandProducerSuccess(request_id=command.request_id, producer_name=producer.name, producer_ready=False)
        )
    entering.when_done(forget)
    link.answer(command.request_id, entering.then(enter), lambda _: None)


def _connect(linked: VolatileProducer, schema_version: bytes) -> Pending[bytes]:
    if linked.gone:  # while its schema was being kept
        return settled(schema_version)
    connected = linked.link.broker.producers.connect(linked.topic.id, 0, linked.producer)
    return connected.then(lambda _: schema_version)


def _register_schema(link: Link, name: PulsarName, schema: SchemaMessage | None) -> Pending[bytes]:
    found = declared(link, name, schema)
    return found.chain(lambda topic: settled(b"") if topic is None else register_producer_schema(link, topic, schema))


def _succeed(linked: VolatileProducer, command: CommandProducer) -> None:
    producer = linked.producer
    answer = CommandProducerSuccess(
        request_id=command.request_id,
        producer_name=producer.name,
        schema_version=linked.schema_version,  # the Java client fails where the field is not set at all
        producer_ready=True,
    )
    if producer.topic_epoch is not None:
        answer.topic_epoch = producer.topic_epoch
    linked.link.send(answer)


def send_volatile(link: Link, linked: VolatileProducer, command: CommandSend, data: memoryview) -> None:
    """Deliver an entry to whoever can take it now. Raises NotAllowed, InvalidEntry: it is refused."""
    if has_transaction(command):
        raise NotAllowed("a topic that keeps nothing takes part in no transaction")
    if command.marker:
        raise NotAllowed("a client may not write markers")
    entry = check_entry(data)
    number, sequence_id, highest = command.producer_id, command.sequence_id, command.highest_sequence_id
    ledger_id = entry_id = _DROPPED
    if link.volatile_in_flight < _IN_FLIGHT_MAX:
        frame = memoryview(build_frame(data, entry))
        ledger_id, entry_id = linked.topic.number, linked.topic.publish(frame, read_frame_header(frame))

    def receipt() -> bytes:
        link.volatile_in_flight -= 1
        return encode_send_receipt(number, sequence_id, ledger_id, entry_id, linked.shown, highest)

    link.volatile_in_flight += 1
    link.receipts.add(None, receipt, lambda _: b"")
