"""Consumer groups (KIP-848) as requests and answers; the rules are tested with the broker."""

import struct
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from millstream.broker.acl import Acl, Operation, PatternType, Permission, Resource, ResourceType
from millstream.broker.holders import Holder
from millstream.sessions.kafka.consumer_assignment import decode_assignment, encode_assignment
from millstream.sessions.kafka.consumer_subscription import decode_subscription, subscription_version
from millstream.sessions.kafka.embedded_protocol import ConsumerProtocol
from millstream.sessions.kafka.holders import members_of
from millstream.sessions.kafka.patterns import PATTERN_CHARACTERS_MAX
from millstream.sessions.kafka.service import KafkaService
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from millstream.wire.kafka.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
    OwnedPartitions,
)
from millstream.wire.kafka.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from millstream.wire.kafka.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from millstream.wire.kafka.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from millstream.wire.kafka.messages.join_group import JOIN_GROUP
from tests.unit.sessions.kafka.conversation import Conversation
from tests.unit.sessions.kafka.group_requests import (
    commit,
    committed,
    delete_offsets,
    fetch,
    join_request,
    leave,
    listed,
)
from tests.unit.sessions.kafka.guarded import NOBODY, ROOT, USER, Guarded

GROUP_RESOURCE = 32
DESCRIBE = Operation.DESCRIBE, Permission.ALLOW
HELD = Holder(protocol="pulsar", id="c-0", client="c", host="10.0.0.1:700", topic="orders", partitions=(1,))


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation()
    KafkaService(talk.broker)
    talk.create("orders", 2)
    return talk


def joining(member_id: str = "m", **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """A request to join."""
    said = {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": ["orders"], "topic_partitions": [], **fields}
    return ConsumerGroupHeartbeatRequest(**{"group_id": "g", "member_id": member_id, **said})


def beat(talk: Conversation, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> Any:
    return talk.ask(CONSUMER_GROUP_HEARTBEAT, request, version)


def assigned(answer: Any) -> dict[UUID, list[int]]:
    return {one.topic_id: one.partitions for one in answer.assignment.topic_partitions}


def test_the_life_of_a_member(talk: Conversation) -> None:
    answer = beat(talk, joining())
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (ErrorCode.NONE, "m", 1)
    assert answer.heartbeat_interval_ms == 5000
    assert assigned(answer) == {talk.topic().id: [0, 1]}
    owned = [OwnedPartitions(topic_id=talk.topic().id, partitions=[0, 1])]
    again = beat(
        talk, ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1, topic_partitions=owned)
    )
    assert (again.member_epoch, again.assignment) == (1, None)
    left = beat(talk, ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1))
    assert (left.error_code, left.member_id, left.member_epoch) == (ErrorCode.NONE, "m", -1)
    gone = beat(talk, ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1))
    assert gone.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert gone.error_message


def test_in_version_0_a_member_is_given_an_id(talk: Conversation) -> None:
    answer = beat(talk, joining(""), 0)
    assert len(answer.member_id) == 22
    assert beat(talk, joining(answer.member_id), 0).member_id == answer.member_id


@pytest.mark.parametrize(
    "fields",
    [
        {"member_id": ""},
        {"member_id": " "},
        {"group_id": ""},
        {"instance_id": ""},
        {"rack_id": " "},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"topic_partitions": [OwnedPartitions(topic_id=UUID(int=1), partitions=[0])]},
        {"subscribed_topic_names": None},
        {"member_epoch": -2},
        {"member_epoch": -3},
    ],
    ids=str,
)
def test_a_heartbeat_that_cannot_be(talk: Conversation, fields: dict[str, Any]) -> None:
    answer = beat(talk, joining(**{"member_id": "m", **fields}))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message
    assert talk.broker.groups.ids() == []


def test_patterns(talk: Conversation) -> None:
    for bad in ("(", "a" * (PATTERN_CHARACTERS_MAX + 1), "(?=x)"):
        answer = beat(talk, joining(subscribed_topic_regex=bad))
        assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    talk.create("order", 1)
    answer = beat(talk, joining(subscribed_topic_names=None, subscribed_topic_regex="or.*s"))
    assert assigned(answer) == {talk.topic().id: [0, 1]}, "it matches as a whole"
    assert [one.topic for one in members_of(talk.broker.groups, "g")] == ["orders"]
    hard = beat(talk, joining(subscribed_topic_regex="(o*)*(r*)*(x+x+)+y"))
    assert hard.error_code == ErrorCode.NONE
    none = beat(talk, joining(subscribed_topic_regex=""))
    assert assigned(none) == {talk.topic().id: [0, 1]}


