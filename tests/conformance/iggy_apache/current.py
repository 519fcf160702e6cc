"""What the current release can do in the same way over either of its transports, the binary protocol and HTTP."""

import datetime
import os
from collections.abc import Awaitable, Callable
from typing import Any

from tests.conformance.iggy_apache.releases import SendMessage, Strategy, client, package, refused, single

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

Client = Callable[[], Any]
"""Makes a client that is not connected yet."""


async def refusal(action: Awaitable[Any]) -> str:
    """What an action is refused with, in words: over HTTP that is an error's name."""
    return (await refused(action)).lower().replace("_", " ")


async def topics(iggy: Any, name: str) -> None:
    """Topics with options, and more partitions for one: it has 4 then."""
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
    assert topic.options[package.HeaderKey.String("durability")] == package.HeaderValue.String("persisted")
    described = {one.key for one in await iggy.describe_options("topic")}
    assert {"message_expiry", "max_topic_size", "segment_size", "durability"} <= described
    assert "unsupported option key" in await refusal(
        iggy.create_topic(stream=name, name="t2", partitions_count=1, options={"colour": "red"})
    )
    too_small = package.MaxTopicSize.Custom(1000)
    assert "size" in await refusal(
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


async def messages(iggy: Any, name: str) -> list[Any]:
    """Messages with headers, by key and in turn; gives what a poll of the first two brings."""
    sent = [SendMessage("plain"), SendMessage("with headers", user_headers=HEADERS)]
    reply = await iggy.send_messages(stream=name, topic="t1", partitioning=2, messages=sent)
    (placed,) = reply.confirmations
    assert (placed.partition_id, placed.base_offset) == (2, 0)

    async def places(partitioning: Any, count: int) -> set[int]:
        found = set()
        for _ in range(count):
            reply = await iggy.send_messages(
                stream=name, topic="t1", partitioning=partitioning, messages=[SendMessage("x")]
            )
            found.add(reply.confirmations[0].partition_id)
        return found

    assert len(await places(package.Partitioning.messages_key(b"a key"), 3)) == 1
    assert await places(package.Partitioning.balanced(), 4) == {0, 1, 2, 3}
    polled: list[Any] = await iggy.poll_messages(
        stream=name,
        topic="t1",
        partition_id=2,
        polling_strategy=Strategy.Offset(0),
        count=2,
        auto_commit=False,
        **single(1),
    )
    assert [one.payload() for one in polled] == [b"plain", b"with headers"]
    assert not polled[0].user_headers()
    assert dict(polled[1].user_headers()) == HEADERS
    assert all(one.origin_timestamp() > 0 and one.checksum() and one.id() for one in polled)
    return polled


async def users(iggy: Any, name: str, new_client: Client = client) -> None:
    """A user from the beginning to the end."""
    bob = f"bob-{name}"
    stream = (await iggy.get_stream(name)).id
    in_topic = package.TopicPermissions(manage_topic=True)
    rights = package.Permissions(
        global_permissions=package.GlobalPermissions(read_streams=True),
        streams={stream: package.StreamPermissions(send_messages=True, topics={0: in_topic})},
    )
    await iggy.create_user(bob, "secret", permissions=rights)
    assert "already exists" in await refusal(iggy.create_user(bob, "secret"))
    assert (await iggy.get_user(bob)).permissions == rights
    assert bob in {one.username for one in await iggy.get_users()}
    await iggy.change_password(bob, "secret", "better")
    stranger, friend = new_client(), new_client()
    await stranger.connect()
    assert "invalid credentials" in await refusal(stranger.login_user(bob, "secret"))
    await friend.connect()
    await friend.login_user(bob, "better")
    assert name in {one.name for one in await friend.get_streams()}
    assert "unauthorized" in await refusal(friend.create_stream(f"{name}-b"))
    await iggy.update_permissions(bob, None)
    assert "unauthorized" in await refusal(friend.get_streams())
    await iggy.update_user(bob, status=package.UserStatus.Inactive)
    assert (await iggy.get_user(bob)).status == package.UserStatus.Inactive
    assert "unauth" in await refusal(friend.get_streams())
    await iggy.delete_user(bob)
    assert await iggy.get_user(bob) is None


async def statistics(iggy: Any) -> Any:
    """What the server tells of itself; gives it."""
    stats = await iggy.get_stats()
    assert stats.messages_count > 0
    assert stats.memory_usage > 1_000_000
    assert stats.hostname == os.uname().nodename
    assert stats.process_id > 0
    assert 0 < stats.free_disk_space < stats.total_disk_space
    return stats


async def endings(iggy: Any, name: str) -> None:
    """Purging, deleting and logging out."""
    await iggy.purge_topic(name, "t1")
    assert (await iggy.get_topic(name, "t1")).messages_count == 0
    await iggy.purge_stream(name)
    await iggy.delete_topic(name, "t1")
    assert await iggy.get_topic(name, "t1") is None
    await iggy.delete_stream(name)
    assert await iggy.get_stream(name) is None
    await iggy.logout_user()
    assert "unauthenticated" in await refusal(iggy.get_streams())
