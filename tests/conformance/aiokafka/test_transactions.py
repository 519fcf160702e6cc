"""aiokafka's transactions."""

from collections.abc import Callable

import pytest
from aiokafka.errors import KafkaError, ProducerFenced

from tests.conformance.aiokafka.conftest import Run, consuming, place, producing, read, send_values
from tests.support.server_process import ServerProcess


async def values(server: ServerProcess, topic: str, count: int, isolation_level: str) -> list[bytes]:
    async with consuming(server, isolation_level=isolation_level) as consumer:
        consumer.assign([place(topic)])
        await consumer.seek_to_beginning(place(topic))
        return [record.value for record in await read(consumer, count)]


def test_commit_and_abort(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str], run: Run
) -> None:
    topic = new_topic(3)

    async def transact() -> None:
        async with producing(broker, transactional_id=unique("txn")) as producer:
            for n, commit in enumerate((True, False, True)):
                await producer.begin_transaction()
                for partition in range(3):
                    await producer.send_and_wait(topic, b"%d" % n, partition=partition)
                if commit:
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
        assert await values(broker, topic, 2, "read_committed") == [b"0", b"2"]
        assert await values(broker, topic, 3, "read_uncommitted") == [b"0", b"1", b"2"]

    run(transact())


def test_offsets_go_with_the_transaction(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str], run: Run
) -> None:
    source, sink, group = new_topic(), new_topic(), unique("group")

    async def transform() -> None:
        await send_values(broker, source, [b"a", b"b", b"c"])
        async with (
            producing(broker, transactional_id=unique("txn")) as producer,
            consuming(broker, group_id=group, isolation_level="read_committed") as consumer,
        ):
            consumer.assign([place(source)])
            records = await read(consumer, 3)
            for commit, expected in ((False, None), (True, 3)):
                await producer.begin_transaction()
                for record in records:
                    await producer.send_and_wait(sink, record.value.upper())
                await producer.send_offsets_to_transaction({place(source): 3}, group)
                if commit:
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
                assert await consumer.committed(place(source)) == expected
        assert await values(broker, sink, 3, "read_committed") == [b"A", b"B", b"C"]

    run(transform())


def test_the_next_producer_of_a_name_fences_the_one_before(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str], run: Run
) -> None:
    topic, name = new_topic(), unique("txn")

    async def fence() -> None:
        async with producing(broker, transactional_id=name) as zombie:
            await zombie.begin_transaction()
            await zombie.send_and_wait(topic, b"of the zombie")
            async with producing(broker, transactional_id=name) as heir, heir.transaction():
                await heir.send_and_wait(topic, b"of its heir")
            with pytest.raises((ProducerFenced, KafkaError)):
                await zombie.commit_transaction()
        assert await values(broker, topic, 1, "read_committed") == [b"of its heir"]

    run(fence())
