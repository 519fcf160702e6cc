"""kafkajs: records, groups, positions, transactions and the admin client."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.broker.configs import TOPIC_CONFIGS
from tests.conformance.kafkajs.conftest import SCENARIO_TIMEOUT_S, Scenarios
from tests.support.sample_records import samples
from tests.support.server_process import ServerProcess, serving

Unique = Callable[[str], str]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def samples_as_json() -> list[dict[str, Any]]:
    return [
        {
            "key": encoded(one.key),
            "value": encoded(one.value),
            "headers": [(name, encoded(value)) for name, value in one.headers],
            "timestamp": one.timestamp_ms,
        }
        for one in samples()
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip(scenarios: Scenarios, broker: ServerProcess, unique: Unique, codec: str) -> None:
    names = {"topic": unique("kjs"), "group": unique("kjs-group")}
    scenarios(broker.kafka, "records", "roundTrip", **names, codec=codec, samples=samples_as_json())


@pytest.mark.parametrize("scenario", ["acks", "tooLarge"])
def test_records(scenarios: Scenarios, broker: ServerProcess, unique: Unique, scenario: str) -> None:
    scenarios(broker.kafka, "records", scenario, topic=unique("kjs"), group=unique("kjs-group"))


@pytest.mark.parametrize("scenario", ["comeAndGo", "fiveAtOnce", "commitAndResume", "positions", "fromTheEnd"])
def test_groups(scenarios: Scenarios, broker: ServerProcess, unique: Unique, scenario: str) -> None:
    scenarios(broker.kafka, "groups", scenario, topic=unique("kjs"), group=unique("kjs-group"))


@pytest.mark.parametrize("scenario", ["commitAndAbort", "offsets", "fencing"])
def test_transactions(scenarios: Scenarios, broker: ServerProcess, unique: Unique, scenario: str) -> None:
    scenarios(broker.kafka, "transactions", scenario, topic=unique("kjs"), group=unique("kjs-group"))


def test_a_member_that_is_killed_loses_its_session(
    scenarios: Scenarios, impatient_broker: ServerProcess, unique: Unique
) -> None:
    names = {"topic": unique("kjs"), "group": unique("kjs-group")}
    address = impatient_broker.kafka
    # Whoever asks for a topic first makes it, with one partition.
    joining = scenarios.start(address, "groups", "joinAndWait", **names)
    with scenarios.killed_at_the_end(joining) as dies:
        assert dies.stdout is not None
        assert dies.stdout.readline() == "joined\n"
        taking = scenarios.start(address, "groups", "takeOver", **names, partitions=1)
        with scenarios.killed_at_the_end(taking) as lives:
            dies.kill()
            _, errors = lives.communicate(timeout=SCENARIO_TIMEOUT_S)
            assert lives.returncode == 0, errors


@pytest.mark.parametrize(
    "scenario", ["topics", "refusedTopics", "settings", "offsetsAndGroups", "deletedRecords", "cluster"]
)
def test_admin(scenarios: Scenarios, broker: ServerProcess, unique: Unique, scenario: str) -> None:
    defaults = {name: key.default for name, key in TOPIC_CONFIGS.items()}
    names = {"topic": unique("kjs"), "group": unique("kjs-group")}
    scenarios(broker.kafka, "admin", scenario, **names, defaults=defaults)


def test_acls(scenarios: Scenarios, broker: ServerProcess, tmp_path: Path, unique: Unique) -> None:
    settings = [
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:ANONYMOUS",
    ]
    with serving(str(tmp_path / "data"), settings=settings) as server:
        scenarios(server.kafka, "acls", "administered", topic=unique("kjs"))
    scenarios(broker.kafka, "acls", "refused", topic=unique("kjs"))
