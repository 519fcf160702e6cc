"""Fetch: what is read, how long it waits, and what ends the waiting."""

from typing import Any
from uuid import UUID

import pytest

from millstream.model.frame import Magic, read_frame_header
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.fetch import FETCH
from millstream.wire.kafka07.frames import build_frame
from tests.support.batches import batch, frames_of
from tests.unit.broker.simulated_broker import append
from tests.unit.sessions.kafka.conversation import Conversation, fetch_request
from tests.unit.wire.kafka07.sets import message_set

BY_NAME = 12
FRAME_BYTES = len(batch(b"value"))


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation()
    talk.create("orders", 2)
    return talk


def filled(talk: Conversation, count: int, name: str = "orders", index: int = 0) -> None:
    for _ in range(count):
        append(talk.partition(name, index), batch(b"value", timestamp_ms=talk.runtime.now_ms()))
    talk.runtime.run()


def only(response: Any) -> Any:
    assert response.error_code == ErrorCode.NONE
    [topic] = response.responses
    [partition] = topic.partitions
    return partition


def offsets(partition: Any) -> list[int]:
    return [read_frame_header(frame).base_offset for frame in frames_of(bytes(partition.records or b""))]


@pytest.mark.parametrize("version", range(4, 13))
def test_what_is_there_is_answered_at_once(talk: Conversation, version: int) -> None:
    filled(talk, 3)
    found = only(talk.ask(FETCH, fetch_request(1), version))
    assert (found.error_code, found.high_watermark, found.last_stable_offset) == (0, 3, 3)
    assert offsets(found) == [1, 2]


@pytest.mark.parametrize("version", range(13, 19))
def test_topics_are_named_by_id_in_later_versions(talk: Conversation, version: int) -> None:
    filled(talk, 1)
    response = talk.ask(FETCH, fetch_request(topic_id=talk.topic().id), version)
    assert response.responses[0].topic_id == talk.topic().id
    assert offsets(only(response)) == [0]
    unknown = only(talk.ask(FETCH, fetch_request(topic_id=UUID(int=3)), version))
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    beyond = only(talk.ask(FETCH, fetch_request(topic_id=talk.topic().id, index=2), version))
    assert beyond.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def waiting(talk: Conversation, request: object) -> Any:
    pending = talk.send(FETCH, request, BY_NAME)
    assert pending is not None
    talk.runtime.run()
    assert not pending.done
    return pending


def test_an_empty_fetch_waits_as_long_as_it_may(talk: Conversation) -> None:
    pending = waiting(talk, fetch_request(max_wait_ms=500))
    talk.pass_ms(499)
    assert not pending.done
    talk.pass_ms(1)
    found = only(pending.result())
    assert (found.error_code, found.high_watermark, offsets(found)) == (0, 0, [])
    assert not talk.client.waits


@pytest.mark.parametrize(("min_bytes", "max_wait_ms"), [(0, 500), (1, 0), (1, -1)])
def test_a_fetch_that_need_not_wait_does_not(talk: Conversation, min_bytes: int, max_wait_ms: int) -> None:
    pending = talk.send(FETCH, fetch_request(min_bytes=min_bytes, max_wait_ms=max_wait_ms), BY_NAME)
    assert pending is not None
    assert offsets(only(pending.result())) == []


def test_news_end_the_waiting(talk: Conversation) -> None:
    pending = waiting(talk, fetch_request())
    filled(talk, 1)
    assert offsets(only(pending.result())) == [0]
    assert not talk.client.waits
    talk.pass_ms(1000)  # neither the timer nor the next news find anybody to answer
    filled(talk, 1)


def test_news_that_are_too_few_do_not(talk: Conversation) -> None:
    filled(talk, 1)
    pending = waiting(talk, fetch_request(0, min_bytes=3 * FRAME_BYTES))
    filled(talk, 1)
    assert not pending.done
    filled(talk, 1)
    assert offsets(only(pending.result())) == [0, 1, 2]


