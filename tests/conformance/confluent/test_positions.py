"""librdkafka finds its way in a log: from either end, by offset and by time, forwards and back."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, TopicPartition

from tests.conformance.confluent.conftest import TIMEOUT_S, consuming, read, send
from tests.support.sample_records import BASE_MS
from tests.support.server_process import ServerProcess

COUNT = 100


@pytest.fixture
def topic(broker: ServerProcess, new_topic: Callable[..., str]) -> str:
    """A topic with `COUNT` messages a second apart, in batches of ten."""
    name = new_topic()
    messages = [{"topic": name, "value": b"%d" % n, "timestamp": BASE_MS + 1000 * n} for n in range(COUNT)]
    send(broker, messages, **{"batch.num.messages": 10})
    return name


def first_value(consumer: Any) -> int:
    return int(read(consumer, 1)[0].value())


def test_from_either_end(broker: ServerProcess, topic: str) -> None:
    with consuming(broker) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert first_value(consumer) == 0
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S) == (0, COUNT)
        consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
        assert consumer.poll(0.5) is None
        send(broker, [{"topic": topic, "value": b"1000"}])
        assert first_value(consumer) == 1000


@pytest.mark.parametrize(("reset", "value"), [("earliest", 0), ("latest", 1000)])
def test_offsets_out_of_range_are_reset(broker: ServerProcess, topic: str, reset: str, value: int) -> None:
    with consuming(broker, **{"auto.offset.reset": reset}) as consumer:
        consumer.assign([TopicPartition(topic, 0, 5000)])
        message = consumer.poll(1.0)
        if reset == "latest":
            assert message is None
            send(broker, [{"topic": topic, "value": b"1000"}])
        found = int(message.value()) if message is not None else first_value(consumer)
        assert found == value


def test_seek_pause_resume_position(broker: ServerProcess, topic: str) -> None:
    with consuming(broker) as consumer:
        place = TopicPartition(topic, 0)
        consumer.assign([TopicPartition(topic, 0, 42)])
        assert first_value(consumer) == 42
        assert consumer.position([place])[0].offset == 43
        for offset in (7, 99, 0, 55):
            consumer.seek(TopicPartition(topic, 0, offset))
            assert first_value(consumer) == offset
        consumer.pause([place])
        assert consumer.poll(0.5) is None
        consumer.resume([place])
        assert first_value(consumer) == 56


def test_by_time(broker: ServerProcess, topic: str) -> None:
    with consuming(broker) as consumer:
        asked = {0: 0, 1000: 1, 1001: 2, 42_500: 43, 99_000: 99}
        for time_ms, offset in asked.items():
            [found] = consumer.offsets_for_times([TopicPartition(topic, 0, BASE_MS + time_ms)], timeout=TIMEOUT_S)
            assert found.offset == offset
        [behind] = consumer.offsets_for_times([TopicPartition(topic, 0, BASE_MS + 99_001)], timeout=TIMEOUT_S)
        assert behind.offset == OFFSET_END


def test_committed(broker: ServerProcess, topic: str, unique: Callable[[str], str]) -> None:
    group = unique("ck-group")
    place = TopicPartition(topic, 0)
    with consuming(broker, group) as consumer:
        assert consumer.committed([place], timeout=TIMEOUT_S)[0].offset == OFFSET_INVALID
        note = "späti \u2713 " + "n" * 1000
        consumer.commit(offsets=[TopicPartition(topic, 0, 12, note)], asynchronous=False)
    with consuming(broker, group) as consumer:
        [committed] = consumer.committed([place], timeout=TIMEOUT_S)
        assert (committed.offset, committed.metadata) == (12, note)
        consumer.subscribe([topic])
        assert first_value(consumer) == 12
