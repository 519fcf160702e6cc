"""What release 0.9.0 offers beyond the others: headers, groups by hand, options, users, permissions, statistics."""

import datetime
import io
import os
import sys
import zipfile
from typing import Any

from tests.conformance.iggy_apache.releases import (
    SendMessage,
    Strategy,
    client,
    connected,
    package,
    refused,
    run,
    single,
)

GET_SNAPSHOT, DEFLATED, EVERYTHING = 11, 2, 100


async def main() -> None:
    name = sys.argv[2]
    iggy = await connected()
    await iggy.create_stream(name)
    for part in (topics, messages, groups, users, statistics, partitions, names, snapshots, endings):
        await part(iggy, name)


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
    assert topic.options[package.HeaderKey.String("durability")] == package.HeaderValue.String("persisted")
    described = {one.key for one in await iggy.describe_options("topic")}
    assert {"message_expiry", "max_topic_size", "segment_size", "durability"} <= described
    assert "Unsupported option key" in await refused(
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


async def messages(iggy: Any, name: str) -> None:
    key, value = package.HeaderKey, package.HeaderValue
    headers = {
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
    sent = [SendMessage("plain"), SendMessage("with headers", user_headers=headers)]
    reply = await iggy.send_messages(stream=name, topic="t1", partitioning=2, messages=sent)
    (placed,) = reply.confirmations
    assert (placed.partition_id, placed.base_offset) == (2, 0)
    keyed = package.Partitioning.messages_key(b"a key")
    places = set()
    for _ in range(3):
        reply = await iggy.send_messages(stream=name, topic="t1", partitioning=keyed, messages=[SendMessage("x")])
        places.add(reply.confirmations[0].partition_id)
    assert len(places) == 1
    balanced = set()
    for _ in range(4):
        reply = await iggy.send_messages(
            stream=name, topic="t1", partitioning=package.Partitioning.balanced(), messages=[SendMessage("x")]
        )
        balanced.add(reply.confirmations[0].partition_id)
    assert balanced == {0, 1, 2, 3}
    polled = await iggy.poll_messages(
        stream=name,
        topic="t1",
        partition_id=2,
        polling_strategy=Strategy.Offset(0),
        count=2,
        auto_commit=False,
        **single(1),
    )
    assert polled[0].user_headers() is None
    assert dict(polled[1].user_headers()) == headers
    assert all(one.origin_timestamp() > 0 and one.checksum() for one in polled)


async def groups(iggy: Any, name: str) -> None:
    await iggy.create_consumer_group(name, "t1", "g1")
    assert "already exists" in await refused(iggy.create_consumer_group(name, "t1", "g1"))
    await iggy.join_consumer_group(name, "t1", "g1")
    group = await iggy.get_consumer_group(name, "t1", "g1")
    assert (group.name, group.partitions_count, group.members_count) == ("g1", 4, 1)
    assert [one.partitions for one in group.members] == [[0, 1, 2, 3]]
    assert [one.name for one in await iggy.get_consumer_groups(name, "t1")] == ["g1"]
    await iggy.leave_consumer_group(name, "t1", "g1")
    await iggy.delete_consumer_group(name, "t1", "g1")
    assert await iggy.get_consumer_group(name, "t1", "g1") is None


async def users(iggy: Any, name: str) -> None:
    bob = f"bob-{name}"
    rights = package.GlobalPermissions(read_streams=True)
    await iggy.create_user(bob, "secret", permissions=package.Permissions(global_permissions=rights))
    assert "already exists" in await refused(iggy.create_user(bob, "secret"))
    found = await iggy.get_user(bob)
    assert found.permissions.global_permissions.read_streams
    assert bob in {one.username for one in await iggy.get_users()}
    await iggy.change_password(bob, "secret", "better")
    stranger = client()
    await stranger.connect()
    assert "nvalid credentials" in await refused(stranger.login_user(bob, "secret"))
    friend = client()
    await friend.connect()
    await friend.login_user(bob, "better")
    assert name in {one.name for one in await friend.get_streams()}
    assert "nauthorized" in await refused(friend.create_stream(f"{name}-b"))
    await iggy.update_permissions(bob, None)
    assert "nauthorized" in await refused(friend.get_streams())
    await iggy.update_user(bob, status=package.UserStatus.Inactive)
    assert (await iggy.get_user(bob)).status == package.UserStatus.Inactive
    await iggy.delete_user(bob)
    assert await iggy.get_user(bob) is None


async def statistics(iggy: Any, name: str) -> None:
    stats = await iggy.get_stats()
    assert stats.messages_count > 0
    assert stats.memory_usage > 1_000_000
    assert stats.hostname == os.uname().nodename
    assert stats.kernel_version == os.uname().release
    assert stats.process_id > 0
    assert 0 < stats.free_disk_space < stats.total_disk_space


async def partitions(iggy: Any, name: str) -> None:
    await iggy.create_topic(stream=name, name="t3", partitions_count=3)
    for partition in range(3):
        await iggy.send_messages(name, "t3", partition, [SendMessage(f"old {partition}")])
    await iggy.delete_partitions(name, "t3", 2)
    assert (await iggy.get_topic(name, "t3")).partitions_count == 1
    assert "nvalid partitions count" in await refused(iggy.delete_partitions(name, "t3", 1))
    assert "artition" in await refused(iggy.send_messages(name, "t3", 2, [SendMessage("late")]))
    await iggy.create_partitions(name, "t3", 2)
    found = (await iggy.get_topic(name, "t3")).partitions
    assert [(one.id, one.messages_count) for one in found] == [(0, 1), (1, 0), (2, 0)]
    reply = await iggy.send_messages(name, "t3", 2, [SendMessage("new")])
    assert [one.base_offset for one in reply.confirmations] == [0]


async def names(iggy: Any, name: str) -> None:
    number = (await iggy.get_stream(name)).id
    await iggy.update_topic(name, "t3", "t4")
    await iggy.update_stream(name, f"{name}-later")
    assert (await iggy.get_stream(f"{name}-later")).id == number
    assert await iggy.get_stream(name) is None
    assert (await iggy.get_topic(f"{name}-later", "t4")).messages_count == 2
    await iggy.create_stream(name)
    assert "already exists" in await refused(iggy.update_stream(f"{name}-later", name))
    await iggy.delete_stream(name)
    await iggy.update_stream(f"{name}-later", name)
    await iggy.delete_topic(name, "t4")


async def snapshots(iggy: Any, name: str) -> None:
    answer = await iggy.send_binary_request(GET_SNAPSHOT, bytes([DEFLATED, 1, EVERYTHING]))
    with zipfile.ZipFile(io.BytesIO(answer)) as archive:
        assert archive.testzip() is None
        assert "server_config.txt" in archive.namelist()


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


run(main)
