"""kafka-python's admin client: topics, settings, records, log directories and the cluster."""

from collections.abc import Callable
from typing import Any

import pytest
from kafka import errors
from kafka.admin import ConfigResource

from millstream.broker.configs import TOPIC_CONFIGS
from tests.conformance.kafka_python.conftest import consuming, place, read, send_values
from tests.support.server_process import ServerProcess


def test_topics_come_and_go(admin: Any, unique: Callable[[str], str]) -> None:
    name = unique("kp.admin_topic")
    admin.create_topics({name: {"num_partitions": 3, "replication_factor": 1}})
    assert name in admin.list_topics()
    [described] = admin.describe_topics([name])
    assert len(described["partitions"]) == 3
    admin.create_partitions({name: 5})
    [described] = admin.describe_topics([name])
    assert len(described["partitions"]) == 5
    admin.delete_topics([name])
    assert name not in admin.list_topics()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"num_partitions": 0, "replication_factor": 1}, errors.InvalidPartitionsError),
        ({"num_partitions": -5, "replication_factor": 1}, errors.InvalidPartitionsError),
        ({"num_partitions": 1_000_000, "replication_factor": 1}, errors.InvalidPartitionsError),
        ({"num_partitions": 1, "replication_factor": 3}, errors.InvalidReplicationFactorError),
        ({"num_partitions": 1, "replication_factor": 0}, errors.InvalidReplicationFactorError),
        ({"assignments": {0: [0], 1: [7]}}, errors.InvalidReplicationAssignmentError),
        ({"configs": {"no.such.setting": "1"}}, errors.InvalidConfigurationError),
        ({"configs": {"cleanup.policy": "burn"}}, errors.InvalidConfigurationError),
    ],
    ids=str,
)
def test_refused_topics(admin: Any, unique: Callable[[str], str], options: dict[str, Any], error: Any) -> None:
    name = unique("kp-admin")
    for validate_only in (True, False):
        with pytest.raises(error):
            admin.create_topics({name: options}, validate_only=validate_only)
    assert name not in admin.list_topics()


def test_refused_names(admin: Any, new_topic: Callable[..., str]) -> None:
    with pytest.raises(errors.TopicAlreadyExistsError):
        admin.create_topics({new_topic(): {}})
    for name in ("", ".", "..", "x" * 250, "späti", "a b", "a/b"):
        with pytest.raises(errors.InvalidTopicError):
            admin.create_topics({name: {}})
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.delete_topics(["no-such-topic"])


def test_refused_partitions(admin: Any, new_topic: Callable[..., str]) -> None:
    topic = new_topic(3)
    for count in (0, 2, 3, 20_000):
        with pytest.raises(errors.InvalidPartitionsError):
            admin.create_partitions({topic: count})
    # Every topic asked for gets a result.
    answer = admin.create_partitions({topic: 4, "no-such-topic": 2}, raise_errors=False)
    assert len([line for line in str(answer).split("error_code") if line]) >= 2
    [described] = admin.describe_topics([topic])
    assert len(described["partitions"]) == 4


def test_settings(admin: Any, new_topic: Callable[..., str]) -> None:
    topic = new_topic(retention_ms="12345")

    def described(which: str) -> dict[str, str]:
        found = admin.describe_configs([ConfigResource("topic", topic)], config_filter=which)
        return {name: entry["value"] for name, entry in found["topic"][topic].items()}

    assert described("modified") == {"retention.ms": "12345"}
    defaults = {name: key.default for name, key in TOPIC_CONFIGS.items()}
    assert described("all") == {**defaults, "retention.ms": "12345"}
    for incremental in (True, False):
        change = {"segment.bytes": "1000000", "retention.ms": "12345"}
        admin.alter_configs([ConfigResource("topic", topic, change)], incremental=incremental)
        assert described("modified") == {"retention.ms": "12345", "segment.bytes": "1000000"}
        admin.reset_configs([ConfigResource("topic", topic, ["segment.bytes"])], incremental=incremental)
        assert described("modified") == {"retention.ms": "12345"}
        for key, value in (("retention.ms", "soon"), ("no.such.setting", "1")):
            bad = ConfigResource("topic", topic, {key: value})
            answer = admin.alter_configs([bad], incremental=incremental, raise_on_unknown=False)
            assert "InvalidConfig" in str(answer)
            assert key in str(answer)
        assert described("modified") == {"retention.ms": "12345"}


def test_records_are_deleted(admin: Any, broker: ServerProcess, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    send_values(broker, topic, [b"%d" % n for n in range(20)])
    [deleted] = admin.delete_records({place(topic): 7}).values()
    assert deleted["low_watermark"] == 7
    with consuming(broker, topic) as consumer:
        assert [record.offset for record in read(consumer, 13)] == list(range(7, 20))
    [everything] = admin.delete_records({place(topic): -1}).values()
    assert everything["low_watermark"] == 20


def test_the_cluster_and_its_log_directory(admin: Any, broker: ServerProcess, new_topic: Callable[..., str]) -> None:
    described = admin.describe_cluster()
    [node] = described["brokers"]
    assert f"{node['host']}:{node['port']}" == broker.kafka
    assert described["controller_id"] == node["broker_id"]
    assert described["cluster_id"]
    topic = new_topic()
    send_values(broker, topic, [bytes(10_000)])
    [answer] = admin.describe_log_dirs()
    [directory] = answer["log_dirs"]
    assert directory["log_dir"] == broker.data_dir
    assert directory["total_bytes"] >= directory["usable_bytes"] > 0
    [found] = [one for one in directory["topics"] if one["name"] == topic]
    [partition] = found["partitions"]
    assert 10_000 < partition["partition_size"] < 11_000
    assert not partition["is_future_key"]
