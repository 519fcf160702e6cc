"""librdkafka where ACLs say who may do what: administering them, and clients with different rights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.support.acls import ANSWER_S, allow, config, guarded_settings, rule
from tests.support.server_process import ServerProcess, lasting_listener, serving, start
from tests.support.waiting import eventually

READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
EVERYTHING = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def topic(server: ServerProcess, name: str) -> str:
    admin = AdminClient(config(server, "root"))
    for done in admin.create_topics([NewTopic(name, 1)]).values():
        done.result(ANSWER_S)
    return name


def filtered(name: str, pattern: ResourcePatternType) -> AclBindingFilter:
    return AclBindingFilter(TOPIC, name, pattern, None, None, AclOperation.ANY, AclPermissionType.ANY)


def produced(server: ServerProcess, user: str, name: str, **settings: Any) -> KafkaError | None:
    """What becomes of a message."""
    outcomes: list[KafkaError | None] = []
    producer = Producer(config(server, user, **settings))
    producer.produce(name, b"value", on_delivery=lambda error, _: outcomes.append(error))
    producer.flush(ANSWER_S)
    [outcome] = outcomes
    return outcome


def first(server: ServerProcess, user: str, name: str, group: str) -> Message:
    """The first thing that a member of a group gets: a message, or an error."""
    consumer = Consumer(config(server, user, group_id=group, auto_offset_reset="earliest"))
    consumer.subscribe([name])
    try:
        message = consumer.poll(ANSWER_S)
        assert message is not None
        return message
    finally:
        consumer.close()


def test_administering(guarded: ServerProcess, unique: Callable[[str], str]) -> None:
    name = unique("orders")
    admin = AdminClient(config(guarded, "root"))
    rules = [
        rule("ada", WRITE, TOPIC, name),
        rule("bob", READ, TOPIC, name[:-2], ResourcePatternType.PREFIXED, AclPermissionType.DENY),
        rule("bob", READ, GROUP, name),
    ]
    for done in admin.create_acls(rules).values():
        done.result(ANSWER_S)
    assert set(rules) <= set(admin.describe_acls(EVERYTHING).result(ANSWER_S))
    assert admin.describe_acls(filtered(name, ResourcePatternType.LITERAL)).result(ANSWER_S) == rules[:1]
    assert set(admin.describe_acls(filtered(name, ResourcePatternType.MATCH)).result(ANSWER_S)) == set(rules[:2])
    [deleted] = admin.delete_acls([filtered(name, ResourcePatternType.MATCH)]).values()
    assert set(deleted.result(ANSWER_S)) == set(rules[:2])
    left = admin.describe_acls(EVERYTHING).result(ANSWER_S)
    assert rules[2] in left
    assert rules[0] not in left


def refusals(admin: AdminClient, name: str) -> list[int]:
    """What an admin client is told that wants to create and to delete. It drops the code of DescribeAcls."""
    asked: list[Any] = [
        *admin.create_acls([rule("ada", WRITE, TOPIC, name)]).values(),
        *admin.delete_acls([EVERYTHING]).values(),
    ]
    codes = []
    for pending in asked:
        with pytest.raises(KafkaException) as refused:
            pending.result(ANSWER_S)
        codes.append(refused.value.args[0].code())
    assert admin.describe_acls(EVERYTHING).result(ANSWER_S) == []
    return codes


def test_administering_is_not_for_everybody(guarded: ServerProcess, unique: Callable[[str], str]) -> None:
    admin = AdminClient(config(guarded, "ada"))
    assert refusals(admin, unique("t")) == [KafkaError.CLUSTER_AUTHORIZATION_FAILED] * 2


def test_where_nobody_decides_there_are_no_acls(broker: ServerProcess, unique: Callable[[str], str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.kafka})
    assert refusals(admin, unique("t")) == [KafkaError.SECURITY_DISABLED] * 2


@pytest.mark.parametrize("idempotent", [False, True])
def test_producing(guarded: ServerProcess, unique: Callable[[str], str], idempotent: bool) -> None:
    name = topic(guarded, unique("produced"))
    allow(guarded, "ada", WRITE, TOPIC, name)
    assert produced(guarded, "ada", name, enable_idempotence=idempotent) is None
    error = produced(guarded, "bob", name, message_timeout_ms=3000)
    assert error is not None
    assert error.code() in {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._MSG_TIMED_OUT}
    allow(guarded, "bob", DESCRIBE, TOPIC, name)
    error = produced(guarded, "bob", name)
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_consuming(guarded: ServerProcess, unique: Callable[[str], str]) -> None:
    name, group = topic(guarded, unique("consumed")), unique("readers")
    assert produced(guarded, "root", name) is None
    allow(guarded, "ada", READ, TOPIC, name)
    refused = first(guarded, "ada", name, group).error()
    assert refused is not None
    assert refused.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    allow(guarded, "ada", READ, GROUP, group)
    message = first(guarded, "ada", name, group)
    assert (message.error(), message.value()) == (None, b"value")
    allow(guarded, "bob", READ, GROUP, group)
    refused = first(guarded, "bob", name, group).error()
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_transactions(guarded: ServerProcess, unique: Callable[[str], str]) -> None:
    name, transactional_id, group = topic(guarded, unique("paid")), unique("pay"), unique("payers")
    allow(guarded, "ada", WRITE, TOPIC, name)
    producer = Producer(config(guarded, "ada", transactional_id=transactional_id))
    with pytest.raises(KafkaException) as refused:
        producer.init_transactions(ANSWER_S)
    assert refused.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    allow(guarded, "ada", WRITE, TRANSACTIONAL_ID, transactional_id)
    allow(guarded, "ada", READ, GROUP, group)
    allow(guarded, "ada", READ, TOPIC, name)
    consumer = Consumer(config(guarded, "ada", group_id=group))
    producer = Producer(config(guarded, "ada", transactional_id=transactional_id))
    producer.init_transactions(ANSWER_S)
    producer.begin_transaction()
    producer.produce(name, b"value")
    offsets = [TopicPartition(name, 0, 0)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), ANSWER_S)
    producer.commit_transaction(ANSWER_S)
    assert consumer.committed([TopicPartition(name, 0)], ANSWER_S)[0].offset == 0
    consumer.close()


def test_what_is_seen(guarded: ServerProcess, unique: Callable[[str], str]) -> None:
    seen, unseen = topic(guarded, unique("seen")), topic(guarded, unique("unseen"))
    allow(guarded, "bob", READ, TOPIC, seen)
    admin = AdminClient(config(guarded, "bob"))
    assert seen in admin.list_topics(timeout=ANSWER_S).topics
    assert unseen not in admin.list_topics(timeout=ANSWER_S).topics
    by_name = admin.list_topics(unseen, timeout=ANSWER_S).topics[unseen].error
    assert by_name is not None
    assert by_name.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    [made] = admin.create_topics([NewTopic(unique("new"), 1)]).values()
    with pytest.raises(KafkaException) as refused:
        made.result(ANSWER_S)
    assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_acls_that_were_acknowledged_outlast_kill_9(tmp_path: Path, unique: Callable[[str], str]) -> None:
    name, listen, settings = unique("kept"), lasting_listener(), guarded_settings(tmp_path)
    server = start(str(tmp_path / "data"), listen, settings)
    try:
        topic(server, name)
        allow(server, "ada", WRITE, TOPIC, name)
    finally:
        server.kill()
        if server.process.stdout is not None:
            server.process.stdout.close()
    with serving(str(tmp_path / "data"), listen, settings) as again:
        assert produced(again, "ada", name) is None

        def refused() -> bool:
            # On a busy machine the time of a message may end before its client is even let in.
            assert produced(again, "bob", name, message_timeout_ms=3000) is not None
            return "refused principal=User:bob" in again.log()

        eventually(refused)