def test_news_of_another_partition_do_not_count(talk: Conversation) -> None:
    pending = waiting(talk, fetch_request())
    filled(talk, 5, index=1)
    assert not pending.done


def test_too_few_bytes_are_answered_when_the_time_is_up(talk: Conversation) -> None:
    filled(talk, 1)
    pending = waiting(talk, fetch_request(0, min_bytes=10**6))
    filled(talk, 1)
    talk.pass_ms(500)
    assert offsets(only(pending.result())) == [0, 1]


def test_a_server_that_stops_answers_with_what_there_is(talk: Conversation) -> None:
    pending = waiting(talk, fetch_request())
    talk.session.finish()
    assert offsets(only(pending.result())) == []
    talk.pass_ms(1000)


def test_a_client_that_is_gone_is_not_answered(talk: Conversation) -> None:
    pending = waiting(talk, fetch_request())
    talk.session.close()
    assert not talk.client.waits
    filled(talk, 1)
    talk.pass_ms(1000)
    assert not pending.done


@pytest.mark.parametrize("by_id", [False, True])
def test_a_topic_that_is_deleted_ends_the_waiting(talk: Conversation, by_id: bool) -> None:
    topic = talk.topic()
    pending = talk.send(FETCH, fetch_request(topic_id=topic.id if by_id else None), 18 if by_id else BY_NAME)
    assert pending is not None
    talk.runtime.run()
    assert not pending.done
    talk.wait(talk.broker.delete_topic(topic))
    expected = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert only(pending.result()).error_code == expected


def test_records_deleted_under_a_waiting_reader_are_told(talk: Conversation) -> None:
    filled(talk, 2)
    pending = waiting(talk, fetch_request(1, min_bytes=10**6))
    talk.wait(talk.broker.delete_records(talk.partition(), 2))
    talk.pass_ms(500)
    found = only(pending.result())
    assert (found.error_code, found.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 2)


@pytest.mark.parametrize("offset", [-1, 4, 2**62])
def test_an_offset_that_does_not_exist_is_told_at_once(talk: Conversation, offset: int) -> None:
    filled(talk, 3)
    found = only(talk.ask(FETCH, fetch_request(offset), BY_NAME))
    assert (found.error_code, found.high_watermark, found.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 3, 0)


def test_an_unknown_topic_does_not_wait_and_does_not_hide_another(talk: Conversation) -> None:
    filled(talk, 1)
    response = talk.ask(FETCH, fetch_request(names=("none", "orders")), BY_NAME)
    none, orders = (topic.partitions[0] for topic in response.responses)
    assert none.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert offsets(orders) == [0]


