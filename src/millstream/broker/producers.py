"""Producers that stay connected to a partition: their names, and who may write beside whom.

A name is used once at a time on a partition. An exclusive producer is alone; each new one raises the partition's
epoch, which lasts, so that one that was displaced and comes back with an older epoch is fenced off.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol
from uuid import UUID

from millstream.broker.documents import Documents
from millstream.broker.errors import BrokerError, ProducerBusy, ProducerFenced, UnknownTopic
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Runtime

__all__ = ["AccessMode", "Connection", "Producer", "Producers"]

EPOCH_DOCUMENT: Final = "topic-epoch"
_NAME_BYTES: Final = 6
"""Random bytes in generated names: what tells those of one start of the server from those of another."""


class AccessMode(Enum):
    """Who may write to a partition beside a producer."""

    SHARED = "shared"
    """Any number of others."""
    EXCLUSIVE = "exclusive"
    """Nobody; refused if anybody is there."""
    WAIT_FOR_EXCLUSIVE = "wait for exclusive"
    """Nobody; waits until it is alone."""
    EXCLUSIVE_WITH_FENCING = "exclusive with fencing"
    """Nobody; whoever is there is displaced."""


class Connection(Protocol):
    """What a producer is connected by."""

    def probe(self) -> Pending[bool]:
        """Find out whether the peer is there; resolves within seconds, and with False the connection has ended."""


@dataclass(slots=True, eq=False, kw_only=True)
class Producer:
    """A producer.

    Args:
        name: unique on its partition; "" to be given one.
        connection: its own; `number` tells it from others on the same one.
        number: by which its connection knows it.
        epoch: grows with every time that it connects again.
        mode: who may write beside it.
        displaced: is called when it has to go for another, with the reason.
        topic_epoch: of an exclusive producer, as it remembers it; None for a new one.
    """

    name: str
    connection: Connection
    number: int
    epoch: int
    mode: AccessMode
    displaced: Callable[[MillstreamError], None]
    topic_epoch: int | None = None

    def succeeds(self, other: "Producer") -> bool:
        """Whether it is the same producer, come again."""
        same = self.connection is other.connection and self.number == other.number
        return same and self.epoch > other.epoch


class _Partition:
    """The producers of one partition."""

    __slots__ = ("connected", "epoch", "waiting")

    def __init__(self, epoch: int) -> None:
        self.connected: dict[str, Producer] = {}
        self.waiting: list[tuple[Producer, Pending[None]]] = []
        self.epoch = epoch

    @property
    def exclusive(self) -> Producer | None:
        """The producer that is alone, if there is one."""
        for producer in self.connected.values():
            return producer if producer.mode is not AccessMode.SHARED else None
        return None


Place = tuple[UUID, int]


class Producers:
    """The producers connected to each partition.

    Args:
        runtime: chance, for names.
        documents: where epochs last.
    """

    def __init__(self, runtime: Runtime, documents: Documents) -> None:
        self._documents = documents
        self._stem = f"millstream-{runtime.random_bytes(_NAME_BYTES).hex()}"
        self._named = 0
        self._partitions: dict[Place, _Partition] = {}

    def connect(self, topic_id: UUID, index: int, producer: Producer) -> Pending[None]:
        """Connect a producer. It gets a name and, if it is exclusive, its epoch.

        Args:
            topic_id, index: the partition.
            producer: is connected once the answer is there, and until `disconnect`, which may come earlier.

        Returns:
            Resolves when it may write; that of WAIT_FOR_EXCLUSIVE may take as long as it likes. Fails with
            ProducerBusy, ProducerFenced, MetadataFailed.
        """
        if not producer.name:
            self._named += 1
            producer.name = f"{self._stem}-{self._named}"
        return Pending.attempt(lambda: self._connect((topic_id, index), producer))

    def _connect(self, place: Place, producer: Producer) -> Pending[None]:
        partition = self._of(place)
        there = partition.connected.get(producer.name)
        if there is not None:
            return self._again(place, producer, there)
        match producer.mode:
            case AccessMode.SHARED:
                if partition.exclusive is not None or partition.waiting:
                    raise ProducerBusy("the topic has an exclusive producer")
                partition.connected[producer.name] = producer
                return settled(None)
            case AccessMode.EXCLUSIVE:
                if partition.connected or partition.waiting:
                    raise ProducerFenced("the topic has other producers")
            case AccessMode.WAIT_FOR_EXCLUSIVE:
                if partition.connected or partition.waiting:
                    turn: Pending[None] = Pending()
                    partition.waiting.append((producer, turn))
                    return turn
            case AccessMode.EXCLUSIVE_WITH_FENCING:
                self._check_epoch(partition, producer)
                self._displace_all(partition, _taken())
        return self._enter(place, partition, producer)

    def _again(self, place: Place, producer: Producer, there: Producer) -> Pending[None]:
        """Connect under a name that is in use."""
        if producer.succeeds(there):
            return self._replace(place, producer, there)
        if producer.mode is AccessMode.EXCLUSIVE_WITH_FENCING:
            self._check_epoch(self._of(place), producer)
            self._displace_all(self._of(place), _taken())
            return self._connect(place, producer)
        if producer.connection is there.connection:
            raise ProducerBusy(f"a producer {producer.name!r} is connected already")

        def decide(alive: bool) -> Pending[None]:
            if alive:
                raise ProducerBusy(f"a producer {producer.name!r} is connected already")
            self.disconnect(*place, there)
            return self._connect(place, producer)

        return there.connection.probe().chain(decide)

    def _replace(self, place: Place, producer: Producer, there: Producer) -> Pending[None]:
        """Let a producer that has come again take its own place, whoever waits for that."""
        if (producer.mode is AccessMode.SHARED) != (there.mode is AccessMode.SHARED):
            self.disconnect(*place, there)
            return self._connect(place, producer)
        partition = self._of(place)
        if producer.mode is not AccessMode.SHARED:
            return self._enter(place, partition, producer)
        partition.connected[producer.name] = producer
        return settled(None)

    def _enter(self, place: Place, partition: _Partition, producer: Producer) -> Pending[None]:
        """Let a producer in that is alone."""
        self._check_epoch(partition, producer)
        self._partitions[place] = partition  # which those that were displaced may have left empty
        partition.epoch = partition.epoch + 1 if producer.topic_epoch is None else producer.topic_epoch
        producer.topic_epoch = partition.epoch
        partition.connected[producer.name] = producer

        def leave_again(stored: Pending[None]) -> None:
            if stored.failed:
                self.disconnect(*place, producer)

        stored = self._documents.put(EPOCH_DOCUMENT, _key(place), {"epoch": partition.epoch})
        stored.when_done(leave_again)
        return stored

    @staticmethod
    def _check_epoch(partition: _Partition, producer: Producer) -> None:
        if producer.topic_epoch is not None and producer.topic_epoch < partition.epoch:
            raise ProducerFenced("another exclusive producer has come since")

    @staticmethod
    def _displace_all(partition: _Partition, error: BrokerError) -> None:
        connected, partition.connected = partition.connected, {}
        waiting, partition.waiting = partition.waiting, []
        for producer in connected.values():
            producer.displaced(error)
        for _, turn in waiting:
            turn.fail(error)

    def disconnect(self, topic_id: UUID, index: int, producer: Producer) -> None:
        """Let a producer go, or call off its waiting; nothing happens if it is neither here nor waiting."""
        place = topic_id, index
        partition = self._partitions.get(place)
        if partition is None:
            return
        partition.waiting = [(one, turn) for one, turn in partition.waiting if one is not producer]
        if partition.connected.get(producer.name) is producer:
            del partition.connected[producer.name]
        while not partition.connected and partition.waiting:
            self._let_in(place, partition)
        # Whoever was refused just now may have come here again.
        if not partition.connected and not partition.waiting and self._partitions.get(place) is partition:
            del self._partitions[place]

    def _let_in(self, place: Place, partition: _Partition) -> None:
        """Let the first that waits in."""
        producer, turn = partition.waiting.pop(0)

        def tell(entered: Pending[None]) -> None:
            try:
                turn.resolve(entered.result())
            except MillstreamError as error:
                turn.fail(error)

        Pending.attempt(lambda: self._enter(place, partition, producer)).when_done(tell)

    def of(self, topic_id: UUID, index: int) -> Iterator[Producer]:
        """The producers connected to a partition."""
        partition = self._partitions.get((topic_id, index))
        return iter([]) if partition is None else iter(list(partition.connected.values()))

    def forget_topic(self, topic_id: UUID, first: int = 0) -> None:
        """Part from the producers of a topic that is gone, or of its partitions from one on; drop what lasts."""
        error = UnknownTopic("the topic was deleted")
        for place in [place for place in self._partitions if place[0] == topic_id and place[1] >= first]:
            self._displace_all(self._partitions.pop(place), error)
        for key in list(self._documents.of_kind(EPOCH_DOCUMENT)):
            owner, _, index = key.partition("/")
            if owner == str(topic_id) and int(index) >= first:
                self._documents.delete(EPOCH_DOCUMENT, key)

    def _of(self, place: Place) -> _Partition:
        partition = self._partitions.get(place)
        if partition is None:
            document = self._documents.find(EPOCH_DOCUMENT, _key(place)) or {}
            partition = self._partitions[place] = _Partition(document.get("epoch", -1))
        return partition


def _taken() -> ProducerFenced:
    return ProducerFenced("another producer has taken the topic for itself")


def _key(place: Place) -> str:
    return f"{place[0]}/{place[1]}"