def test_a_pattern_stands_for_what_its_member_may_know_of() -> None:
    talk = Guarded()
    KafkaService(talk.broker)
    orders, payments = talk.create("orders", 1).id, talk.create("payments", 1).id
    for user in (USER, NOBODY):
        talk.allow(user, Operation.READ, ResourceType.GROUP)
    talk.allow(USER, Operation.DESCRIBE, ResourceType.TOPIC, "orders")
    epochs: dict[str, int] = {}

    def told(user: str) -> set[UUID] | None:
        """What a member is told that it has; None for what it had."""
        talk.become(user)
        request = (
            ConsumerGroupHeartbeatRequest(
                group_id="g", member_id=user, member_epoch=epochs[user], topic_partitions=[]
            )
            if user in epochs
            else joining(user, subscribed_topic_names=None, subscribed_topic_regex=".*")
        )
        answer = beat(talk, request)
        epochs[user] = answer.member_epoch
        return None if answer.assignment is None else set(assigned(answer))

    assert (told(USER), told(NOBODY)) == ({orders}, set())
    talk.become(ROOT)
    talk.allow(NOBODY, Operation.DESCRIBE, ResourceType.TOPIC, "payments")
    assert (told(USER), told(NOBODY)) == (None, {payments})
    talk.become(ROOT)
    assert talk.broker.authorizer is not None
    acls = talk.broker.authorizer.acls
    talk.wait(acls.delete([acl for acl in acls if acl.resource.name == "payments"]))
    acl = Acl(Resource(ResourceType.TOPIC, PatternType.LITERAL, "payments"), USER, "10.0.0.9", *DESCRIBE)
    talk.wait(acls.create([acl]))
    assert (told(USER), told(NOBODY)) == (None, set()), "that is for another host"
    talk.wait(acls.create([replace(acl, host="127.0.0.1")]))
    assert (told(USER), told(NOBODY)) == ({orders, payments}, None)


def test_an_unknown_assignor(talk: Conversation) -> None:
    assert beat(talk, joining(server_assignor="sticky")).error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert beat(talk, joining(server_assignor="range")).error_code == ErrorCode.NONE


def test_static_members(talk: Conversation) -> None:
    beat(talk, joining("one", instance_id="i"))
    assert beat(talk, joining("two", instance_id="i")).error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    leaving = ConsumerGroupHeartbeatRequest(group_id="g", member_id="one", instance_id="i", member_epoch=-2)
    assert beat(talk, leaving).member_epoch == -2
    assert assigned(beat(talk, joining("two", instance_id="i"))) == {talk.topic().id: [0, 1]}
    assert beat(talk, leaving).error_code == ErrorCode.FENCED_INSTANCE_ID


def test_commits_show_epochs(talk: Conversation) -> None:
    assert commit(talk, member_id="m", epoch=1) == ErrorCode.UNKNOWN_MEMBER_ID, "as after a restart of the server"
    assert commit(talk, member_id="m", epoch=1, version=8) == ErrorCode.ILLEGAL_GENERATION
    beat(talk, joining())
    assert commit(talk, 7, member_id="m", epoch=1) == ErrorCode.NONE
    assert commit(talk, member_id="m", epoch=2) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(talk, member_id="m", epoch=2, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert commit(talk, member_id="nobody", epoch=1) == ErrorCode.UNKNOWN_MEMBER_ID
    found = fetch(talk, "m", 1)
    assert (found.error_code, found.topics[0].partitions[0].committed_offset) == (ErrorCode.NONE, 7)
    assert fetch(talk, "m", 0).error_code == ErrorCode.STALE_MEMBER_EPOCH
    assert fetch(talk, "nobody", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(talk) == {0: 7, 1: -1}


def test_a_group_is_described_by_its_own_api(talk: Conversation) -> None:
    beat(talk, joining(instance_id="i", rack_id="r", subscribed_topic_regex="or.*"))
    (group,) = talk.ask(
        CONSUMER_GROUP_DESCRIBE,
        ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=True),
    ).groups
    assert (group.error_code, group.group_state, group.assignor_name) == (ErrorCode.NONE, "Stable", "uniform")
    assert (group.group_epoch, group.assignment_epoch) == (1, 1)
    assert group.authorized_operations > 0
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("m", "i", "r", 1)
    assert (member.client_id, member.client_host, member.member_type) == ("client", "/127.0.0.1", 1)
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["orders"], "or.*")
    for told in (member.assignment, member.target_assignment):
        assert [(one.topic_name, one.partitions) for one in told.topic_partitions] == [("orders", [0, 1])]
    (missing,) = talk.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["g"])).groups
    assert (missing.error_code, missing.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert "classic" in missing.error_message
    old = talk.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["g"]), 5).groups[0]
    assert (old.error_code, old.group_state) == (ErrorCode.NONE, "Dead")


def test_groups_that_are_none_are_described_as_missing(talk: Conversation) -> None:
    talk.ask(JOIN_GROUP, join_request(), 3)
    request = ConsumerGroupDescribeRequest(group_ids=["g", "none"])
    groups = talk.ask(CONSUMER_GROUP_DESCRIBE, request).groups
    assert [one.error_code for one in groups] == [ErrorCode.GROUP_ID_NOT_FOUND] * 2
    assert all(one.error_message for one in groups)


def test_groups_are_listed_by_type(talk: Conversation) -> None:
    beat(talk, joining())
    talk.ask(JOIN_GROUP, join_request(group_id="other"), 3)
    consumer, classic = ("g", "consumer", "consumer"), ("other", "classic", "consumer")
    assert listed(talk) == {consumer, classic}
    assert listed(talk, "Consumer") == {consumer}
    assert listed(talk, "classic") == {classic}
    assert listed(talk, "share") == set()


