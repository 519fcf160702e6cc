"""The Python packages of Iggy, from the release of 2025 to today's, each against the same server."""

from collections.abc import Callable

import confluent_kafka
import pulsar
import pytest

from tests.conformance.iggy_apache.conftest import IN_DEVELOPMENT, PACKAGES, Script
from tests.support.server_process import ServerProcess

FIRST_PARTITION = {"iggy-py 0.4.0": "1", "apache-iggy 0.5.0": "1"}
WITH_GROUPS = [name for name in PACKAGES if name.startswith("apache")]
"""The releases whose Python interface has consumer groups."""
every_release = pytest.mark.parametrize("package", PACKAGES)


@pytest.mark.parametrize("package", ["iggy-py 0.4.0", "apache-iggy 0.9.0"])
def test_kafka_clients_share_a_topic(
    script: Script, iggy_server: ServerProcess, unique: Callable[[str], str], package: str
) -> None:
    stream, first = unique("kafka"), first_partition(package)
    script("exchange", package, "send", stream, first, "iggy")
    producer = confluent_kafka.Producer({"bootstrap.servers": iggy_server.addresses["any"]})
    for number in range(3):
        producer.produce(f"{stream}.t1", f"kafka {number}", headers={"k": "v"})
    assert producer.flush(10) == 0
    script("exchange", package, "send", stream, first, "iggy,kafka,iggy again")
    script("exchange", package, "poll", stream, first, "iggy,kafka,iggy again")
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": iggy_server.addresses["any"],
            "group.id": stream,
            "auto.offset.reset": "earliest",
            "check.crcs": True,
        }
    )
    consumer.subscribe([f"{stream}.t1"])
    values: list[str] = []
    while len(values) < 9:
        message = consumer.poll(10)
        assert message is not None
        assert message.error() is None, message.error()
        assert message.offset() == len(values)
        values.append(message.value().decode())
    consumer.close()
    assert values == [f"{writer} {number}" for writer in ("iggy", "kafka", "iggy again") for number in range(3)]


def first_partition(package: str) -> str:
    """The number that a release has for the first partition."""
    return FIRST_PARTITION.get(package, "0")


@every_release
def test_what_every_release_can_do(script: Script, unique: Callable[[str], str], package: str) -> None:
    script("common", package, unique("common"), first_partition(package))


def test_every_release_reads_what_every_release_wrote(script: Script, unique: Callable[[str], str]) -> None:
    stream = unique("exchange")
    writers: list[str] = []
    for package in PACKAGES:
        writers.append(package)
        script("exchange", package, "send", stream, first_partition(package), ",".join(writers))
    ids = {
        script("exchange", package, "poll", stream, first_partition(package), ",".join(writers))
        for package in PACKAGES
    }
    assert len(ids) == 1


@pytest.mark.parametrize("package", WITH_GROUPS)
def test_a_group_goes_on_where_it_was(script: Script, unique: Callable[[str], str], package: str) -> None:
    stream = unique("groups")

    def consume(group: str, count: int) -> set[str]:
        return set(script("groups", package, "consume", stream, group, str(count)).split())

    script("groups", package, "send", stream, first_partition(package), "0")
    assert consume("g1", 20) == expected(range(5))
    script("groups", package, "send", stream, first_partition(package), "5")
    assert consume("g1", 20) == expected(range(5, 10))
    assert consume("g2", 40) == expected(range(10))


def test_a_group_goes_on_in_another_release(script: Script, unique: Callable[[str], str]) -> None:
    stream = unique("releases")
    for number, package in enumerate(WITH_GROUPS):
        start = 5 * number
        script("groups", package, "send", stream, first_partition(package), str(start))
        taken = set(script("groups", package, "consume", stream, "g1", "20").split())
        assert taken == expected(range(start, start + 5))


def expected(numbers: range) -> set[str]:
    """The names of some messages of every partition."""
    return {f"{partition}:{number}" for partition in range(4) for number in numbers}


@pytest.mark.parametrize("package", ["apache-iggy 0.6.0", "apache-iggy 0.8.0", "apache-iggy 0.9.0"])
def test_two_members_share_a_topic(script: Script, unique: Callable[[str], str], package: str) -> None:
    script("sharing", package, unique("sharing"))


def test_what_the_current_release_can_do(script: Script, unique: Callable[[str], str]) -> None:
    script("administration", "apache-iggy 0.9.0", unique("administration"))


def test_what_is_understood_of_the_protocol_in_development(script: Script, unique: Callable[[str], str]) -> None:
    script("development", IN_DEVELOPMENT, unique("development"))


def test_kafka_clients_are_told_that_partitions_have_gone(
    script: Script, iggy_server: ServerProcess, unique: Callable[[str], str]
) -> None:
    stream = unique("gone")
    servers = {"bootstrap.servers": iggy_server.addresses["any"]}
    producer = confluent_kafka.Producer({**servers, "message.timeout.ms": 3000})
    script("resize", "apache-iggy 0.9.0", stream, "make", "3")
    reader = confluent_kafka.Consumer({**servers, "group.id": stream, "auto.offset.reset": "earliest"})
    topic = f"{stream}.t1"
    reader.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in range(3)])
    for index in range(3):
        producer.produce(topic, f"old {index}", partition=index)
    assert producer.flush(10) == 0
    old = {message.value() for message in (reader.poll(10) for _ in range(3)) if message is not None}
    assert old == {b"old 0", b"old 1", b"old 2"}
    script("resize", "apache-iggy 0.9.0", stream, "delete", "2")
    assert sorted(reader.list_topics(topic, 10).topics[topic].partitions) == [0]
    failed: list[confluent_kafka.KafkaError] = []
    producer.produce(topic, "late", partition=2, on_delivery=lambda error, _: failed.append(error))
    producer.flush(10)
    assert failed[0] is not None
    producer.produce(topic, "later", partition=0)
    assert producer.flush(10) == 0
    values = set()
    while b"later" not in values:
        message = reader.poll(10)
        assert message is not None
        values.add(message.value() if message.error() is None else b"")
    script("resize", "apache-iggy 0.9.0", stream, "create", "2")
    assert sorted(reader.list_topics(topic, 10).topics[topic].partitions) == [0, 1, 2]
    assert reader.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 2), 10) == (0, 0)
    reader.close()


def test_pulsar_clients_are_told_that_partitions_have_gone(
    script: Script, iggy_server: ServerProcess, unique: Callable[[str], str]
) -> None:
    stream = unique("away")
    script("resize", "apache-iggy 0.9.0", stream, "make", "2")
    client = pulsar.Client(f"pulsar://{iggy_server.addresses['any']}", operation_timeout_seconds=5)
    topic = f"persistent://public/{stream}/t1"
    producers = [client.create_producer(f"{topic}-partition-{index}", send_timeout_millis=3000) for index in (0, 1)]
    consumer = client.subscribe(f"{topic}-partition-1", "s", initial_position=pulsar.InitialPosition.Earliest)
    for producer in producers:
        producer.send(b"old")
    consumer.acknowledge(consumer.receive(5000))
    script("resize", "apache-iggy 0.9.0", stream, "delete", "1")
    with pytest.raises(pulsar.PulsarException):
        producers[1].send(b"late")
    producers[0].send(b"later")
    script("resize", "apache-iggy 0.9.0", stream, "create", "1")
    fresh = client.subscribe(f"{topic}-partition-1", "fresh", initial_position=pulsar.InitialPosition.Earliest)
    again = client.create_producer(f"{topic}-partition-1")
    number = again.send(b"new")
    assert number.entry_id() == 0
    assert fresh.receive(5000).data() == b"new"
    client.close()
