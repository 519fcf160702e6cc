"""What a connection remembers of the topics that it names must not outlive them."""

from millstream.sessions.iggy.call import _PLACES_MAX
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.messages.streams import UpdateStream
from millstream.wire.iggy.messages.topics import CreateTopic, TopicRequest, UpdateTopic
from tests.unit.sessions.iggy.conversation import IggyBroker, Outgoing


def test_a_topic_that_was_made_anew_is_another_one() -> None:
    server = IggyBroker()
    client, other = server.connect(Dialect.D), server.connect(Dialect.D)
    client.make()
    client.put(b"old")
    assert client.values() == [b"old"]
    other.ask("DELETE_TOPIC", TopicRequest(stream="s1", topic="t1"))
    other.ask("CREATE_TOPIC", CreateTopic(stream="s1", name="t1", partitions_count=1))
    client.put(b"new")
    assert client.values() == other.values() == [b"new"]


def test_a_topic_is_no_more_found_under_the_name_that_it_had() -> None:
    server = IggyBroker()
    client, other = server.connect(Dialect.D), server.connect(Dialect.D)
    client.make()
    client.put(b"x")
    other.ask("UPDATE_TOPIC", UpdateTopic(stream="s1", topic="t1", name="t2"))
    sending = client.sending([Outgoing(b"x")])
    assert client.refusal("SEND_MESSAGES", sending) == ErrorCode.TOPIC_NAME_NOT_FOUND
    assert client.values(topic="t2") == [b"x"]
    other.ask("UPDATE_STREAM", UpdateStream(stream="s1", name="s2"))
    assert client.refusal("SEND_MESSAGES", sending) == ErrorCode.STREAM_NAME_NOT_FOUND
    assert client.values(stream="s2", topic="t2") == [b"x"]


def test_not_more_than_some_topics_are_remembered() -> None:
    server = IggyBroker()
    client = server.connect(Dialect.D)
    client.make()
    for number in range(_PLACES_MAX + 1):
        client.ask("CREATE_TOPIC", CreateTopic(stream="s1", name=f"many-{number}", partitions_count=1))
        client.put(b"x", topic=f"many-{number}")
    (call_client,) = [one for one in server.service.shared.clients.values() if one.places]
    assert len(call_client.places) <= _PLACES_MAX
