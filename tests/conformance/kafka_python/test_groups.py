"""kafka-python's consumer groups: members that come, go and come back."""

from collections.abc import Callable
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.structs import OffsetAndMetadata

from tests.conformance.kafka_python.conftest import Member, consuming, place, read, send_values
from tests.support.server_process import ServerProcess
from tests.support.waiting import eventually

Join = Callable[..., Member]
ASSIGNORS = [
    RangePartitionAssignor,
    RoundRobinPartitionAssignor,
    StickyPartitionAssignor,
    CooperativeStickyAssignor,
]
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
    broker: ServerProcess, join: Join, topic: str, unique: Callable[[str], str], assignor: Any
) -> None:
    group, config = unique("kp-group"), {"partition_assignment_strategy": (assignor,)}
    first = join(topic, group, **config)
    eventually(lambda: all_shared_out([first]))
    second = join(topic, group, **config)
    eventually(lambda: all_shared_out([first, second]))
    values = [b"%d" % n for n in range(60)]
    send_values(broker, topic, values, PARTITIONS)
    eventually(lambda: len(first.values) + len(second.values) >= 60)
    assert sorted(first.values + second.values) == sorted(values)
    second.stop()
    eventually(lambda: all_shared_out([first]))


def test_five_members_at_once(join: Join, new_topic: Callable[..., str], unique: Callable[[str], str]) -> None:
    topic, group = new_topic(10), unique("kp-group")
    members = [join(topic, group) for _ in range(5)]
    eventually(lambda: all_shared_out(members, 10))


def test_a_static_member_comes_back_without_a_rebalance(
    join: Join, topic: str, unique: Callable[[str], str], admin: Any
) -> None:
    group = unique("kp-group")
    stays = join(topic, group, group_instance_id="stays")
    restarts = join(topic, group, group_instance_id="restarts")
    eventually(lambda: all_shared_out([stays, restarts]))
    before, share = len(stays.assignments), set(restarts.partitions)
    restarts.stop()
    again = join(topic, group, group_instance_id="restarts")
    eventually(lambda: again.partitions == share)
    described = admin.describe_groups([group])[group]
    assert {member["group_instance_id"] for member in described["members"]} == {"stays", "restarts"}
    assert len(stays.assignments) == before


def test_a_session_times_out(
    impatient_broker: ServerProcess, join: Join, new_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=impatient_broker.kafka)
    topic, group = new_topic(4, admin), unique("kp-group")
    # A static member does not leave when it is closed: to the server it has died.
    lives = join(topic, group, impatient_broker, session_timeout_ms=6000)
    dies = join(topic, group, impatient_broker, session_timeout_ms=1000, group_instance_id="dies")
    eventually(lambda: all_shared_out([lives, dies], 4))
    dies.stop()
    eventually(lambda: all_shared_out([lives], 4))
    admin.close()


def test_commit_and_resume(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    topic, group = new_topic(), unique("kp-group")
    send_values(broker, topic, [b"%d" % n for n in range(50)])
    for first, count in ((0, 20), (20, 20), (40, 10)):
        with consuming(broker, topic, group_id=group) as consumer:
            assert [int(record.value) for record in read(consumer, count)] == list(range(first, first + count))
            consumer.commit()


def test_groups_through_the_admin_client(
    admin: Any, broker: ServerProcess, join: Join, topic: str, unique: Callable[[str], str]
) -> None:
    group = unique("kp-group")
    member = join(topic, group, client_id="späti")
    eventually(lambda: all_shared_out([member]))
    described = admin.describe_groups([group])[group]
    assert described["group_state"] == "Stable"
    [one] = described["members"]
    assert one["client_id"] == "späti"
    assert group in str(admin.list_groups())
    assert admin.delete_groups([group]) == {group: "NonEmptyGroupError"}
    refused = admin.delete_group_offsets(group, [place(topic)])
    assert "SubscribedToTopic" in str(refused[place(topic)])
    member.stop()
    changed = {place(topic, 1): OffsetAndMetadata(7, "seven", -1), place(topic, 2): OffsetAndMetadata(8, "", -1)}
    admin.alter_group_offsets(group, changed)
    found = admin.list_group_offsets(group)[group]
    assert (found[place(topic, 1)].offset, found[place(topic, 1)].metadata) == (7, "seven")
    admin.delete_group_offsets(group, [place(topic, 1)])
    left = admin.list_group_offsets(group)[group]
    assert place(topic, 1) not in left or left[place(topic, 1)].offset == -1
    assert left[place(topic, 2)].offset == 8
    assert admin.delete_groups([group]) == {group: "OK"}
    assert admin.delete_groups([group]) == {group: "GroupIdNotFoundError"}
