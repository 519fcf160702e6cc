"""The life of a connection: versions, what may come first, keep-alive, and what costs the connection."""

import pytest

from millstream.wire.pulsar.errors import FrameTooLarge, MalformedFrame
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandAuthResponse,
    CommandCloseProducer,
    CommandConnect,
    CommandConnected,
    CommandLookupTopic,
    CommandPing,
    CommandPong,
    CommandProducer,
    CommandProducerSuccess,
    ProducerAccessMode,
    ServerError,
)
from tests.unit.sessions.pulsar.spoken import Client, Conversation


@pytest.fixture
def there() -> Conversation:
    return Conversation()


@pytest.mark.parametrize(("asked", "agreed"), [(0, 0), (5, 5), (20, 20), (21, 21), (99, 21), (-3, 0)])
def test_the_lower_version_is_agreed_on(there: Conversation, asked: int, agreed: int) -> None:
    client = Client(there)
    answer = client.ask(CommandConnect(client_version="x", protocol_version=asked), CommandConnected)
    assert (answer.protocol_version, answer.max_message_size) == (agreed, 5 * 1024 * 1024)
    assert answer.server_version.startswith("Pulsar Server")
    assert answer.feature_flags.supports_topic_watchers


@pytest.mark.parametrize("first", [CommandPing(), CommandLookupTopic(topic="a", request_id=1)])
def test_nothing_may_come_before_connect(there: Conversation, first: CommandPing | CommandLookupTopic) -> None:
    with pytest.raises(MalformedFrame, match="before CONNECT"):
        Client(there).tell(first)


def test_a_second_connect_costs_the_connection(there: Conversation) -> None:
    with pytest.raises(MalformedFrame):
        there.client().tell(CommandConnect(client_version="x"))


def test_a_command_that_only_a_broker_sends_costs_the_connection(there: Conversation) -> None:
    with pytest.raises(MalformedFrame, match="is not served"):
        there.client().tell(CommandConnected(server_version="x"))


def test_a_frame_over_the_limit_is_refused_unread(there: Conversation) -> None:
    with pytest.raises(FrameTooLarge):
        there.client().session.measure(memoryview(b"\x7f\xff\xff\xff"))


def test_ping_is_answered_and_new_credentials_are_taken(there: Conversation) -> None:
    client = there.client()
    client.ask(CommandPing(), CommandPong)
    client.tell(CommandAuthResponse(client_version="x"))
    assert client.taken() == []


def test_a_silent_peer_is_asked_and_then_given_up(there: Conversation) -> None:
    client = there.client()
    there.pass_ms(30_000)
    assert [type(one) for one in client.taken()] == [CommandPing]
    client.tell(CommandPong())
    there.pass_ms(29_000)
    assert (client.taken(), client.ended) == ([], "")
    there.pass_ms(1_000)
    assert [type(one) for one in client.taken()] == [CommandPing]
    there.pass_ms(30_000)
    assert client.ended == "it did not answer PING"


def test_a_client_of_version_0_knows_no_ping_and_is_not_asked(there: Conversation) -> None:
    client = there.client(0)
    client.produce(producer_name="p")
    client.taken()
    there.pass_ms(600_000)
    assert (client.taken(), client.ended) == ([], "")
    # Whoever wants its name is told that it is there.
    wanted = CommandProducer(topic="orders", producer_id=1, request_id=1, producer_name="p")
    assert there.client().refused(wanted).error == ServerError.ProducerBusy
    assert client.taken() == []


def test_who_never_says_connect_is_given_up_unasked(there: Conversation) -> None:
    client = Client(there)
    there.pass_ms(60_000)
    assert (client.taken(), client.ended) == ([], "it did not answer PING")


@pytest.mark.parametrize("version", [4, 5])
def test_clients_before_version_5_are_not_told_what_the_broker_closes(there: Conversation, version: int) -> None:
    """They do not know of it, and lose their connection."""
    client = there.client(version)
    client.produce()
    client.taken()
    there.client().ask(
        CommandProducer(
            topic="orders", producer_id=1, request_id=1, producer_access_mode=ProducerAccessMode.ExclusiveWithFencing
        ),
        CommandProducerSuccess,
    )
    there.runtime.run()
    assert [type(one) for one in client.taken()] == ([CommandCloseProducer] if version >= 5 else [])
    assert bool(client.ended) == (version < 5)


def test_a_peer_that_is_not_read_from_cannot_answer(there: Conversation) -> None:
    client = there.client()
    client.reading = False  # the disk is slow, and holds what the client sends
    there.pass_ms(150_000)
    assert [type(one) for one in client.taken()] == [CommandPing]
    assert client.ended == ""
    client.reading = True
    client.tell(CommandPong())
    there.pass_ms(29_000)
    assert client.ended == ""
    client.reading = False
    there.pass_ms(60_000)
    client.reading = True
    there.pass_ms(30_000)
    assert client.ended == "it did not answer PING"


def test_a_connection_that_ends_leaves_nothing_behind(there: Conversation) -> None:
    client = there.client()
    client.produce()
    client.session.close()
    assert list(there.broker.producers.of(there.topic().id, 0)) == []
    there.pass_ms(120_000)
    assert client.taken() == []
    assert there.client().produce(producer_name="p").producer_name == "p"
