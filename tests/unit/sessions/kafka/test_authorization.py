"""What a client may do: that every API asks, for the right operation, and refuses in its own way."""

from typing import Any, Final
from uuid import UUID

import pytest

from millstream.broker.acl import Operation, ResourceType
from millstream.sessions.kafka.table import HANDLERS
from millstream.wire.kafka.api import Api
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.errors import Unanswerable
from millstream.wire.kafka.messages.api_versions import API_VERSIONS
from millstream.wire.kafka.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest, DeleteTopicState
from millstream.wire.kafka.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from millstream.wire.kafka.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from millstream.wire.kafka.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    DescribeTopicPartitionsRequest,
)
from millstream.wire.kafka.messages.describe_transactions import DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest
from millstream.wire.kafka.messages.fetch import FETCH
from millstream.wire.kafka.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from millstream.wire.kafka.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from millstream.wire.kafka.messages.list_groups import LIST_GROUPS
from millstream.wire.kafka.messages.list_transactions import LIST_TRANSACTIONS
from millstream.wire.kafka.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from millstream.wire.kafka.messages.offset_fetch import OFFSET_FETCH, OffsetFetchRequest, OffsetFetchRequestGroup
from millstream.wire.kafka.messages.produce import PRODUCE
from millstream.wire.kafka.messages.sasl_authenticate import SASL_AUTHENTICATE
from millstream.wire.kafka.messages.sasl_handshake import SASL_HANDSHAKE
from tests.support.batches import batch
from tests.unit.sessions.kafka.conversation import fetch_request, produce_request
from tests.unit.sessions.kafka.guarded import NOBODY, REFUSALS, ROOT, USER, Guarded, codes, request_of
from tests.unit.sessions.kafka.transacting import transactional_batch

READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
ALTER, DESCRIBE, ACTION = Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTION = ResourceType.TRANSACTIONAL_ID

TOPIC_REFUSED, CLUSTER_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
CLUSTER_QUESTION = DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=1)

OPEN: Final = {API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE, DESCRIBE_CLUSTER}
"""What everybody may ask for who is let in."""
FILTERED: Final = {LIST_GROUPS: "groups", LIST_TRANSACTIONS: "transaction_states"}
"""What nobody is refused, and only what one may see is told."""
GUARDED: Final = [handler.api for handler in HANDLERS.values() if handler.api not in OPEN]
EVERY_VERSION: Final = [
    pytest.param(api, version, id=f"{api.name}-{version}") for api in GUARDED for version in api.versions
]

RIGHTS: Final[dict[tuple[str, int], list[tuple[Operation, ResourceType]]]] = {
    ("Produce", 13): [(WRITE, TOPIC)],
    ("Produce", 9): [(WRITE, TOPIC)],
    ("Fetch", 18): [(READ, TOPIC)],
    ("Fetch", 12): [(READ, TOPIC)],
    ("ListOffsets", 11): [(DESCRIBE, TOPIC)],
    ("Metadata", 13): [(DESCRIBE, TOPIC)],
    ("OffsetCommit", 10): [(READ, GROUP), (READ, TOPIC)],
    ("OffsetCommit", 9): [(READ, GROUP), (READ, TOPIC)],
    ("OffsetFetch", 10): [(DESCRIBE, GROUP), (DESCRIBE, TOPIC)],
    ("OffsetFetch", 7): [(DESCRIBE, GROUP), (DESCRIBE, TOPIC)],
    ("OffsetFetch", 1): [(DESCRIBE, GROUP), (DESCRIBE, TOPIC)],
    ("FindCoordinator", 6): [(DESCRIBE, GROUP)],
    ("FindCoordinator", 3): [(DESCRIBE, GROUP)],
    ("JoinGroup", 9): [(READ, GROUP)],
    ("Heartbeat", 4): [(READ, GROUP)],
    ("LeaveGroup", 5): [(READ, GROUP)],
    ("SyncGroup", 5): [(READ, GROUP)],
    ("DescribeGroups", 6): [(DESCRIBE, GROUP)],
    ("ConsumerGroupHeartbeat", 1): [(READ, GROUP), (DESCRIBE, TOPIC)],
    ("ConsumerGroupDescribe", 1): [(DESCRIBE, GROUP)],
    ("CreateTopics", 7): [(CREATE, TOPIC), (Operation.DESCRIBE_CONFIGS, TOPIC)],
    ("DeleteTopics", 6): [(DELETE, TOPIC)],
    ("DeleteRecords", 2): [(DELETE, TOPIC)],
    ("InitProducerId", 5): [(WRITE, TRANSACTION)],
    ("OffsetForLeaderEpoch", 4): [(DESCRIBE, TOPIC)],
    ("AddPartitionsToTxn", 5): [(ACTION, CLUSTER)],
    ("AddPartitionsToTxn", 3): [(WRITE, TRANSACTION), (WRITE, TOPIC)],
    ("AddOffsetsToTxn", 4): [(WRITE, TRANSACTION), (READ, GROUP)],
    ("EndTxn", 5): [(WRITE, TRANSACTION)],
    ("TxnOffsetCommit", 5): [(WRITE, TRANSACTION), (READ, GROUP), (READ, TOPIC)],
    ("DescribeAcls", 3): [(DESCRIBE, CLUSTER)],
    ("CreateAcls", 3): [(ALTER, CLUSTER)],
    ("DeleteAcls", 3): [(ALTER, CLUSTER)],
    ("DescribeConfigs", 4): [(Operation.DESCRIBE_CONFIGS, TOPIC)],
    ("AlterConfigs", 2): [(Operation.ALTER_CONFIGS, TOPIC)],
    ("DescribeLogDirs", 5): [(DESCRIBE, CLUSTER)],
    ("CreatePartitions", 3): [(ALTER, TOPIC)],
    ("DeleteGroups", 2): [(DELETE, GROUP)],
    ("IncrementalAlterConfigs", 1): [(Operation.ALTER_CONFIGS, TOPIC)],
    ("OffsetDelete", 0): [(DELETE, GROUP), (READ, TOPIC)],
    ("DescribeUserScramCredentials", 0): [(DESCRIBE, CLUSTER)],
    ("AlterUserScramCredentials", 0): [(ALTER, CLUSTER)],
    ("DescribeProducers", 0): [(READ, TOPIC)],
    ("DescribeTransactions", 0): [(DESCRIBE, TRANSACTION)],
    ("DescribeTopicPartitions", 0): [(DESCRIBE, TOPIC)],
}
"""What each API wants, all of it, by its name and a version."""
BY_NAME: Final = {api.name: api for api in GUARDED}


