"""Brokers with ACLs: a refusal names the right that is missing, and with these rights Spark reads and writes."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from millstream.spark.access import check_access
from millstream.spark.client import Client
from millstream.spark.errors import AccessDenied
from millstream.spark.servers import Servers
from millstream.wire.kafka.error_codes import ErrorCode
from tests.spark.conftest import Topics
from tests.support.acls import USERS, allow, config, guarded_server
from tests.support.server_process import ServerProcess

KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional id": ResourceType.TRANSACTIONAL_ID,
}
WANTED = re.compile(r"AccessDenied: the broker does not let this user ([A-Z]+).* the ([a-z ]+) '([^']+)'")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A broker with the users root and ada."""
    with guarded_server(tmp_path_factory.mktemp("access")) as server:
        yield server


@pytest.fixture(scope="module")
def inside(guarded: ServerProcess) -> Topics:
    """Makes and fills topics of it."""
    return Topics(guarded.kafka, config(guarded, "root"))


@pytest.fixture
def options(guarded: ServerProcess) -> dict[str, str]:
    """Those of a user who may do nothing yet."""
    return {
        "kafka.bootstrap.servers": guarded.kafka,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "ada",
        "kafka.sasl.password": USERS["ada"],
    }


def rights_wanted(guarded: ServerProcess, run: Callable[[], None]) -> list[tuple[str, str, str]]:
    """Run something again and again, each time with the right more that the error before has named."""
    from pyspark.errors import PySparkException

    wanted: list[tuple[str, str, str]] = []
    while True:
        try:
            run()
        except PySparkException as error:
            refusal = str(error)
        else:
            return wanted
        found = WANTED.search(refusal)
        assert found is not None, refusal
        operation, kind, name = found.groups()
        name = re.sub(r"-\d+-\d+$", "", name)
        assert (operation, kind, name) not in wanted
        wanted.append((operation, kind, name))
        pattern = ResourcePatternType.PREFIXED if kind == "transactional id" else ResourcePatternType.LITERAL
        allow(guarded, "ada", AclOperation[operation], KINDS[kind], name, pattern)


def test_reading(spark: Any, guarded: ServerProcess, inside: Topics, options: dict[str, str]) -> None:
    topic = inside.create("read")
    inside.write_numbers(topic, range(50))
    rows: list[Any] = []

    def read() -> None:
        rows[:] = spark.read.format("millstream").options(**options, subscribe=topic).load().collect()

    assert rights_wanted(guarded, read) == [("READ", "topic", topic)]
    assert len(rows) == 50


def test_writing(spark: Any, guarded: ServerProcess, inside: Topics, options: dict[str, str]) -> None:
    topic = inside.create("written")
    rows = spark.range(20).selectExpr("cast(id as string) as value")

    def write() -> None:
        writer = rows.write.format("millstream").options(**options, topic=topic, applicationId="access", batchId=0)
        writer.mode("append").save()

    assert set(rights_wanted(guarded, write)) == {
        ("WRITE", "topic", topic),
        ("READ", "topic", topic),
        ("WRITE", "transactional id", "millstream-sink-access"),
        ("READ", "group", "millstream-sink-access"),
    }
    assert inside.earliest(topic) == 0
    there = spark.read.format("millstream").options(**options, subscribe=topic).load()
    assert there.count() == 20


def test_groups(guarded: ServerProcess, inside: Topics, options: dict[str, str]) -> None:
    topic = inside.create("position")
    allow(guarded, "ada", AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
    with Client(Servers.of(options)) as client:
        described = client.topics([topic])
        with pytest.raises(AccessDenied, match=f"READ the group 'g-{topic}'"):
            client.committed(f"g-{topic}", described)
        allow(guarded, "ada", AclOperation.READ, ResourceType.GROUP, f"g-{topic}")
        assert client.committed(f"g-{topic}", described) == {topic: {0: -1}}
        with pytest.raises(AccessDenied, match=f"READ the topic '{topic}'"):
            client.commit(f"g-{topic}", {topic: {0: 0}})


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the topic 't': TOPIC_"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "the group 'g': GROUP_"),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "the transactional id 'i': TRANSACTIONAL_ID_"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the cluster: CLUSTER_"),
    ],
)
def test_what_is_said(code: int, shown: str) -> None:
    with pytest.raises(AccessDenied, match=f"does not let this user READ {shown}AUTHORIZATION_FAILED"):
        check_access(code, "READ", topic="t", group="g", transactional_id="i")
    check_access(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "READ", topic="t")
    check_access(-12345, "READ")
