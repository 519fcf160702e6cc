"""What release 0.9.0 offers beyond the others: headers, groups by hand, options, users, permissions, statistics.

Arguments: the address, a name that is nobody else's.
"""

import io
import os
import sys
import zipfile
from typing import Any

from tests.conformance.iggy_apache import current
from tests.conformance.iggy_apache.releases import SendMessage, connected, refused, run

GET_SNAPSHOT, DEFLATED, EVERYTHING = 11, 2, 100


async def main() -> None:
    name = sys.argv[2]
    iggy = await connected()
    await iggy.create_stream(name)
    await current.topics(iggy, name)
    await current.messages(iggy, name)
    await groups(iggy, name)
    await current.users(iggy, name)
    assert (await current.statistics(iggy)).kernel_version == os.uname().release
    for part in (partitions, names, snapshots):
        await part(iggy, name)
    await current.endings(iggy, name)


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


run(main)