def outcome(talk: Guarded, api: Api, version: int) -> Any:
    """What the API answers; None for nothing yet."""
    request = request_of(api.request, version)
    for topic in _named_by_id(request, talk):
        topic.topic_id = talk.topic().id
    pending = talk.send(api, request, version)
    assert pending is not None
    talk.runtime.run()
    talk.pass_ms(1)
    return pending.result() if pending.done else None


def _named_by_id(request: Any, talk: Guarded) -> list[Any]:
    """The topics of a request that has no names for them."""
    groups = getattr(request, "groups", [])
    asked = [*groups, request] if groups and not isinstance(groups[0], str) else [request]
    names = {"Produce": "topic_data"}
    found = []
    for one in asked:
        topics = getattr(one, names.get(type(request).__name__.removesuffix("Request"), "topics"), None) or []
        found += [topic for topic in topics if hasattr(topic, "topic_id") and not _is_named(topic)]
    return found


def _is_named(topic: Any) -> bool:
    return bool(getattr(topic, "name", "") or getattr(topic, "topic", ""))


def test_every_api_is_here() -> None:
    assert {name for name, _ in RIGHTS} == {api.name for api in GUARDED} - {api.name for api in FILTERED}


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_who_may_do_nothing_is_refused_and_changes_nothing(api: Api, version: int) -> None:
    talk = Guarded().fill()
    before = talk.state()
    talk.become(NOBODY)
    response = outcome(talk, api, version)
    assert response is not None
    if api in FILTERED:
        assert getattr(response, FILTERED[api]) == []
    elif api.name == "DescribeLogDirs" and version < 3:
        assert response.results == []  # these versions have room for no error
    else:
        assert REFUSALS.intersection(codes(response))
        assert set(codes(response)) <= REFUSALS | {0}
    assert talk.state() == before


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_a_super_user_is_not_refused(api: Api, version: int) -> None:
    talk = Guarded().fill()
    talk.become(ROOT)
    response = outcome(talk, api, version)
    if response is not None:
        assert REFUSALS.isdisjoint(codes(response))
    if api in FILTERED:
        assert getattr(response, FILTERED[api])


