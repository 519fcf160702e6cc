"""All that the package can do over HTTP.

Arguments: the URL of the HTTP API, the address of the binary protocol (not used), a name that is nobody else's.
"""

import asyncio
import datetime
import os
import sys
from collections.abc import Awaitable
from typing import Any

import apache_iggy as package

Strategy = package.PollingStrategy
key, value = package.HeaderKey, package.HeaderValue
HEADERS = {
    key.String("string"): value.String("text"),
    key.String("raw"): value.Raw(b"\x00\xff"),
    key.String("bool"): value.Bool(True),
    key.String("int8"): value.Int8(-8),
    key.String("int128"): value.Int128(-(2**100)),
    key.String("uint64"): value.UnsignedInt64(2**63),
    key.String("float32"): value.Float32(0.5),
    key.String("float64"): value.Float64(-1.25),
    key.UnsignedInt16(7): value.String("a key that is a number"),
}


def client() -> Any:
    return package.IggyClient(package.HttpConfig(api_url=sys.argv[1], retries=0))


async def connected(user: str = "iggy", password: str = "iggy") -> Any:
    one = client()
    await one.connect()
    await one.login_user(user, password)
    return one


async def refused(action: Awaitable[Any]) -> str:
    try:
        await action
    except RuntimeError as error:
        return str(error)
    raise AssertionError("it was not refused")


async def main() -> None:
    name = sys.argv[3]
    iggy = await connected()
    await iggy.ping()
    for part in (streams, topics, messages, groups, users, statistics, endings):
        await part(iggy, name)


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


async def topics(iggy: Any, name: str) -> None:
    await iggy.create_topic(
        stream=name,
        name="t1",
        partitions_count=3,
        message_expiry=package.IggyExpiry.NeverExpire(),
        compression_algorithm="gzip",
        durability=package.Durability.PERSISTED,
    )
    topic = await iggy.get_topic(name, "t1")
    assert (topic.partitions_count, topic.compression_algorithm, topic.size) == (3, "gzip", 0)
    assert isinstance(topic.message_expiry, package.IggyExpiry.NeverExpire)
    assert [one.id for one in topic.partitions] == [0, 1, 2]
    assert topic.options[key.String("durability")] == value.String("persisted")
    described = {one.key for one in await iggy.describe_options("topic")}
    assert {"message_expiry", "max_topic_size", "segment_size", "durability"} <= described
    assert "unsupported_option_key" in await refused(
        iggy.create_topic(stream=name, name="t2", partitions_count=1, options={"colour": "red"})
    )
    too_small = package.MaxTopicSize.Custom(1000)
    assert "size" in await refused(
        iggy.create_topic(stream=name, name="t2", partitions_count=1, max_topic_size=too_small)
    )
    hour = package.IggyExpiry.ExpireDuration(datetime.timedelta(hours=1))
    await iggy.update_topic(name, "t1", "t1", message_expiry=hour)
    changed = await iggy.get_topic(name, "t1")
    assert changed.message_expiry.duration == datetime.timedelta(hours=1)
    assert changed.compression_algorithm == "gzip"
    await iggy.create_partitions(name, "t1", 1)
    assert (await iggy.get_topic(name, "t1")).partitions_count == 4
    assert [one.name for one in await iggy.get_topics(name)] == ["t1"]
    assert await iggy.get_topic(name, "nobody's") is None


