"""Producers of a partition: names, access modes, epochs, and what is left when a connection is dead."""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from millstream.broker.documents import Documents
from millstream.broker.errors import ProducerBusy, ProducerFenced
from millstream.broker.producers import AccessMode, Producer, Producers
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.storage.metadata import MetadataFailed, MetadataStore
from tests.support.simulated_runtime import SimulatedRuntime

TOPIC = UUID(int=7)


class Connection:
    """A connection that is there, or is not."""

    def __init__(self) -> None:
        self.alive = True
        self.probed = 0

    def probe(self) -> Pending[bool]:
        self.probed += 1
        return settled(self.alive)


class Place:
    """One partition and those who want to write to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.starts = 0
        self.start()

    def start(self) -> None:
        self.starts += 1
        self.runtime = SimulatedRuntime(self.starts)
        store = MetadataStore(self.runtime, f"sqlite:///{self.path}", durable=False)
        self.documents = Documents(store, store.load().documents)
        self.producers = Producers(self.runtime, self.documents)
        self.displaced: list[Producer] = []

    def producer(
        self,
        name: str = "",
        mode: AccessMode = AccessMode.SHARED,
        connection: Connection | None = None,
        *,
        number: int = 0,
        epoch: int = 0,
        topic_epoch: int | None = None,
    ) -> Producer:
        def displaced(_: MillstreamError) -> None:
            self.displaced.append(made)

        made = Producer(
            name=name,
            connection=connection or Connection(),
            number=number,
            epoch=epoch,
            mode=mode,
            displaced=displaced,
            topic_epoch=topic_epoch,
        )
        return made

    def connect(self, producer: Producer) -> Pending[None]:
        pending = self.producers.connect(TOPIC, 0, producer)
        self.runtime.run()
        return pending

    def connected(self, *arguments: object, **options: object) -> Producer:
        build: Callable[..., Producer] = self.producer
        producer = build(*arguments, **options)
        self.connect(producer).result()
        return producer

    def leave(self, producer: Producer) -> None:
        self.producers.disconnect(TOPIC, 0, producer)
        self.runtime.run()

    def names(self) -> list[str]:
        return [producer.name for producer in self.producers.of(TOPIC, 0)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "metadata")


def test_names_are_made_where_none_is_given_and_never_twice(place: Place) -> None:
    names = {place.connected().name for _ in range(100)}
    place.start()
    names |= {place.connected().name for _ in range(100)}
    assert len(names) == 200


def test_a_name_is_used_once_at_a_time(place: Place) -> None:
    first = place.connected("a")
    with pytest.raises(ProducerBusy):
        place.connect(place.producer("a")).result()
    assert isinstance(first.connection, Connection)
    assert first.connection.probed == 1
    place.leave(first)
    place.connected("a")
    assert place.names() == ["a"]


def test_a_name_of_a_dead_connection_is_free(place: Place) -> None:
    dead = Connection()
    old = place.connected("a", connection=dead)
    dead.alive = False
    new = place.connected("a")
    place.leave(old)  # its connection is found to be gone only now
    assert list(place.producers.of(TOPIC, 0)) == [new]


def test_the_same_producer_come_again_takes_its_own_place(place: Place) -> None:
    connection = Connection()
    old = place.connected("a", connection=connection, number=3, epoch=0)
    new = place.connected("a", connection=connection, number=3, epoch=1)
    place.leave(old)
    assert list(place.producers.of(TOPIC, 0)) == [new]
    with pytest.raises(ProducerBusy):
        place.connect(place.producer("a", connection=connection, number=4, epoch=9)).result()
    assert connection.probed == 0


def test_an_exclusive_producer_is_alone(place: Place) -> None:
    exclusive = place.connected("a", AccessMode.EXCLUSIVE)
    with pytest.raises(ProducerBusy):
        place.connect(place.producer("b")).result()
    with pytest.raises(ProducerFenced):
        place.connect(place.producer("c", AccessMode.EXCLUSIVE)).result()
    place.leave(exclusive)
    place.connected("b")
    with pytest.raises(ProducerFenced):
        place.connect(place.producer("c", AccessMode.EXCLUSIVE)).result()


def test_those_who_wait_are_let_in_one_after_the_other(place: Place) -> None:
    shared = place.connected("a")
    waiting = [place.producer(name, AccessMode.WAIT_FOR_EXCLUSIVE) for name in "bcd"]
    turns = [place.connect(producer) for producer in waiting]
    with pytest.raises(ProducerBusy):
        place.connect(place.producer("e")).result()  # it would keep those waiting for ever
    place.leave(shared)
    assert [turn.done for turn in turns] == [True, False, False]
    place.leave(waiting[1])  # gives up
    place.leave(waiting[0])
    assert [turn.done for turn in turns] == [True, False, True]
    assert waiting[2].topic_epoch == (waiting[0].topic_epoch or 0) + 1


def test_who_fences_displaces_all(place: Place) -> None:
    shared = [place.connected(name) for name in "ab"]
    waiting = place.producer("w", AccessMode.WAIT_FOR_EXCLUSIVE)
    turn = place.connect(waiting)
    fencing = place.connected("f", AccessMode.EXCLUSIVE_WITH_FENCING)
    assert (place.displaced, place.names()) == (shared, ["f"])
    with pytest.raises(ProducerFenced):
        turn.result()
    later = place.connected("f", AccessMode.EXCLUSIVE_WITH_FENCING)
    assert (place.displaced, place.names()) == ([*shared, fencing], ["f"])
    again = place.producer("f", AccessMode.EXCLUSIVE_WITH_FENCING, topic_epoch=fencing.topic_epoch)
    with pytest.raises(ProducerFenced):
        place.connect(again).result()
    assert place.names() == ["f"]
    assert (later.topic_epoch or 0) > (fencing.topic_epoch or 0)


def test_epochs_outlast_a_restart_and_not_the_topic(place: Place) -> None:
    first = place.connected("a", AccessMode.EXCLUSIVE)
    place.leave(first)
    second = place.connected("b", AccessMode.EXCLUSIVE)
    assert (first.topic_epoch, second.topic_epoch) == (0, 1)
    place.start()
    with pytest.raises(ProducerFenced):
        place.connect(place.producer("a", AccessMode.EXCLUSIVE, topic_epoch=0)).result()
    place.connected("b", AccessMode.EXCLUSIVE, topic_epoch=1)
    place.producers.forget_topic(TOPIC)
    place.runtime.run()
    place.start()
    assert place.connected("a", AccessMode.EXCLUSIVE).topic_epoch == 0


def test_an_exclusive_producer_come_again_keeps_its_place_before_those_that_wait(place: Place) -> None:
    connection = Connection()
    place.connected("a", AccessMode.EXCLUSIVE, connection, number=3, epoch=0)
    waiting = place.connect(place.producer("b", AccessMode.WAIT_FOR_EXCLUSIVE))
    again = place.connected("a", AccessMode.EXCLUSIVE, connection, number=3, epoch=1)
    assert list(place.producers.of(TOPIC, 0)) == [again]
    assert not waiting.done
    place.leave(again)
    waiting.result()
    assert place.names() == ["b"]


def test_a_producer_come_again_in_another_mode_lets_those_in_that_wait(place: Place) -> None:
    connection = Connection()
    place.connected("a", AccessMode.EXCLUSIVE, connection, number=3, epoch=0)
    waiting = place.connect(place.producer("b", AccessMode.WAIT_FOR_EXCLUSIVE))
    with pytest.raises(ProducerBusy):
        place.connect(place.producer("a", AccessMode.SHARED, connection, number=3, epoch=1)).result()
    waiting.result()
    assert place.names() == ["b"]


def test_one_that_waited_in_vain_does_not_keep_those_behind_it_waiting(place: Place) -> None:
    first = place.connected("a", AccessMode.EXCLUSIVE)
    assert first.topic_epoch == 0
    stale = place.connect(place.producer("b", AccessMode.WAIT_FOR_EXCLUSIVE, topic_epoch=-1))
    next_one = place.connect(place.producer("c", AccessMode.WAIT_FOR_EXCLUSIVE))
    place.leave(first)
    with pytest.raises(ProducerFenced):
        stale.result()
    next_one.result()
    assert place.names() == ["c"]


def test_one_that_waited_in_vain_may_leave_as_soon_as_it_is_told(place: Place) -> None:
    first = place.connected("a", AccessMode.EXCLUSIVE)
    stale = place.producer("b", AccessMode.WAIT_FOR_EXCLUSIVE, topic_epoch=-1)
    place.connect(stale).when_done(lambda _: place.producers.disconnect(TOPIC, 0, stale))
    place.leave(first)
    place.connected("c")


def test_an_exclusive_producer_whose_epoch_is_not_kept_is_not_there(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: Pending[None] = Pending()
    monkeypatch.setattr(place.documents, "put", lambda *_: failed)
    refused = place.connect(place.producer("a", AccessMode.EXCLUSIVE))
    failed.fail(MetadataFailed("the disk is full"))
    with pytest.raises(MetadataFailed):
        refused.result()
    assert place.names() == []
    place.connected("b")