def test_the_epoch_of_a_future_leader_is_refused(talk: Conversation) -> None:
    filled(talk, 1)
    assert only(talk.ask(FETCH, fetch_request(leader_epoch=1), BY_NAME)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert only(talk.ask(FETCH, fetch_request(leader_epoch=0), BY_NAME)).error_code == ErrorCode.NONE


# How much is answered


def test_a_batch_larger_than_asked_for_is_answered_alone(talk: Conversation) -> None:
    filled(talk, 3)
    assert offsets(only(talk.ask(FETCH, fetch_request(partition_max_bytes=1), BY_NAME))) == [0]
    assert offsets(only(talk.ask(FETCH, fetch_request(max_bytes=1), BY_NAME))) == [0]
    assert offsets(only(talk.ask(FETCH, fetch_request(partition_max_bytes=2 * FRAME_BYTES), BY_NAME))) == [0, 1]


def test_only_the_first_partition_may_exceed_the_bound(talk: Conversation) -> None:
    talk.create("sales")
    filled(talk, 3)
    filled(talk, 3, "sales")
    request = fetch_request(names=("orders", "sales"), max_bytes=3 * FRAME_BYTES + 5)
    response = talk.ask(FETCH, request, BY_NAME)
    assert [offsets(topic.partitions[0]) for topic in response.responses] == [[0, 1, 2], []]
    request = fetch_request(names=("orders", "sales"), max_bytes=1)
    response = talk.ask(FETCH, request, BY_NAME)
    assert [offsets(topic.partitions[0]) for topic in response.responses] == [[0], []]


def test_a_reader_that_takes_nothing_is_sent_nothing_more(talk: Conversation) -> None:
    filled(talk, 3)
    talk.room_bytes = 0
    pending = waiting(talk, fetch_request())
    talk.pass_ms(500)
    assert offsets(only(pending.result())) == []
    talk.room_bytes = 1000
    assert offsets(only(talk.ask(FETCH, fetch_request(), BY_NAME))) == [0, 1, 2]


def test_what_there_is_no_room_for_is_not_waited_for(talk: Conversation) -> None:
    filled(talk, 3)
    almost = 3 * FRAME_BYTES - 1
    for request in (
        fetch_request(min_bytes=almost, partition_max_bytes=almost),
        fetch_request(min_bytes=almost, max_bytes=almost),
        fetch_request(min_bytes=10**6, max_bytes=almost),
    ):
        assert offsets(only(talk.ask(FETCH, request, BY_NAME))) == [0, 1]


def test_a_partition_that_is_left_out_is_not_waited_for(talk: Conversation) -> None:
    talk.create("sales")
    filled(talk, 2)
    filled(talk, 1, "sales")
    request = fetch_request(names=("orders", "sales"), min_bytes=2 * FRAME_BYTES + 1, max_bytes=2 * FRAME_BYTES + 1)
    response = talk.ask(FETCH, request, BY_NAME)
    assert [offsets(topic.partitions[0]) for topic in response.responses] == [[0, 1], []]


def test_one_batch_is_answered_to_who_wants_no_bytes(talk: Conversation) -> None:
    filled(talk, 2)
    assert offsets(only(talk.ask(FETCH, fetch_request(max_bytes=0), BY_NAME))) == [0]


def test_a_partition_that_is_listed_twice_is_answered_once(talk: Conversation) -> None:
    filled(talk, 2)
    request = fetch_request(names=("orders", "orders"))
    request.topics[1].partitions[0].fetch_offset = 1
    assert offsets(only(talk.ask(FETCH, request, BY_NAME))) == [1]


@pytest.mark.parametrize(("isolation_level", "aborted"), [(0, None), (1, [])])
def test_aborted_transactions_are_told_to_who_asks(talk: Conversation, isolation_level: int, aborted: object) -> None:
    request = fetch_request(max_wait_ms=0)
    request.isolation_level = isolation_level
    assert only(talk.ask(FETCH, request, BY_NAME)).aborted_transactions == aborted


def test_a_fault_while_waiting_is_not_waited_for(talk: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    pending = waiting(talk, fetch_request(max_wait_ms=500))

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(type(talk.partition().log), "read", fail)
    talk.pass_ms(500)
    with pytest.raises(ZeroDivisionError):
        pending.result()


def test_who_asks_is_told_which_batches_other_protocols_wrote(talk: Conversation) -> None:
    foreign = build_frame(message_set(b"3", b"4"), 2, talk.runtime.now_ms())
    for frame in (batch(b"1"), batch(b"2"), foreign, batch(b"5")):
        append(talk.partition(), frame)
    talk.runtime.run()
    topic_id = talk.topic().id
    request = fetch_request(topic_id=topic_id)
    assert talk.ask(FETCH, request).encodings == []
    request.wants_encodings = True
    [told] = talk.ask(FETCH, request).encodings
    assert (told.topic_id, told.partition) == (topic_id, 0)
    runs = [(run.first_offset, run.encoding) for run in told.runs]
    assert runs == [(0, Magic.KAFKA_V2), (2, Magic.KAFKA07_SET), (4, Magic.KAFKA_V2)]
    # Before topics had ids, nobody asks.
    assert talk.ask(FETCH, fetch_request(), BY_NAME).encodings == []


def test_nothing_is_told_where_all_is_kafkas(talk: Conversation) -> None:
    filled(talk, 2)
    request = fetch_request(topic_id=talk.topic().id)
    request.wants_encodings = True
    assert talk.ask(FETCH, request).encodings == []