async def messages(iggy: Any, name: str) -> None:
    sent = [package.SendMessage("plain"), package.SendMessage("with headers", user_headers=HEADERS)]
    reply = await iggy.send_messages(stream=name, topic="t1", partitioning=2, messages=sent)
    (placed,) = reply.confirmations
    assert (placed.partition_id, placed.base_offset) == (2, 0)
    keyed = package.Partitioning.messages_key(b"a key")
    places = set()
    for _ in range(3):
        reply = await iggy.send_messages(
            stream=name, topic="t1", partitioning=keyed, messages=[package.SendMessage("x")]
        )
        places.add(reply.confirmations[0].partition_id)
    assert len(places) == 1
    balanced = set()
    for _ in range(4):
        reply = await iggy.send_messages(
            stream=name,
            topic="t1",
            partitioning=package.Partitioning.balanced(),
            messages=[package.SendMessage("x")],
        )
        balanced.add(reply.confirmations[0].partition_id)
    assert balanced == {0, 1, 2, 3}

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

    polled = await poll(Strategy.Offset(0), 2)
    assert [one.payload() for one in polled] == [b"plain", b"with headers"]
    assert not polled[0].user_headers()
    assert dict(polled[1].user_headers()) == HEADERS
    assert all(one.origin_timestamp() > 0 and one.checksum() and one.id() for one in polled)
    assert [one.offset() for one in await poll(Strategy.Last(), 1)] == [polled[-1].offset() + 1] or places == {2}
    assert [one.offset() for one in await poll(Strategy.Next(), 2, auto_commit=True)] == [0, 1]
    assert (await poll(Strategy.Next(), 1))[0].offset() == 2
    assert [one.offset() for one in await poll(Strategy.Timestamp(polled[0].timestamp()), 1)] == [0]
    assert "not found" in await refused(poll(Strategy.First(), 1, partition=9))


async def groups(iggy: Any, name: str) -> None:
    await iggy.create_consumer_group(name, "t1", "g1")
    assert "consumer_group_name_already_exists" in await refused(iggy.create_consumer_group(name, "t1", "g1"))
    group = await iggy.get_consumer_group(name, "t1", "g1")
    assert (group.name, group.partitions_count, group.members_count, group.members) == ("g1", 4, 0, [])
    assert [one.name for one in await iggy.get_consumer_groups(name, "t1")] == ["g1"]
    await iggy.delete_consumer_group(name, "t1", "g1")
    assert await iggy.get_consumer_group(name, "t1", "g1") is None


async def users(iggy: Any, name: str) -> None:
    bob = f"bob-{name}"
    stream = (await iggy.get_stream(name)).id
    rights = package.Permissions(
        global_permissions=package.GlobalPermissions(read_streams=True),
        streams={
            stream: package.StreamPermissions(
                send_messages=True, topics={0: package.TopicPermissions(manage_topic=True)}
            )
        },
    )
    await iggy.create_user(bob, "secret", permissions=rights)
    assert "user_already_exists" in await refused(iggy.create_user(bob, "secret"))
    assert (await iggy.get_user(bob)).permissions == rights
    assert bob in {one.username for one in await iggy.get_users()}
    await iggy.change_password(bob, "secret", "better")
    stranger = client()
    await stranger.connect()
    assert "nvalid_credentials" in await refused(stranger.login_user(bob, "secret"))
    friend = await connected(bob, "better")
    assert name in {one.name for one in await friend.get_streams()}
    assert "nauthorized" in await refused(friend.create_stream(f"{name}-b"))
    await iggy.update_permissions(bob, None)
    assert "nauthorized" in await refused(friend.get_streams())
    await iggy.update_user(bob, status=package.UserStatus.Inactive)
    assert (await iggy.get_user(bob)).status == package.UserStatus.Inactive
    assert "nauthenticated" in await refused(friend.get_streams())
    await iggy.delete_user(bob)
    assert await iggy.get_user(bob) is None


async def statistics(iggy: Any, name: str) -> None:
    stats = await iggy.get_stats()
    assert stats.messages_count > 0
    assert stats.memory_usage > 1_000_000
    assert stats.hostname == os.uname().nodename
    assert stats.process_id > 0
    assert 0 < stats.free_disk_space < stats.total_disk_space


async def endings(iggy: Any, name: str) -> None:
    await iggy.purge_topic(name, "t1")
    assert (await iggy.get_topic(name, "t1")).messages_count == 0
    await iggy.purge_stream(name)
    await iggy.delete_topic(name, "t1")
    assert await iggy.get_topic(name, "t1") is None
    await iggy.delete_stream(name)
    assert await iggy.get_stream(name) is None
    await iggy.logout_user()
    assert "nauthenticated" in await refused(iggy.get_streams())


asyncio.run(main())
sys.stdout.flush()
os._exit(0)  # threads of the package abort the process at times when it ends
