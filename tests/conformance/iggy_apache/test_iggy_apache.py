"""The Python packages of Iggy, from the release of 2025 to today's, each against the same server."""

from collections.abc import Callable

import confluent_kafka
import pytest

from tests.conformance.iggy_apache.conftest import PACKAGES, Script
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
