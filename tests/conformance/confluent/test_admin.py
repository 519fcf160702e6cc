"""librdkafka's admin client: topics, settings, records and the cluster."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from millstream.broker.configs import BROKER_CONFIGS, TOPIC_CONFIGS
from tests.conformance.confluent.conftest import TIMEOUT_S, consuming, read, send
from tests.support.sample_records import BASE_MS
from tests.support.server_process import ServerProcess


def error_of(future: Any) -> tuple[str, str]:
    """The name and text of the error a future ends with."""
    error = future.exception(TIMEOUT_S)
    assert isinstance(error, KafkaException), error
    return error.args[0].name(), error.args[0].str()


def test_topics_come_and_go(admin: Any, unique: Callable[[str], str]) -> None:
    name = unique("ck.admin_topic")
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(TIMEOUT_S)
    listed = admin.list_topics(timeout=TIMEOUT_S).topics
    assert set(listed[name].partitions) == {0, 1, 2}
    described = admin.describe_topics(TopicCollection([name]))[name].result(TIMEOUT_S)
    assert (described.name, described.is_internal, len(described.partitions)) == (name, False, 3)
    assert [one.leader.id for one in described.partitions] == [0, 0, 0]
    admin.create_partitions([NewPartitions(name, 5)])[name].result(TIMEOUT_S)
    assert set(admin.list_topics(name, timeout=TIMEOUT_S).topics[name].partitions) == set(range(5))
    admin.delete_topics([name])[name].result(TIMEOUT_S)
    assert name not in admin.list_topics(timeout=TIMEOUT_S).topics
    assert error_of(admin.delete_topics([name])[name])[0] == "UNKNOWN_TOPIC_OR_PART"
    # The name is free again, and the new topic is another one.
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(TIMEOUT_S)
    again = admin.describe_topics(TopicCollection([name]))[name].result(TIMEOUT_S)
    assert again.topic_id != described.topic_id


def test_defaults(admin: Any, unique: Callable[[str], str]) -> None:
    name = unique("ck-admin")
    admin.create_topics([NewTopic(name)])[name].result(TIMEOUT_S)
    [partition] = admin.list_topics(name, timeout=TIMEOUT_S).topics[name].partitions.values()
    assert (partition.leader, partition.replicas, partition.isrs) == (0, [0], [0])


def test_refused_topics(admin: Any, new_topic: Callable[..., str], unique: Callable[[str], str]) -> None:
    present = new_topic()
    name = unique("ck-admin")
    cases = {
        "TOPIC_ALREADY_EXISTS": NewTopic(present, 1, 1),
        "TOPIC_EXCEPTION": NewTopic("no/slash", 1, 1),
        "INVALID_PARTITIONS": NewTopic(name, 20_000, 1),
        "INVALID_REPLICATION_FACTOR": NewTopic(name, 1, 3),
        "INVALID_REPLICA_ASSIGNMENT": NewTopic(name, 2, replica_assignment=[[0], [1]]),
        "INVALID_CONFIG": NewTopic(name, 1, 1, config={"retention.ms": "soon"}),
    }
    for code, topic in cases.items():
        for validate_only in (True, False):
            [future] = admin.create_topics([topic], validate_only=validate_only).values()
            assert error_of(future)[0] == code
    for bad in ("", ".", "..", "x" * 250, "späti", "a b"):
        if bad:
            [future] = admin.create_topics([NewTopic(bad, 1, 1)]).values()
            assert error_of(future)[0] == "TOPIC_EXCEPTION", bad
    unknown = NewTopic(name, 1, 1, config={"retention.msec": "1"})
    code, text = error_of(admin.create_topics([unknown])[name])
    assert code == "INVALID_CONFIG"
    assert "retention.msec" in text
    admin.create_topics([NewTopic(name, 1, 1)], validate_only=True)[name].result(TIMEOUT_S)
    assert name not in admin.list_topics(timeout=TIMEOUT_S).topics


def test_refused_partitions(admin: Any, new_topic: Callable[..., str]) -> None:
    topic = new_topic(3)
    assert error_of(admin.create_partitions([NewPartitions(topic, 3)])[topic])[0] == "INVALID_PARTITIONS"
    assert error_of(admin.create_partitions([NewPartitions(topic, 2)])[topic])[0] == "INVALID_PARTITIONS"
    missing = admin.create_partitions([NewPartitions("no-such-topic", 2)])["no-such-topic"]
    assert error_of(missing)[0] == "UNKNOWN_TOPIC_OR_PART"
    assert len(admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions) == 3


def describe(admin: Any, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    [future] = admin.describe_configs([ConfigResource(kind, name)]).values()
    found: dict[str, ConfigEntry] = future.result(TIMEOUT_S)
    return found


def test_every_setting_is_described(admin: Any, new_topic: Callable[..., str]) -> None:
    topic = new_topic(retention_ms="12345")
    found = describe(admin, ResourceType.TOPIC, topic)
    assert set(found) == set(TOPIC_CONFIGS)
    for name, entry in found.items():
        if name != "retention.ms":
            assert (entry.value, entry.is_default) == (TOPIC_CONFIGS[name].default, True), name
    changed = found["retention.ms"]
    assert (changed.value, changed.is_default) == ("12345", False)
    assert next((one.name, one.value) for one in changed.synonyms.values()) == ("retention.ms", "12345")
    server = describe(admin, ResourceType.BROKER, "0")
    assert set(server) == set(BROKER_CONFIGS)
    assert all(entry.is_read_only for entry in server.values())


def test_settings_are_changed(admin: Any, new_topic: Callable[..., str]) -> None:
    topic = new_topic(retention_ms="12345")

    def alter(*changes: tuple[str, str | None, AlterConfigOpType]) -> Any:
        entries = [ConfigEntry(name, value, incremental_operation=how) for name, value, how in changes]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        return admin.incremental_alter_configs([resource])[resource]

    change = AlterConfigOpType.SET
    alter(("max.message.bytes", "2000", change), ("segment.bytes", "1000000", change)).result(TIMEOUT_S)
    alter(("segment.bytes", None, AlterConfigOpType.DELETE)).result(TIMEOUT_S)
    alter(("cleanup.policy", "compact", AlterConfigOpType.APPEND)).result(TIMEOUT_S)
    found = describe(admin, ResourceType.TOPIC, topic)
    values = {name: entry.value for name, entry in found.items() if not entry.is_default}
    assert values == {"retention.ms": "12345", "max.message.bytes": "2000", "cleanup.policy": "delete,compact"}
    alter(("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT)).result(TIMEOUT_S)
    assert describe(admin, ResourceType.TOPIC, topic)["cleanup.policy"].value == "compact"

    bad = {"no.such.setting": "1", "retention.ms": "soon", "segment.bytes": "-5", "message.timestamp.type": "x"}
    for name, value in bad.items():
        code, text = error_of(alter((name, value, change), ("max.message.bytes", "77", change)))
        assert code == "INVALID_CONFIG"
        assert name in text
    assert describe(admin, ResourceType.TOPIC, topic)["max.message.bytes"].value == "2000", "all or nothing"


def test_settings_of_what_does_not_exist(admin: Any) -> None:
    resource = ConfigResource(ResourceType.TOPIC, "no-such-topic")
    assert error_of(admin.describe_configs([resource])[resource])[0] == "UNKNOWN_TOPIC_OR_PART"


def test_the_cluster(admin: Any, broker: ServerProcess) -> None:
    described = admin.describe_cluster().result(TIMEOUT_S)
    assert described.cluster_id == admin.list_topics(timeout=TIMEOUT_S).cluster_id
    [node] = described.nodes
    assert (f"{node.host}:{node.port}", described.controller.id) == (broker.kafka, node.id)


def test_records_are_deleted(admin: Any, broker: ServerProcess, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    send(broker, [{"topic": topic, "value": b"%d" % n} for n in range(20)])
    place = TopicPartition(topic, 0, 7)
    [deleted] = admin.delete_records([place]).values()
    assert deleted.result(TIMEOUT_S).low_watermark == 7
    with consuming(broker) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert [message.offset() for message in read(consumer, 13)] == list(range(7, 20))
    [beyond] = admin.delete_records([TopicPartition(topic, 0, 21)]).values()
    assert error_of(beyond)[0] == "OFFSET_OUT_OF_RANGE"


def test_offsets_are_listed(admin: Any, broker: ServerProcess, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    send(broker, [{"topic": topic, "value": b"x", "timestamp": BASE_MS + 10 * n} for n in range(5)])
    specs = {
        OffsetSpec.earliest(): 0,
        OffsetSpec.latest(): 5,
        OffsetSpec.max_timestamp(): 4,
        OffsetSpec.for_timestamp(BASE_MS + 11): 2,
    }
    for spec, offset in specs.items():
        [found] = admin.list_offsets({TopicPartition(topic, 0): spec}).values()
        assert found.result(TIMEOUT_S).offset == offset
