"""librdkafka's consumer groups: members that come, go, die and come back."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.confluent.conftest import TIMEOUT_S, Member, consuming, read, send
from tests.support.server_process import ServerProcess
from tests.support.waiting import eventually

Join = Callable[..., Member]
ASSIGNORS = ["range", "roundrobin", "cooperative-sticky"]
PARTITIONS = 6


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    return new_topic(PARTITIONS)


def all_shared_out(members: list[Member], partitions: int = PARTITIONS) -> bool:
    """Whether every partition has one member, and the members have about as many each."""
    shares = [set(member.partitions) for member in members]
    fair = max(map(len, shares)) - min(map(len, shares)) <= 1
    return fair and sorted(p for share in shares for p in share) == list(range(partitions))


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_members_come_and_go(
    broker: ServerProcess, join: Join, topic: str, unique: Callable[[str], str], assignor: str
) -> None:
    group = unique("ck-group")
    config = {"partition.assignment.strategy": assignor}
    first = join(topic, group, **config)
    eventually(lambda: all_shared_out([first]))
    send(broker, [{"topic": topic, "value": b"%d" % n, "partition": n % PARTITIONS} for n in range(60)])
    eventually(lambda: len(first.values) == 60)
    second = join(topic, group, **config)
    eventually(lambda: all_shared_out([first, second]))
    third = join(topic, group, **config)
    eventually(lambda: all_shared_out([first, second, third]))
    second.stop()
    eventually(lambda: all_shared_out([first, third]))
    send(broker, [{"topic": topic, "value": b"more %d" % n, "partition": n % PARTITIONS} for n in range(60)])
    eventually(lambda: len(first.values) + len(third.values) >= 120)
    more = [value for member in (first, third) for value in member.values if value.startswith(b"more")]
    assert sorted(more) == sorted(b"more %d" % n for n in range(60)), "each once, since all was committed"
    if assignor == "cooperative-sticky":
        taken = set().union(*first.revocations)
        assert first.assignments[0] - taken, "some partitions stayed where they were"


def test_five_members_at_once(join: Join, new_topic: Callable[..., str], unique: Callable[[str], str]) -> None:
    topic, group = new_topic(10), unique("ck-group")
    members = [join(topic, group) for _ in range(5)]
    eventually(lambda: all_shared_out(members, 10))
    assert all(len(member.partitions) == 2 for member in members)


def test_a_static_member_comes_back_without_a_rebalance(
    join: Join, admin: Any, topic: str, unique: Callable[[str], str]
) -> None:
    group = unique("ck-group")
    stays = join(topic, group, **{"group.instance.id": "stays"})
    restarts = join(topic, group, **{"group.instance.id": "restarts"})
    eventually(lambda: all_shared_out([stays, restarts]))
    before, share = len(stays.assignments), set(restarts.partitions)
    # librdkafka does not leave a group as a static member.
    restarts.stop()
    again = join(topic, group, **{"group.instance.id": "restarts"})
    eventually(lambda: again.partitions == share)
    described = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
    assert {member.group_instance_id for member in described.members} == {"stays", "restarts"}
    assert len(stays.assignments) == before
    assert not stays.revocations or len(stays.revocations) < before


DYING = """
import sys
from confluent_kafka import Consumer
server, group, topic = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": server, "group.id": group, "session.timeout.ms": 1000})
consumer.subscribe([topic], on_assign=lambda _, partitions: print(len(partitions), flush=True))
while True:
    consumer.poll(0.1)
"""


def test_a_member_that_is_killed_loses_its_session(
    impatient_broker: ServerProcess, join: Join, new_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    topic = new_topic(4, AdminClient({"bootstrap.servers": impatient_broker.kafka}))
    group = unique("ck-group")
    lives = join(topic, group, impatient_broker, **{"session.timeout.ms": 6000})
    eventually(lambda: all_shared_out([lives], 4))
    command = [sys.executable, "-c", DYING, impatient_broker.kafka, group, topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dies:
        try:
            assert dies.stdout is not None
            assert dies.stdout.readline() == "2\n"
            eventually(lambda: len(lives.partitions) == 2)
        finally:
            dies.kill()
    eventually(lambda: all_shared_out([lives], 4))


def test_commit_and_resume(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    topic, group = new_topic(), unique("ck-group")
    send(broker, [{"topic": topic, "value": b"%d" % n} for n in range(50)])
    for first, count in ((0, 20), (20, 20), (40, 10)):
        with consuming(broker, group) as consumer:
            consumer.subscribe([topic])
            messages = read(consumer, count)
            assert [int(message.value()) for message in messages] == list(range(first, first + count))
            consumer.commit(messages[-1], asynchronous=False)


def test_automatic_commits(
    broker: ServerProcess, new_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    topic, group = new_topic(), unique("ck-group")
    send(broker, [{"topic": topic, "value": b"%d" % n} for n in range(50)])
    with consuming(broker, group, **{"enable.auto.commit": True}) as consumer:
        consumer.subscribe([topic])
        read(consumer, 50)
    with consuming(broker, group) as consumer:
        assert consumer.committed([TopicPartition(topic, 0)], timeout=TIMEOUT_S)[0].offset == 50


def test_groups_through_the_admin_client(
    broker: ServerProcess, admin: Any, join: Join, topic: str, unique: Callable[[str], str]
) -> None:
    group = unique("ck-group")
    member = join(topic, group, **{"client.id": "späti", "partition.assignment.strategy": "roundrobin"})
    eventually(lambda: all_shared_out([member]))
    described = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
    assert (described.state.name, described.partition_assignor) == ("STABLE", "roundrobin")
    [one] = described.members
    assert one.client_id == "späti"
    assert {place.partition for place in one.assignment.topic_partitions} == set(range(PARTITIONS))
    listed = {one.group_id: one for one in admin.list_consumer_groups().result(TIMEOUT_S).valid}
    assert listed[group].state.name == "STABLE"
    refused = admin.delete_consumer_groups([group])[group].exception(TIMEOUT_S)
    assert refused.args[0].name() == "NON_EMPTY_GROUP"
    member.stop()
    described = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
    assert (described.state.name, described.members) == ("EMPTY", [])
    wanted = [TopicPartition(topic, 2, 33), TopicPartition(topic, 3, 44)]
    asked = ConsumerGroupTopicPartitions(group, wanted)
    admin.alter_consumer_group_offsets([asked])[group].result(TIMEOUT_S)
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(TIMEOUT_S)
    assert {(one.partition, one.offset) for one in found.topic_partitions} >= {(2, 33), (3, 44)}
    admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)
    gone = admin.delete_consumer_groups([group])[group].exception(TIMEOUT_S)
    assert gone.args[0].name() == "GROUP_ID_NOT_FOUND"
    missing = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
    assert missing.state.name == "DEAD"
