"""A member of a consumer group, and what it needs.

Arguments: the address; "send", the stream, the number of the first partition, that of the first message in each; or
"consume", the stream, the group, how many messages. Messages are named partition:number; what was taken is printed.
"""

import asyncio
import datetime
import inspect
import sys
from typing import Any

from tests.conformance.iggy_apache.releases import SendMessage, Strategy, connected, package, run

PARTITIONS = 4
PER_PARTITION = 5
PATIENCE_S = 15


async def send(stream: str, first: int, start: int) -> None:
    """Put messages into every partition of a stream's topic, which is made if need be."""
    iggy = await connected()
    if await iggy.get_stream(stream) is None:
        await iggy.create_stream(stream)
        await iggy.create_topic(stream=stream, name="t1", partitions_count=PARTITIONS)
    for partition in range(PARTITIONS):
        messages = [SendMessage(f"{partition}:{number}") for number in range(start, start + PER_PARTITION)]
        await iggy.send_messages(stream=stream, topic="t1", partitioning=first + partition, messages=messages)


async def consume(stream: str, group: str, count: int) -> None:
    """Take messages as a member of a group, until there were enough."""
    iggy = await connected()
    consumer = iggy.consumer_group(
        group,
        stream,
        "t1",
        polling_strategy=Strategy.Next(),
        batch_length=10,
        auto_commit=package.AutoCommit.When(package.AutoCommitWhen.PollingMessages()),
        poll_interval=datetime.timedelta(milliseconds=20),
    )
    if inspect.isawaitable(consumer):  # since 0.7.0
        consumer = await consumer
    taken: list[str] = []
    enough = asyncio.Event()

    async def take(message: Any) -> None:
        taken.append(message.payload().decode())
        if len(taken) >= count:
            enough.set()

    await asyncio.wait_for(consumer.consume_messages(take, enough), PATIENCE_S)
    print(*taken)


async def main() -> None:
    action, stream = sys.argv[2:4]
    if action == "send":
        await send(stream, int(sys.argv[4]), int(sys.argv[5]))
    else:
        await consume(stream, sys.argv[4], int(sys.argv[5]))


run(main)