def test_members_are_removed_by_an_administrator(talk: Conversation) -> None:
    beat(talk, joining())
    beat(talk, joining("n", instance_id="i"))
    assert leave(talk, ("m", None), ("", "i")) == [ErrorCode.NONE] * 2
    assert talk.broker.groups.consumer_group("g").idle


def test_offsets_of_topics_that_members_read_stay(talk: Conversation) -> None:
    talk.create("payments", 1)
    beat(talk, joining())
    codes = delete_offsets(talk, "orders", "payments")
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]


def test_a_member_is_refused_while_another_protocol_reads(talk: Conversation) -> None:
    held = [HELD]
    talk.broker.holders.register("pulsar", lambda name: held if name == "g" else ())
    for request in (joining(), joining(subscribed_topic_names=[], subscribed_topic_regex="ord.*")):
        answer = beat(talk, request)
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert "pulsar" in answer.error_message
    assert talk.broker.groups.environment.held("g") == {"orders"}
    held.clear()
    assert beat(talk, joining()).error_code == ErrorCode.NONE
    assert [one.topic for one in members_of(talk.broker.groups, "g")] == ["orders"]


def test_clients_of_other_protocols_are_described_beside_members() -> None:
    talk = Conversation(group__several__protocols__enable="true")
    KafkaService(talk.broker)
    talk.create("orders", 2)
    talk.broker.holders.register("pulsar", lambda _: [HELD], names=lambda: [("g", True)])
    beat(talk, joining())
    assert talk.broker.groups.environment.held("g") == frozenset()
    (group,) = talk.ask(CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest(group_ids=["g"])).groups
    assert [(one.member_id, one.member_type) for one in group.members] == [("m", 1), ("pulsar-c-0", -1)]
    assert group.assignor_name == "uniform,pulsar"
    beat(talk, ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1))
    (group,) = talk.ask(CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest(group_ids=["g"])).groups
    assert (group.group_state, group.assignor_name, len(group.members)) == ("Stable", "pulsar", 1)


def test_settings_of_a_group(talk: Conversation) -> None:
    def alter(name: str, value: str, *, validate_only: bool = False) -> int:
        config = AlterableConfig(name=name, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name="g", configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        return int(talk.ask(INCREMENTAL_ALTER_CONFIGS, request).responses[0].error_code)

    def described() -> dict[str, tuple[str, int]]:
        resource = DescribeConfigsResource(resource_type=GROUP_RESOURCE, resource_name="g", configuration_keys=None)
        (result,) = talk.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource])).results
        return {one.name: (one.value, one.config_source) for one in result.configs}

    interval, session = "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"
    assert described() == {interval: ("5000", 5), session: ("45000", 5)}
    assert alter(interval, "6000", validate_only=True) == ErrorCode.NONE
    assert described()[interval] == ("5000", 5)
    assert alter(interval, "6000") == ErrorCode.NONE
    assert alter(session, "1") == ErrorCode.INVALID_CONFIG
    assert alter("retention.ms", "1") == ErrorCode.INVALID_CONFIG
    assert described() == {interval: ("6000", 8), session: ("45000", 5)}
    assert beat(talk, joining()).heartbeat_interval_ms == 6000


def test_what_consumers_of_the_classic_protocol_tell_each_other() -> None:
    told = struct.pack(">hih6si", 3, 1, 6, b"orders", -1) + struct.pack(">ih6sii", 1, 6, b"orders", 1, 4)
    subscription = decode_subscription(told + struct.pack(">ih", 7, -1))
    assert subscription == (frozenset({"orders"}), frozenset({("orders", 4)}))
    first = struct.pack(">hih6sih", 0, 1, 6, b"orders", 2, 5)
    assert decode_subscription(first) == (frozenset({"orders"}), frozenset())
    assert subscription_version(told) == 3
    assert (subscription_version(b""), subscription_version(b"\xff\xff")) == (0, 0)
    protocol = ConsumerProtocol()
    written = protocol.write_assignment(told, {"orders": [0, 3]})
    assert written == encode_assignment({"orders": [0, 3]}, 3)
    assigned = frozenset({("orders", 0), ("orders", 3)})
    assert protocol.read_assignment("custom", written) == assigned
    more = written.removesuffix(struct.pack(">i", -1)) + struct.pack(">i3s", 3, b"abc")
    assert protocol.read_assignment("cooperative-sticky", more) == assigned
    assert protocol.read_assignment("stream", more) is None, "its members could not go on with partitions alone"
    assert protocol.read_subscription(first) == decode_subscription(first)


@pytest.mark.parametrize("length", range(35))
def test_what_is_cut_off_is_not_read(length: int) -> None:
    told = struct.pack(">hih6si", 1, 1, 6, b"orders", -1) + struct.pack(">ih6sii", 1, 6, b"orders", 1, 4)
    assert decode_subscription(told[:length]) is None or length == len(told)
    assert decode_assignment(encode_assignment({"orders": [0, 3]})[:length]) is None or length >= 24