@pytest.mark.parametrize(("name", "version"), RIGHTS)
def test_each_wants_its_rights_and_no_more(name: str, version: int) -> None:
    rights = RIGHTS[name, version]
    for missing in (None, *rights):
        talk = Guarded().fill()
        for operation, kind in rights:
            if (operation, kind) != missing:
                talk.allow(USER, operation, kind)
        talk.become(USER)
        response = outcome(talk, BY_NAME[name], version)
        refused = response is not None and not REFUSALS.isdisjoint(codes(response))
        assert refused == (missing is not None), missing


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_without_an_authorizer_nobody_is_refused(api: Api, version: int) -> None:
    talk = Guarded().fill()
    talk.broker.authorizer = None
    talk.become(NOBODY)
    response = outcome(talk, api, version)
    if response is not None:
        assert REFUSALS.isdisjoint(codes(response))


# Where one of several rights will do


@pytest.mark.parametrize(
    ("name", "version", "right"),
    [
        ("CreateTopics", 4, (CREATE, CLUSTER)),
        ("DeleteTopics", 6, (DELETE, CLUSTER)),
        ("OffsetForLeaderEpoch", 4, (ACTION, CLUSTER)),
        ("ListGroups", 5, (DESCRIBE, CLUSTER)),
        ("ListGroups", 5, (DESCRIBE, GROUP)),
        ("ListTransactions", 2, (DESCRIBE, TRANSACTION)),
    ],
)
def test_another_right_that_will_do(name: str, version: int, right: tuple[Operation, ResourceType]) -> None:
    talk = Guarded().fill()
    talk.allow(USER, *right)
    talk.become(USER)
    api = BY_NAME[name]
    response = outcome(talk, api, version)
    assert REFUSALS.isdisjoint(codes(response))
    if api in FILTERED:
        assert len(getattr(response, FILTERED[api])) == 1


@pytest.mark.parametrize("right", [(Operation.IDEMPOTENT_WRITE, CLUSTER), (WRITE, TOPIC)])
def test_a_producer_id_is_for_whoever_may_write_anywhere(right: tuple[Operation, ResourceType]) -> None:
    talk = Guarded()
    talk.become(USER)
    assert talk.ask(INIT_PRODUCER_ID, InitProducerIdRequest(transactional_id=None), 5).error_code == CLUSTER_REFUSED
    talk.allow(USER, *right, name="orders")
    assert talk.ask(INIT_PRODUCER_ID, InitProducerIdRequest(transactional_id=None), 5).error_code == ErrorCode.NONE


def test_a_transactional_batch_wants_its_transactional_id() -> None:
    talk = Guarded().fill()
    who = talk.open()
    talk.allow(USER, WRITE, TOPIC)
    talk.become(USER)
    request = produce_request(transactional_batch(b"paid", who, 0))
    request.transactional_id = talk.name
    [answer] = talk.ask(PRODUCE, request, 12).responses[0].partition_responses
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    talk.allow(USER, WRITE, TRANSACTION, talk.name)
    [answer] = talk.ask(PRODUCE, request, 12).responses[0].partition_responses
    assert answer.error_code == ErrorCode.NONE


@pytest.mark.parametrize("key_type", [0, 1])
def test_coordinators_are_told_to_whom_they_concern(key_type: int) -> None:
    talk = Guarded()
    kind = (GROUP, TRANSACTION)[key_type]
    talk.allow(USER, DESCRIBE, kind, "mine")
    talk.become(USER)
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["mine", "other"])
    mine, other = talk.ask(FIND_COORDINATOR, request).coordinators
    assert (mine.node_id, mine.error_code) == (0, ErrorCode.NONE)
    assert (other.node_id, other.host, other.port) == (-1, "", -1)
    assert other.error_code in REFUSALS


def test_acks_0_without_a_right_ends_the_connection() -> None:
    talk = Guarded().fill()
    talk.become(USER)
    with pytest.raises(Unanswerable, match="TOPIC_AUTHORIZATION_FAILED"):
        talk.send(PRODUCE, produce_request(batch(b"value"), acks=0), 12)


# Topics


def metadata(talk: Guarded, *names: str, topic_id: UUID | None = None, create: bool = False) -> dict[str | None, int]:
    topics = [MetadataRequestTopic(name=name) for name in names]
    if topic_id is not None:
        topics.append(MetadataRequestTopic(name=None, topic_id=topic_id))
    request = MetadataRequest(topics=topics or None, allow_auto_topic_creation=create)
    return {topic.name: topic.error_code for topic in talk.ask(METADATA, request).topics}


def test_only_topics_that_one_may_describe_are_told() -> None:
    talk = Guarded().fill()
    talk.create("secret")
    talk.allow(USER, READ, TOPIC, "orders")
    talk.become(USER)
    assert metadata(talk) == {"orders": 0}
    assert metadata(talk, "orders", "secret", "none") == {"orders": 0, "secret": TOPIC_REFUSED, "none": TOPIC_REFUSED}
    assert metadata(talk, topic_id=talk.topic("secret").id) == {None: TOPIC_REFUSED}
    assert metadata(talk, topic_id=UUID(int=5)) == {None: ErrorCode.UNKNOWN_TOPIC_ID}
    pages = talk.ask(DESCRIBE_TOPIC_PARTITIONS, DescribeTopicPartitionsRequest(response_partition_limit=100)).topics
    assert [topic.name for topic in pages] == ["orders"]


