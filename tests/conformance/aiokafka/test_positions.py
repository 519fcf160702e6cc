"""aiokafka finds its way in a log: from either end, by offset and by time, forwards and back."""

import asyncio
from collections.abc import Callable

import pytest
from aiokafka import OffsetAndMetadata

from tests.conformance.aiokafka.conftest import Run, consuming, place, producing, read, send_values
from tests.support.sample_records import BASE_MS
from tests.support.server_process import ServerProcess

COUNT = 100


@pytest.fixture
def topic(broker: ServerProcess, new_topic: Callable[..., str], run: Run) -> str:
    """A topic with `COUNT` records a second apart."""
    name = new_topic()

    async def fill() -> None:
        async with producing(broker, max_batch_size=300) as producer:
            sent = [await producer.send(name, b"%d" % n, timestamp_ms=BASE_MS + 1000 * n) for n in range(COUNT)]
            await asyncio.gather(*sent)

    run(fill())
    return name


def test_seek_pause_resume_position(broker: ServerProcess, topic: str, run: Run) -> None:
    async def move() -> None:
        async with consuming(broker) as consumer:
            consumer.assign([place(topic)])
            await consumer.seek_to_end(place(topic))
            assert await consumer.position(place(topic)) == COUNT
            await consumer.seek_to_beginning(place(topic))
            assert await consumer.position(place(topic)) == 0
            for offset in (42, 99, 0, 57):
                consumer.seek(place(topic), offset)
                [record] = await read(consumer, 1)
                assert (record.offset, record.value) == (offset, b"%d" % offset)
                assert await consumer.position(place(topic)) == offset + 1
            consumer.pause(place(topic))
            assert await consumer.getmany(timeout_ms=300) == {}
            consumer.resume(place(topic))
            assert (await read(consumer, 1))[0].offset == 58
            assert consumer.highwater(place(topic)) == COUNT

    run(move())


def test_look_ups(broker: ServerProcess, topic: str, run: Run) -> None:
    async def look_up() -> None:
        async with consuming(broker) as consumer:
            consumer.assign([place(topic)])
            assert await consumer.beginning_offsets([place(topic)]) == {place(topic): 0}
            assert await consumer.end_offsets([place(topic)]) == {place(topic): COUNT}
            for time_ms, offset in {0: 0, 1: 1, 1000: 1, 42_500: 43, 99_000: 99}.items():
                found = (await consumer.offsets_for_times({place(topic): BASE_MS + time_ms}))[place(topic)]
                assert (found.offset, found.timestamp) == (offset, BASE_MS + 1000 * offset)
            assert await consumer.offsets_for_times({place(topic): BASE_MS + 99_001}) == {place(topic): None}

    run(look_up())


@pytest.mark.parametrize(("reset", "offset"), [("earliest", 0), ("latest", COUNT)])
def test_where_a_group_begins(
    broker: ServerProcess, topic: str, run: Run, reset: str, offset: int, unique: Callable[[str], str]
) -> None:
    async def begin() -> None:
        async with consuming(broker, group_id=unique("aio-group"), auto_offset_reset=reset) as consumer:
            consumer.assign([place(topic)])
            assert await consumer.position(place(topic)) == offset
            await send_values(broker, topic, [b"last"])
            found = await read(consumer, COUNT + 1 - offset)
            assert [record.offset for record in found] == list(range(offset, COUNT + 1))

    run(begin())


def test_committed(broker: ServerProcess, topic: str, run: Run, unique: Callable[[str], str]) -> None:
    group, note = unique("aio-group"), "späti \u2713 " + "n" * 1000

    async def commit_and_resume() -> None:
        async with consuming(broker, group_id=group) as consumer:
            consumer.assign([place(topic)])
            assert await consumer.committed(place(topic)) is None
            await consumer.commit({place(topic): OffsetAndMetadata(12, note)})
        async with consuming(broker, topic, group_id=group) as consumer:
            assert await consumer.committed(place(topic)) == 12
            assert (await read(consumer, 1))[0].offset == 12

    run(commit_and_resume())
