"""aiokafka's consumer groups: members that come, go and come back."""

from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tests.conformance.aiokafka.conftest import (
    Member,
    Run,
    administering,
    consuming,
    eventually_async,
    place,
    read,
    send_values,
)
from tests.support.server_process import ServerProcess

ASSIGNORS = [RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor]
PARTITIONS = 6


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    return new_topic(PARTITIONS)


def all_shared_out(members: list[Member], partitions: int = PARTITIONS) -> bool:
    """Whether every partition has one member, and the members have about as many each."""
    shares = [set(member.partitions) for member in members]
    fair = max(map(len, shares)) - min(map(len, shares)) <= 1
    return fair and sorted(p for share in shares for p in share) == list(range(partitions))


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda assignor: assignor.__name__)
def test_members_come_and_go(
    broker: ServerProcess, topic: str, run: Run, unique: Callable[[str], str], assignor: Any
) -> None:
    group, config = unique("aio-group"), {"partition_assignment_strategy": (assignor,)}
    values = [b"%d" % n for n in range(60)]

    async def come_and_go() -> None:
        first = Member(broker, topic, group, **config)
        await eventually_async(lambda: all_shared_out([first]))
        second = Member(broker, topic, group, **config)
        await eventually_async(lambda: all_shared_out([first, second]))
        await send_values(broker, topic, values, PARTITIONS)
        await eventually_async(lambda: len(first.values) + len(second.values) >= 60)
        assert sorted(first.values + second.values) == sorted(values)
        await second.stop()
        await eventually_async(lambda: all_shared_out([first]))
        await first.stop()

    run(come_and_go())


def test_five_members_at_once(
    broker: ServerProcess, new_topic: Callable[..., str], run: Run, unique: Callable[[str], str]
) -> None:
    topic, group = new_topic(10), unique("aio-group")

    async def join() -> None:
        members = [Member(broker, topic, group) for _ in range(5)]
        await eventually_async(lambda: all_shared_out(members, 10))
        for member in members:
            await member.stop()

    run(join())


def test_a_static_member_comes_back_without_a_rebalance(
    broker: ServerProcess, topic: str, run: Run, unique: Callable[[str], str]
) -> None:
    group = unique("aio-group")

    async def restart() -> None:
        stays = Member(broker, topic, group, group_instance_id="stays")
        restarts = Member(broker, topic, group, group_instance_id="restarts")
        await eventually_async(lambda: all_shared_out([stays, restarts]))
        before, share = stays.generations, set(restarts.partitions)
        await restarts.stop()
        again = Member(broker, topic, group, group_instance_id="restarts")
        await eventually_async(lambda: again.partitions == share)
        assert stays.generations == before
        await stays.stop()
        await again.stop()

    run(restart())


def test_a_session_times_out(
    impatient_broker: ServerProcess, new_topic: Callable[..., str], run: Run, unique: Callable[[str], str]
) -> None:
    topic, group = new_topic(4, impatient_broker), unique("aio-group")

    async def die() -> None:
        lives = Member(impatient_broker, topic, group, session_timeout_ms=6000)
        # A static member does not leave when it is stopped: to the server it has died.
        dies = Member(impatient_broker, topic, group, session_timeout_ms=1000, group_instance_id="dies")
        await eventually_async(lambda: all_shared_out([lives, dies], 4))
        await dies.stop()
        await eventually_async(lambda: all_shared_out([lives], 4))
        await lives.stop()

    run(die())


def test_commit_and_resume(
    broker: ServerProcess, new_topic: Callable[..., str], run: Run, unique: Callable[[str], str]
) -> None:
    topic, group = new_topic(), unique("aio-group")

    async def go_on() -> None:
        await send_values(broker, topic, [b"%d" % n for n in range(50)])
        for first, count in ((0, 20), (20, 20), (40, 10)):
            async with consuming(broker, topic, group_id=group) as consumer:
                found = await read(consumer, count)
                assert [int(record.value) for record in found] == list(range(first, first + count))
                await consumer.commit()

    run(go_on())


def test_groups_through_the_admin_client(
    broker: ServerProcess, topic: str, run: Run, unique: Callable[[str], str]
) -> None:
    group = unique("aio-group")

    async def look() -> None:
        member = Member(broker, topic, group, client_id="späti")
        await eventually_async(lambda: all_shared_out([member]))
        await send_values(broker, topic, [b"x"])
        await eventually_async(lambda: len(member.values) == 1)
        async with administering(broker) as admin:
            [answer] = await admin.describe_consumer_groups([group])
            [described] = answer.groups
            assert (described[0], described[1], described[2]) == (0, group, "Stable")
            assert "späti" in str(described)
            assert (group, "consumer") in await admin.list_consumer_groups()
            offsets = await admin.list_consumer_group_offsets(group)
            assert offsets[place(topic)].offset == 1
        await member.stop()

    run(look())
