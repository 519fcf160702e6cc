"""librdkafka's consumer groups of today (KIP-848): the server assigns, and members only say what they want."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, ConsumerGroupType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.conformance.confluent.conftest import TIMEOUT_S, Member, consuming, read, send
from tests.conformance.confluent.test_groups import PARTITIONS, all_shared_out
from tests.conformance.conftest import IMPATIENT_GROUPS
from tests.support.server_process import ServerProcess, lasting_listener, start
from tests.support.waiting import eventually

Join = Callable[..., Member]
CONSUMER = {"group.protocol": "consumer"}


@pytest.fixture
def admin(impatient_broker: ServerProcess) -> Any:
    return AdminClient({"bootstrap.servers": impatient_broker.kafka})


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    return new_topic(PARTITIONS)


@pytest.fixture
def group(unique: Callable[[str], str]) -> str:
    return unique("ck-consumers")


def messages(topic: str, count: int, stem: str = "") -> list[dict[str, Any]]:
    return [{"topic": topic, "value": f"{stem}{n}".encode(), "partition": n % PARTITIONS} for n in range(count)]


def described(admin: Any, group: str) -> Any:
    return admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)


@pytest.mark.parametrize("assignor", [None, "uniform", "range"])
def test_members_come_and_go(
    impatient_broker: ServerProcess, join: Join, topic: str, group: str, assignor: str | None
) -> None:
    config = CONSUMER if assignor is None else {**CONSUMER, "group.remote.assignor": assignor}
    first = join(topic, group, impatient_broker, **config)
    eventually(lambda: all_shared_out([first]))
    send(impatient_broker, messages(topic, 60))
    eventually(lambda: len(first.values) == 60)
    second = join(topic, group, impatient_broker, **config)
    eventually(lambda: all_shared_out([first, second]))
    third = join(topic, group, impatient_broker, **config)
    eventually(lambda: all_shared_out([first, second, third]))
    second.stop()
    eventually(lambda: all_shared_out([first, third]))
    send(impatient_broker, messages(topic, 60, "more "))
    eventually(lambda: len(first.values) + len(third.values) >= 120)
    more = [value for member in (first, third) for value in member.values if value.startswith(b"more")]
    assert sorted(more) == sorted(b"more %d" % n for n in range(60)), "each once, since all was committed"
    taken: set[int] = set().union(*first.revocations)
    assert first.assignments[0] - taken, "some partitions stayed where they were"


def test_a_static_member_comes_back_to_its_partitions(
    impatient_broker: ServerProcess, join: Join, topic: str, group: str
) -> None:
    stays = join(topic, group, impatient_broker, **CONSUMER, **{"group.instance.id": "stays"})
    restarts = join(topic, group, impatient_broker, **CONSUMER, **{"group.instance.id": "restarts"})
    eventually(lambda: all_shared_out([stays, restarts]))
    before, share = (len(stays.assignments), len(stays.revocations)), set(restarts.partitions)
    restarts.stop()
    again = join(topic, group, impatient_broker, **CONSUMER, **{"group.instance.id": "restarts"})
    eventually(lambda: again.partitions == share)
    assert (len(stays.assignments), len(stays.revocations)) == before


DYING = """
import sys
from confluent_kafka import Consumer
server, group, topic = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": server, "group.id": group, "group.protocol": "consumer"})
consumer.subscribe([topic], on_assign=lambda _, partitions: print(len(partitions), flush=True))
while True:
    consumer.poll(0.1)
