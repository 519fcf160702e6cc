"""What every release can do: streams, topics, sending, polling in every way, stored offsets, errors.

Arguments: the address, a name that is nobody else's, the number of the first partition.
"""

import sys
from typing import Any

from tests.conformance.iggy_apache.releases import SendMessage, Strategy, client, connected, refused, run, single


async def main() -> None:
    name, first = sys.argv[2], int(sys.argv[3])
    iggy = await connected()
    await iggy.ping()
    await iggy.create_stream(name)
    again = await refused(iggy.create_stream(name))
    assert "StreamNameAlreadyExists" in again or "already exists" in again
    stream = await iggy.get_stream(name)
    assert (stream.name, stream.topics_count, stream.messages_count) == (name, 0, 0)
    assert (await iggy.get_stream(stream.id)).name == name
    assert await iggy.get_stream("nobody's") is None
    await iggy.create_topic(stream=name, name="t1", partitions_count=2)
    topic = await iggy.get_topic(name, "t1")
    assert topic.name == "t1"
    assert await iggy.get_topic(name, "nobody's") is None
    assert await refused(iggy.create_topic(stream=name, name="t1", partitions_count=2))

    async def send(*values: str, partition: int = first) -> None:
        messages = [SendMessage(value) for value in values]
        await iggy.send_messages(stream=name, topic="t1", partitioning=partition, messages=messages)

    async def poll(
        strategy: Strategy, count: int = 100, *, auto_commit: bool = False, partition: int = first
    ) -> list[Any]:
        polled: list[Any] = await iggy.poll_messages(
            stream=name,
            topic="t1",
            partition_id=partition,
            polling_strategy=strategy,
            count=count,
            auto_commit=auto_commit,
            **single(1),
        )
        return polled

    await send(*(f"message {number}" for number in range(5)))
    await send(*(f"message {number}" for number in range(5, 8)))
    await send("in the other partition", partition=first + 1)
    everything = await poll(Strategy.First())
    assert [one.payload() for one in everything] == [b"message %d" % number for number in range(8)]
    assert [one.offset() for one in everything] == list(range(8))
    assert len({one.id() for one in everything}) == 8
    assert all(one.length() == len(one.payload()) and one.timestamp() > 0 for one in everything)
    later = everything[5].timestamp()
    assert [one.offset() for one in await poll(Strategy.Offset(3), 2)] == [3, 4]
    assert [one.offset() for one in await poll(Strategy.Last(), 2)] == [6, 7]
    assert [one.offset() for one in await poll(Strategy.Timestamp(later))] == [
        one.offset() for one in everything if one.timestamp() >= later
    ]
    assert [one.offset() for one in await poll(Strategy.Next(), 5, auto_commit=True)] == [0, 1, 2, 3, 4]
    assert [one.offset() for one in await poll(Strategy.Next(), 5, auto_commit=True)] == [5, 6, 7]
    assert await poll(Strategy.Next(), 5, auto_commit=True) == []
    assert [one.payload() for one in await poll(Strategy.First(), partition=first + 1)] == [b"in the other partition"]
    assert (await iggy.get_topic(name, "t1")).messages_count == 9
    thousand = [f"{number:0>1000}" for number in range(1000)]
    await send(*thousand, partition=first + 1)
    got = await poll(Strategy.Offset(1), 1000, partition=first + 1)
    assert [one.payload().decode() for one in got] == thousand
    assert await refused(send("nowhere", partition=first + 2))

    stranger = client()
    await stranger.connect()
    assert await refused(stranger.login_user("iggy", "wrong"))


run(main)
