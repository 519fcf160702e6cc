"""Two members of one group at a time: each message goes to one of them, and each has its own partitions.

Arguments: the address, a name that is nobody else's.
"""

import asyncio
import datetime
import inspect
import sys
from typing import Any

from tests.conformance.iggy_apache.releases import SendMessage, Strategy, connected, package, run

PARTITIONS = 4
ROUNDS = 10
PATIENCE_S = 10


async def consume(stream: str, taken: list[str], stop: asyncio.Event) -> None:
    """Take messages as a member of the group."""
    consumer = (await connected()).consumer_group(
        "g1",
        stream,
        "t1",
        polling_strategy=Strategy.Next(),
        batch_length=10,
        auto_commit=package.AutoCommit.When(package.AutoCommitWhen.PollingMessages()),
        poll_interval=datetime.timedelta(milliseconds=20),
    )
    if inspect.isawaitable(consumer):
        consumer = await consumer

    async def take(message: Any) -> None:
        taken.append(message.payload().decode())

    await consumer.consume_messages(take, stop)


async def until(count: int, *members: list[str]) -> None:
    """Wait until members have taken as many messages together."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while sum(map(len, members)) < count:
        assert asyncio.get_running_loop().time() < deadline, members
        await asyncio.sleep(0.02)


async def main() -> None:
    stream, stop = sys.argv[2], asyncio.Event()
    iggy = await connected()
    await iggy.create_stream(stream)
    await iggy.create_topic(stream=stream, name="t1", partitions_count=PARTITIONS)

    async def send(number: int) -> None:
        for partition in range(PARTITIONS):
            messages = [SendMessage(f"{partition}:{number}")]
            await iggy.send_messages(stream=stream, topic="t1", partitioning=partition, messages=messages)

    first: list[str] = []
    second: list[str] = []
    members = [asyncio.create_task(consume(stream, first, stop))]
    await send(0)
    await until(PARTITIONS, first)
    members.append(asyncio.create_task(consume(stream, second, stop)))
    number = 1
    while not second:  # until the newcomer has its share
        await send(number)
        number += 1
        await until(number * PARTITIONS, first, second)
    await asyncio.sleep(0.5)
    first.clear()
    second.clear()
    for round_ in range(ROUNDS):
        await send(number + round_)
    await until(ROUNDS * PARTITIONS, first, second)
    assert len({*first, *second}) == ROUNDS * PARTITIONS
    shares = [{name.partition(":")[0] for name in taken} for taken in (first, second)]
    assert not shares[0] & shares[1]
    assert [len(share) for share in shares] == [2, 2]


run(main)