def test_a_topic_is_made_only_by_who_may() -> None:
    talk = Guarded()
    talk.become(USER)
    assert metadata(talk, "new", create=True) == {"new": TOPIC_REFUSED}
    talk.allow(USER, WRITE, TOPIC, "new")
    assert metadata(talk, "new", create=True) == {"new": TOPIC_REFUSED}
    assert metadata(talk, "new") == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert not list(talk.broker.topics)
    talk.allow(USER, CREATE, TOPIC, "new")
    assert metadata(talk, "new", create=True) == {"new": 0}
    talk.allow(USER, CREATE, CLUSTER)
    talk.allow(USER, DESCRIBE, TOPIC, "newer")
    assert metadata(talk, "newer", create=True) == {"newer": 0}


def test_a_topic_that_is_deleted_by_its_id_keeps_its_name() -> None:
    talk = Guarded().fill()
    topic_id = talk.topic().id
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)])
    talk.become(USER)
    for name in (None, "orders"):
        [result] = talk.ask(DELETE_TOPICS, request).responses
        assert (result.name, result.topic_id, result.error_code) == (name, topic_id, TOPIC_REFUSED)
        assert "orders" not in result.error_message
        talk.allow(USER, DESCRIBE, TOPIC)


def test_part_of_a_request_may_be_refused() -> None:
    talk = Guarded().fill()
    talk.create("secret")
    talk.allow(USER, READ, TOPIC, "orders")
    talk.become(USER)
    response = talk.ask(FETCH, fetch_request(names=("orders", "secret")), 12)
    [orders], [secret] = (topic.partitions for topic in response.responses)
    assert (orders.error_code, len(orders.records) > 0) == (0, True)
    assert (secret.error_code, secret.high_watermark, len(secret.records)) == (TOPIC_REFUSED, -1, 0)


def test_a_transaction_is_described_without_topics_that_one_may_not_describe() -> None:
    talk = Guarded().fill()
    who = talk.open()
    talk.add(who, 0)
    talk.allow(USER, DESCRIBE, TRANSACTION)
    talk.become(USER)
    request = DescribeTransactionsRequest(transactional_ids=[talk.name])
    assert talk.ask(DESCRIBE_TRANSACTIONS, request).transaction_states[0].topics == []
    talk.allow(USER, DESCRIBE, TOPIC)
    assert [topic.topic for topic in talk.ask(DESCRIBE_TRANSACTIONS, request).transaction_states[0].topics] == [
        "orders"
    ]


def test_all_offsets_of_a_group_are_those_of_topics_that_one_may_describe() -> None:
    talk = Guarded().fill()
    talk.allow(USER, DESCRIBE, GROUP)
    talk.become(USER)
    groups = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="readers", topics=None)])
    assert talk.ask(OFFSET_FETCH, groups, 9).groups[0].topics == []
    talk.allow(USER, DESCRIBE, TOPIC)
    assert [topic.name for topic in talk.ask(OFFSET_FETCH, groups, 9).groups[0].topics] == ["orders"]


# What one is told that one may do


def bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


def test_authorized_operations() -> None:
    talk = Guarded().fill()
    talk.become(USER)
    assert talk.ask(DESCRIBE_CLUSTER, CLUSTER_QUESTION).cluster_authorized_operations == 0
    talk.allow(USER, ALTER, CLUSTER)
    assert talk.ask(DESCRIBE_CLUSTER, CLUSTER_QUESTION).cluster_authorized_operations == bits(7, 8)
    talk.allow(USER, READ, TOPIC)
    question = MetadataRequest(topics=None, include_topic_authorized_operations=True)
    assert talk.ask(METADATA, question).topics[0].topic_authorized_operations == bits(3, 8)
    talk.allow(USER, Operation.ALL, GROUP)
    groups = DescribeGroupsRequest(groups=["readers"], include_authorized_operations=True)
    assert talk.ask(DESCRIBE_GROUPS, groups).groups[0].authorized_operations == bits(3, 6, 8, 10, 11)
    talk.become(ROOT)
    assert talk.ask(METADATA, question).topics[0].topic_authorized_operations == bits(3, 4, 5, 6, 7, 8, 10, 11)
