"""Who reads under a name, and who is refused because of that."""

from collections.abc import Iterable

import pytest

from millstream.broker.errors import GroupHeld
from millstream.broker.holders import Holder, Holders
from millstream.broker.topics import Topic
from millstream.model.pending import Pending
from tests.unit.broker.simulated_broker import SimulatedBroker


@pytest.fixture
def orders() -> Topic:
    return SimulatedBroker().create("orders")


def reader(protocol: str, topic: str) -> Holder:
    return Holder(protocol=protocol, id="1", client="", host="127.0.0.1:5", topic=topic)


def of_billing(*holders: Holder, under_way: Iterable[Pending[None]] = (), several: bool = False) -> Holders:
    """What is known when `holders`, all of one protocol, read as `billing`."""
    known = Holders(several=several)
    known.register("pulsar", lambda name: holders if name == "billing" else (), lambda _: under_way)
    known.register("kafka", lambda _: ())
    return known


def test_another_protocol_is_refused(orders: Topic) -> None:
    known = of_billing(reader("pulsar", "orders"))
    with pytest.raises(GroupHeld, match=r"clients of pulsar are reading orders as billing \(1 at 127.0.0.1:5\)"):
        known.check("billing", [orders], "kafka")
    known.check("billing", [orders], "pulsar")
    known.check("shipping", [orders], "kafka")


def test_another_topic_is_another_position(orders: Topic) -> None:
    of_billing(reader("pulsar", "invoices")).check("billing", [orders], "kafka")


def test_a_server_may_be_set_to_let_several_in(orders: Topic) -> None:
    of_billing(reader("pulsar", "orders"), several=True).check("billing", [orders], "kafka")
    settings = SimulatedBroker(group__several__protocols__enable="true").settings
    assert settings.several_protocols


def test_who_there_is() -> None:
    holder = reader("pulsar", "orders")
    known = of_billing(holder)
    assert known.of("billing") == [holder]
    assert known.of("billing", besides="pulsar") == []


def test_names_are_listed_once_and_held_if_anybody_does() -> None:
    known = Holders()
    assert known.names() == {}
    known.register("pulsar", lambda _: (), names=lambda: [("billing", False), ("billing", True), ("idle", False)])
    known.register("iggy", lambda _: (), names=lambda: [("billing", False)])
    assert known.names() == {"billing": True, "idle": False}


def test_positions_that_move_are_waited_for() -> None:
    moving: Pending[None] = Pending()
    known = of_billing(under_way=[moving])
    assert known.at_rest("billing", "pulsar") is None
    waiting = known.at_rest("billing", "kafka")
    assert waiting is not None
    assert not waiting.done
    moving.resolve(None)
    assert waiting.done