"""


def test_a_member_that_is_killed_loses_its_session(
    impatient_broker: ServerProcess, join: Join, topic: str, group: str
) -> None:
    lives = join(topic, group, impatient_broker, **CONSUMER)
    eventually(lambda: all_shared_out([lives]))
    command = [sys.executable, "-c", DYING, impatient_broker.kafka, group, topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dies:
        try:
            assert dies.stdout is not None
            assert dies.stdout.readline()
            eventually(lambda: len(lives.partitions) == PARTITIONS // 2)
        finally:
            dies.kill()
    eventually(lambda: all_shared_out([lives]))


def test_a_pattern_and_topics_that_come_later(
    impatient_broker: ServerProcess, admin: Any, join: Join, new_topic: Callable[..., str], group: str
) -> None:
    first = new_topic(1, admin)
    member = join(f"^{first}.*", group, impatient_broker, **CONSUMER)
    send(impatient_broker, [{"topic": first, "value": b"one", "partition": 0}])
    eventually(lambda: member.values == [b"one"])
    later = f"{first}-later"
    send(impatient_broker, [{"topic": later, "value": b"two", "partition": 0}])
    eventually(lambda: member.values == [b"one", b"two"])


def test_a_pattern_that_is_none(impatient_broker: ServerProcess, group: str) -> None:
    with consuming(impatient_broker, group, **CONSUMER) as consumer:
        consumer.subscribe(["^x{1001}"])  # more than RE2 repeats, here as in Apache Kafka
        with pytest.raises(KafkaException) as refused:
            read(consumer, 1)
        assert "regular expression is not valid" in str(refused.value)


def test_more_partitions_are_shared_out(
    impatient_broker: ServerProcess, admin: Any, join: Join, new_topic: Callable[..., str], group: str
) -> None:
    topic = new_topic(2, admin)
    members = [join(topic, group, impatient_broker, **CONSUMER) for _ in range(2)]
    eventually(lambda: all_shared_out(members, 2))
    admin.create_partitions([NewPartitions(topic, 6)])[topic].result(TIMEOUT_S)
    eventually(lambda: all_shared_out(members, 6))


def test_commit_and_resume(impatient_broker: ServerProcess, topic: str, group: str) -> None:
    send(impatient_broker, messages(topic, 50))
    seen: list[bytes] = []
    for count in (20, 20, 10):
        with consuming(impatient_broker, group, **CONSUMER) as consumer:
            consumer.subscribe([topic])
            for message in read(consumer, count):
                seen.append(message.value())
                consumer.commit(message, asynchronous=False)
    assert sorted(seen) == sorted(b"%d" % n for n in range(50))


def test_groups_through_the_admin_client(
    impatient_broker: ServerProcess, admin: Any, join: Join, topic: str, group: str
) -> None:
    member = join(topic, group, impatient_broker, **CONSUMER, **{"client.id": "späti"})
    eventually(lambda: all_shared_out([member]))
    found = described(admin, group)
    assert (found.state.name, found.partition_assignor, found.type) == (
        "STABLE",
        "uniform",
        ConsumerGroupType.CONSUMER,
    )
    [one] = found.members
    assert one.client_id == "späti"
    assert {place.partition for place in one.assignment.topic_partitions} == set(range(PARTITIONS))
    assert {place.partition for place in one.target_assignment.topic_partitions} == set(range(PARTITIONS))
    for kind, is_listed in ((ConsumerGroupType.CONSUMER, True), (ConsumerGroupType.CLASSIC, False)):
        listed = admin.list_consumer_groups(types={kind}).result(TIMEOUT_S)
        assert (group in {each.group_id for each in listed.valid}) is is_listed
    refused = admin.delete_consumer_groups([group])[group].exception(TIMEOUT_S)
    assert refused.args[0].name() == "NON_EMPTY_GROUP"
    member.stop()
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 2, 33)])
    admin.alter_consumer_group_offsets([asked])[group].result(TIMEOUT_S)
    assert described(admin, group).state.name == "EMPTY"
    offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(TIMEOUT_S)
    assert (2, 33) in {(each.partition, each.offset) for each in offsets.topic_partitions}
    admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)
    assert described(admin, group).state.name == "DEAD"


@pytest.mark.parametrize("protocols", [("classic", "consumer"), ("consumer", "classic")])
def test_a_group_changes_its_protocol_between_members(
    impatient_broker: ServerProcess, topic: str, group: str, protocols: tuple[str, str]
) -> None:
    send(impatient_broker, messages(topic, 30))
    seen: list[bytes] = []
    for protocol in protocols:
        with consuming(impatient_broker, group, **{"group.protocol": protocol}) as consumer:
            consumer.subscribe([topic])
            for message in read(consumer, 15):
                seen.append(message.value())
                consumer.commit(message, asynchronous=False)
    assert sorted(seen) == sorted(b"%d" % n for n in range(30))


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_changes_its_protocol_with_its_members(
    impatient_broker: ServerProcess, admin: Any, join: Join, topic: str, group: str, strategy: str
) -> None:
    """Its members are replaced one by one, there and back again."""
    classic = {"partition.assignment.strategy": strategy}
    old = [join(topic, group, impatient_broker, **classic) for _ in range(2)]
    eventually(lambda: all_shared_out(old))
    new = join(topic, group, impatient_broker, **CONSUMER)
    eventually(lambda: all_shared_out([*old, new]))
    assert described(admin, group).type is ConsumerGroupType.CONSUMER
    send(impatient_broker, messages(topic, 60))
    eventually(lambda: sum(len(member.values) for member in (*old, new)) >= 60)
    old[0].stop()
    eventually(lambda: all_shared_out([old[1], new]))
    new.stop()
    eventually(lambda: all_shared_out([old[1]]))
    assert described(admin, group).type is ConsumerGroupType.CLASSIC
    send(impatient_broker, messages(topic, 60, "more "))
    eventually(lambda: sum(value.startswith(b"more") for value in old[1].values) == 60)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("end", [ServerProcess.stop, ServerProcess.kill], ids=["stop", "kill"])
def test_members_do_not_notice_a_restart_of_the_server(
    tmp_path: Path, end: Callable[[ServerProcess], object]
) -> None:
    """They keep their partitions, and go on from where they are, whether that is committed or not."""
    topic, listen = "orders", lasting_listener()
    server = start(str(tmp_path / "data"), listen, IMPATIENT_GROUPS)
    try:
        admin = AdminClient({"bootstrap.servers": server.kafka})
        admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(TIMEOUT_S)
        members = [Member(server, name, "workers", **CONSUMER) for name in (topic, topic, f"^{topic}$")]
        eventually(lambda: all_shared_out(members))
        eventually(lambda: described(admin, "workers").state.name == "STABLE")
        told = [(member.assignments[:], member.revocations[:], member.lost[:]) for member in members]
        send(server, messages(topic, 30))
        eventually(lambda: sum(len(member.values) for member in members) >= 30)
        end(server)
        server = start(server.data_dir, listen, IMPATIENT_GROUPS)
        send(server, messages(topic, 30, "more "))
        eventually(lambda: sum(len(member.values) for member in members) >= 60, 60.0)
        eventually(lambda: described(admin, "workers").state.name == "STABLE", 60.0)
        assert [(member.assignments, member.revocations, member.lost) for member in members] == told
        everything = [b"%d" % n for n in range(30)] + [b"more %d" % n for n in range(30)]
        assert sorted(value for member in members for value in member.values) == sorted(everything)
        for member in members:
            member.stop()
    finally:
        if server.process.poll() is None:
            server.stop()
    assert "Traceback" not in server.log()
