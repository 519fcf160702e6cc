"""What clients are told of where to connect."""

from millstream.server.config import Address
from millstream.server.places import Places
from millstream.sessions.session import Endpoint


def test_a_client_is_told_an_address_that_works_for_it() -> None:
    places = Places({"pulsar": Address("broker.example", 7)})
    places.listening("kafka", Address("127.0.0.1", 1))
    places.listening("pulsar", Address("127.0.0.1", 2))
    places.listening("http", Address("0.0.0.0", 3))
    assert places.endpoint("kafka", "10.0.0.2") == Endpoint("127.0.0.1", 1)
    assert places.endpoint("pulsar", "10.0.0.2") == Endpoint("broker.example", 7)
    assert places.endpoint("http", "10.0.0.2") == Endpoint("10.0.0.2", 3)
    assert places.endpoint("elsewhere", "10.0.0.2") is None


def test_a_listener_that_is_not_pinned_stands_in_for_one_that_is_not_there() -> None:
    places = Places({}, {"kafka"})
    places.listening("kafka", Address("127.0.0.1", 1))
    assert places.endpoint("iggy", "127.0.0.1") is None
    places.listening("http", Address("127.0.0.1", 2))
    assert places.endpoint("iggy", "127.0.0.1") == Endpoint("127.0.0.1", 2)
    assert places.endpoint("kafka", "127.0.0.1") == Endpoint("127.0.0.1", 1)


def test_a_client_is_told_to_come_back_to_where_it_came_in_on() -> None:
    places = Places(
        {"pulsar": Address("broker.example", 7), "iggy": Address("broker.example", 8)}, tls=True, plain=False
    )
    places.listening("any", Address("0.0.0.0", 1))
    places.listening("iggy", Address("127.0.0.1", 2))
    assert places.endpoint_of_peer("any", "10.0.0.2", "kafka") == Endpoint("10.0.0.2", 1, tls=True, plain=False)
    assert places.endpoint_of_peer("any", "10.0.0.2", "iggy") == Endpoint("10.0.0.2", 1, tls=True, plain=False)
    assert places.endpoint_of_peer("any", "10.0.0.2", "pulsar") == Endpoint(
        "broker.example", 7, tls=True, plain=False
    )
    assert places.endpoint_of_peer("iggy", "10.0.0.2", "kafka") == Endpoint(
        "broker.example", 8, tls=True, plain=False
    )


def test_a_listener_for_any_protocol_stands_in_for_one_that_is_not_there() -> None:
    places = Places({})
    places.listening("any", Address("::", 9))
    assert places.endpoint("pulsar", "::1") == Endpoint("::1", 9)
    assert str(places.endpoint("pulsar", "::1")) == "[::1]:9"
