"""kafka-python and aiokafka where ACLs say who may do what."""

import asyncio
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import TopicAuthorizationFailedError as AioTopicAuthorizationFailedError
from confluent_kafka.admin import AclOperation, ResourceType
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    NewTopic,
    ResourcePattern,
    ResourcePatternFilter,
)
from kafka.admin import ResourceType as PythonResourceType
from kafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
)

from tests.support.acls import ANSWER_S, aio_config, allow
from tests.support.server_process import ServerProcess

READ, WRITE = AclOperation.READ, AclOperation.WRITE
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP


@pytest.fixture
def name(guarded: ServerProcess, unique: Callable[[str], str]) -> str:
    """A topic, and the name of a group."""
    topic = unique("python")
    admin = KafkaAdminClient(**aio_config(guarded, "root"))
    admin.create_topics([NewTopic(topic, 1, 1)])
    admin.close()
    return topic


def test_kafka_python_administers(guarded: ServerProcess, name: str) -> None:
    admin = KafkaAdminClient(**aio_config(guarded, "root"))
    pattern = ResourcePattern(PythonResourceType.TOPIC, name, ACLResourcePatternType.PREFIXED)
    acl = ACL("User:ada", "*", ACLOperation.WRITE, ACLPermissionType.ALLOW, pattern)
    wanted = ACLFilter(
        None,
        None,
        ACLOperation.ANY,
        ACLPermissionType.ANY,
        ResourcePatternFilter(PythonResourceType.TOPIC, name, ACLResourcePatternType.MATCH),
    )
    created = admin.create_acls([acl])
    assert created["failed"] == []
    found, error = admin.describe_acls(wanted)
    assert found == [acl]
    assert error.errno == 0
    [(_, deleted, failure)] = admin.delete_acls([wanted])
    assert deleted == [acl]
    assert failure.errno == 0
    assert admin.describe_acls(wanted)[0] == []
    admin.close()


def test_kafka_python_is_refused(guarded: ServerProcess, name: str) -> None:
    options = aio_config(guarded, "ada")
    admin = KafkaAdminClient(**options)
    everything = ACLFilter(
        None,
        None,
        ACLOperation.ANY,
        ACLPermissionType.ANY,
        ResourcePatternFilter(PythonResourceType.ANY, None, ACLResourcePatternType.ANY),
    )
    with pytest.raises(ClusterAuthorizationFailedError):
        admin.describe_acls(everything)
    admin.close()
    producer = KafkaProducer(max_block_ms=ANSWER_S * 1000, enable_idempotence=False, **options)
    with pytest.raises(TopicAuthorizationFailedError):
        producer.send(name, b"value").get(timeout=ANSWER_S)
    producer.close()
    allow(guarded, "ada", WRITE, TOPIC, name)
    producer = KafkaProducer(max_block_ms=ANSWER_S * 1000, **options)
    producer.send(name, b"value").get(timeout=ANSWER_S)
    producer.close()
    allow(guarded, "ada", READ, TOPIC, name)
    consumer = KafkaConsumer(name, group_id=name, auto_offset_reset="earliest", **options)
    with pytest.raises(GroupAuthorizationFailedError):
        consumer.poll(ANSWER_S * 1000)
    consumer.close(autocommit=False)
    allow(guarded, "ada", READ, GROUP, name)
    reader = KafkaConsumer(
        name, group_id=name, auto_offset_reset="earliest", consumer_timeout_ms=ANSWER_S * 1000, **options
    )
    assert next(iter(reader)).value == b"value"
    reader.close()


def test_aiokafka(guarded: ServerProcess, name: str) -> None:
    async def refused() -> None:
        async with AIOKafkaProducer(**aio_config(guarded, "bob")) as producer:
            with pytest.raises(AioTopicAuthorizationFailedError):
                await asyncio.wait_for(producer.send_and_wait(name, b"value"), ANSWER_S)

    async def allowed() -> bytes:
        async with AIOKafkaProducer(**aio_config(guarded, "bob")) as producer:
            await asyncio.wait_for(producer.send_and_wait(name, b"value"), ANSWER_S)
        async with AIOKafkaConsumer(name, auto_offset_reset="earliest", **aio_config(guarded, "bob")) as consumer:
            value: bytes = (await asyncio.wait_for(consumer.getone(), ANSWER_S)).value
            return value

    asyncio.run(refused())
    for operation in (READ, WRITE):
        allow(guarded, "bob", operation, TOPIC, name)
    assert asyncio.run(allowed()) == b"value"
