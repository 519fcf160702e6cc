"""aiokafka's admin client: topics, settings, records and the cluster."""

from collections.abc import Callable
from typing import Any

from aiokafka.admin import NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from millstream.broker.configs import TOPIC_CONFIGS
from millstream.wire.kafka.error_codes import ErrorCode
from tests.conformance.aiokafka.conftest import Run, administering, consuming, place, read, send_values
from tests.support.server_process import ServerProcess


def test_topics_come_and_go(broker: ServerProcess, run: Run, unique: Callable[[str], str]) -> None:
    name = unique("aio.admin_topic")

    async def change() -> None:
        async with administering(broker) as admin:
            await admin.create_topics([NewTopic(name, 3, 1)])
            assert name in await admin.list_topics()
            await admin.create_partitions({name: NewPartitions(5)})
            [described] = await admin.describe_topics([name])
            assert len(described["partitions"]) == 5
            await admin.delete_topics([name])
            assert name not in await admin.list_topics()

    run(change())


def test_refused_topics(
    broker: ServerProcess, new_topic: Callable[..., str], run: Run, unique: Callable[[str], str]
) -> None:
    present, name = new_topic(), unique("aio-admin")
    cases = {
        ErrorCode.TOPIC_ALREADY_EXISTS: NewTopic(present, 1, 1),
        ErrorCode.INVALID_TOPIC_EXCEPTION: NewTopic("no/slash", 1, 1),
        ErrorCode.INVALID_PARTITIONS: NewTopic(name, 0, 1),
        ErrorCode.INVALID_REPLICATION_FACTOR: NewTopic(name, 1, 3),
        ErrorCode.INVALID_CONFIG: NewTopic(name, 1, 1, topic_configs={"no.such.setting": "1"}),
    }

    async def ask() -> None:
        async with administering(broker) as admin:
            for code, topic in cases.items():
                for validate_only in (True, False):
                    answer = await admin.create_topics([topic], validate_only=validate_only)
                    [refused] = answer.topic_errors
                    assert refused[1] == code, refused
            answer = await admin.delete_topics(["no-such-topic"])
            assert answer.topic_error_codes == [("no-such-topic", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
            assert name not in await admin.list_topics()

    run(ask())


def test_settings(broker: ServerProcess, new_topic: Callable[..., str], run: Run) -> None:
    topic = new_topic(retention_ms="12345")

    async def described(admin: Any) -> dict[str, str]:
        [answer] = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        [resource] = answer.resources
        assert resource[0] == 0
        return {entry[0]: entry[1] for entry in resource[4]}

    async def change() -> None:
        async with administering(broker) as admin:
            defaults = {name: key.default for name, key in TOPIC_CONFIGS.items()}
            assert await described(admin) == {**defaults, "retention.ms": "12345"}
            changed = ConfigResource(ConfigResourceType.TOPIC, topic, {"segment.bytes": "1000000"})
            [answer] = await admin.alter_configs([changed])
            assert answer.resources[0][0] == 0
            # AlterConfigs replaces all settings.
            assert await described(admin) == {**defaults, "segment.bytes": "1000000"}
            for key, value in (("retention.ms", "soon"), ("no.such.setting", "1")):
                bad = ConfigResource(ConfigResourceType.TOPIC, topic, {key: value})
                [answer] = await admin.alter_configs([bad])
                code, text = answer.resources[0][:2]
                assert code == ErrorCode.INVALID_CONFIG
                assert key in text
            assert await described(admin) == {**defaults, "segment.bytes": "1000000"}

    run(change())


def test_records_are_deleted(broker: ServerProcess, new_topic: Callable[..., str], run: Run) -> None:
    topic = new_topic()

    async def delete() -> None:
        await send_values(broker, topic, [b"%d" % n for n in range(20)])
        async with administering(broker) as admin:
            deleted = await admin.delete_records({place(topic): RecordsToDelete(before_offset=7)})
            assert deleted == {place(topic): 7}
        async with consuming(broker, topic) as consumer:
            assert [record.offset for record in await read(consumer, 13)] == list(range(7, 20))

    run(delete())


def test_the_cluster(broker: ServerProcess, run: Run) -> None:
    async def look() -> None:
        async with administering(broker) as admin:
            described = await admin.describe_cluster()
            [node] = described["brokers"]
            assert f"{node['host']}:{node['port']}" == broker.kafka
            assert described["controller_id"] == node["node_id"]

    run(look())
