"""kafka-python finds its way in a log: from either end, by offset and by time, forwards and back."""

from collections.abc import Callable

import pytest
from kafka.structs import OffsetAndMetadata

from tests.conformance.kafka_python.conftest import TIMEOUT_S, consuming, place, producing, read, send_values
from tests.support.sample_records import BASE_MS
from tests.support.server_process import ServerProcess

COUNT = 100


@pytest.fixture
def topic(broker: ServerProcess, new_topic: Callable[..., str]) -> str:
    """A topic with `COUNT` records a second apart."""
    name = new_topic()
    with producing(broker, batch_size=300) as producer:
        sent = [producer.send(name, b"%d" % n, timestamp_ms=BASE_MS + 1000 * n) for n in range(COUNT)]
        for future in sent:
            future.get(TIMEOUT_S)
    return name


def test_seek_pause_resume_position(broker: ServerProcess, topic: str) -> None:
    with consuming(broker) as consumer:
        consumer.assign([place(topic)])
        consumer.seek_to_end(place(topic))
        assert consumer.position(place(topic)) == COUNT
        consumer.seek_to_beginning(place(topic))
        assert consumer.position(place(topic)) == 0
        for offset in (42, 99, 0, 57):
            consumer.seek(place(topic), offset)
            [record] = read(consumer, 1)
            assert (record.offset, record.value) == (offset, b"%d" % offset)
            assert consumer.position(place(topic)) == offset + 1
        consumer.pause(place(topic))
        assert consumer.poll(300) == {}
        consumer.resume(place(topic))
        assert read(consumer, 1)[0].offset == 58
        assert consumer.highwater(place(topic)) == COUNT


def test_look_ups(broker: ServerProcess, topic: str) -> None:
    with consuming(broker) as consumer:
        assert consumer.beginning_offsets([place(topic)]) == {place(topic): 0}
        assert consumer.end_offsets([place(topic)]) == {place(topic): COUNT}
        for time_ms, offset in {0: 0, 1: 1, 1000: 1, 42_500: 43, 99_000: 99}.items():
            found = consumer.offsets_for_times({place(topic): BASE_MS + time_ms})[place(topic)]
            assert (found.offset, found.timestamp) == (offset, BASE_MS + 1000 * offset)
        assert consumer.offsets_for_times({place(topic): BASE_MS + 99_001}) == {place(topic): None}


@pytest.mark.parametrize(("reset", "offset"), [("earliest", 0), ("latest", COUNT)])
def test_where_a_group_begins(
    broker: ServerProcess, topic: str, reset: str, offset: int, unique: Callable[[str], str]
) -> None:
    with consuming(broker, group_id=unique("kp-group"), auto_offset_reset=reset) as consumer:
        consumer.assign([place(topic)])
        assert consumer.position(place(topic)) == offset
        send_values(broker, topic, [b"last"])
        expected = COUNT + 1 - offset
        assert [record.offset for record in read(consumer, expected)] == list(range(offset, COUNT + 1))


def test_committed(broker: ServerProcess, topic: str, unique: Callable[[str], str]) -> None:
    group, note = unique("kp-group"), "späti \u2713 " + "n" * 1000
    with consuming(broker, group_id=group) as consumer:
        assert consumer.committed(place(topic)) is None
        consumer.commit({place(topic): OffsetAndMetadata(12, note, -1)})
    with consuming(broker, group_id=group) as consumer:
        assert consumer.committed(place(topic)) == 12
        assert consumer.committed(place(topic), metadata=True).metadata == note
        consumer.subscribe([topic])
        assert read(consumer, 1)[0].offset == 12
