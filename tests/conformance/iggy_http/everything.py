"""All that the package can do over HTTP.

Arguments: the URL of the HTTP API, the address of the binary protocol (not used), a name that is nobody else's.
"""

import sys
from typing import Any

from tests.conformance.iggy_apache import current
from tests.conformance.iggy_apache.releases import Strategy, package, refused, run


def client() -> Any:
    return package.IggyClient(package.HttpConfig(api_url=sys.argv[1], retries=0))


async def main() -> None:
    name = sys.argv[3]
    iggy = client()
    await iggy.connect()
    await iggy.login_user("iggy", "iggy")
    await iggy.ping()
    await streams(iggy, name)
    await current.topics(iggy, name)
    polled = await current.messages(iggy, name)
    await polls(iggy, name, polled[0].timestamp())
    await groups(iggy, name)
    await current.users(iggy, name, client)
    await current.statistics(iggy)
    await current.endings(iggy, name)


async def streams(iggy: Any, name: str) -> None:
    await iggy.create_stream(name)
    again = await refused(iggy.create_stream(name))
    assert "400" in again
    assert "stream_name_already_exists" in again
    stream = await iggy.get_stream(name)
    assert (stream.name, stream.topics_count, stream.messages_count) == (name, 0, 0)
    assert (await iggy.get_stream(stream.id)).name == name
    assert await iggy.get_stream("nobody's") is None
    assert name in {one.name for one in await iggy.get_streams()}


async def polls(iggy: Any, name: str, first_us: int) -> None:
    async def poll(strategy: Any, count: int, *, auto_commit: bool = False, partition: int = 2) -> Any:
        return await iggy.poll_messages(
            stream=name,
            topic="t1",
            partition_id=partition,
            polling_strategy=strategy,
            count=count,
            auto_commit=auto_commit,
            consumer=package.Consumer.Single(name),
        )

    last = (await iggy.get_topic(name, "t1")).partitions[2].current_offset
    assert [one.offset() for one in await poll(Strategy.Last(), 1)] == [last]
    assert [one.offset() for one in await poll(Strategy.Next(), 2, auto_commit=True)] == [0, 1]
    assert (await poll(Strategy.Next(), 1))[0].offset() == 2
    assert [one.offset() for one in await poll(Strategy.Timestamp(first_us), 1)] == [0]
    assert "not found" in await refused(poll(Strategy.First(), 1, partition=9))


async def groups(iggy: Any, name: str) -> None:
    await iggy.create_consumer_group(name, "t1", "g1")
    assert "consumer_group_name_already_exists" in await refused(iggy.create_consumer_group(name, "t1", "g1"))
    group = await iggy.get_consumer_group(name, "t1", "g1")
    assert (group.name, group.partitions_count, group.members_count, group.members) == ("g1", 4, 0, [])
    assert [one.name for one in await iggy.get_consumer_groups(name, "t1")] == ["g1"]
    await iggy.delete_consumer_group(name, "t1", "g1")
    assert await iggy.get_consumer_group(name, "t1", "g1") is None


run(main)
