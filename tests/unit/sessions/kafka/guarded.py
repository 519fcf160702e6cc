"""A server that decides by ACLs, and a request of every API that names what there is on it."""

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

from millstream.broker.acl import CLUSTER_NAME, Acl, Operation, PatternType, Permission, Resource, ResourceType
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.wire.kafka.schema import fields_of
from tests.support.batches import batch
from tests.unit.sessions.kafka.transacting import Teller

__all__ = [
    "GROUP",
    "NOBODY",
    "REFUSALS",
    "ROOT",
    "TOPIC",
    "TRANSACTIONAL_ID",
    "USER",
    "Guarded",
    "codes",
    "request_of",
]

ROOT, NOBODY, USER = "User:root", "User:nobody", "User:ada"
TOPIC, GROUP, TRANSACTIONAL_ID, SCRAM_USER = "orders", "readers", "pay", "carol"
REFUSALS: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_TOPIC_TYPE: Final = 2
_VALUES: Final[dict[str, Any]] = {
    "name": TOPIC,
    "topic": TOPIC,
    "resource_name": TOPIC,
    "topic_names": [TOPIC],
    "resource_type": _TOPIC_TYPE,
    "partition_indexes": [0],
    "partitions": [0],
    "group_id": GROUP,
    "groups": [GROUP],
    "groups_names": [GROUP],
    "group_ids": [GROUP],
    "key": GROUP,
    "coordinator_keys": [GROUP],
    "transactional_id": TRANSACTIONAL_ID,
    "v3_and_below_transactional_id": TRANSACTIONAL_ID,
    "transactional_ids": [TRANSACTIONAL_ID],
    "acks": -1,
    "records": bytes(batch(b"value")),
    "max_bytes": 1000,
    "partition_max_bytes": 1000,
    "endpoint_type": 1,
    "principal": NOBODY,
    "host": "*",
    "operation": 3,
    "permission_type": 3,
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "include_authorized_operations": True,
    "include_topic_authorized_operations": True,
    "cursor": None,
    "response_partition_limit": 100,
    "count": 5,
    "num_partitions": 1,
    "replication_factor": 1,
    "timestamp": -1,
    "iterations": 4096,
}
_VALUES_OF: Final[dict[tuple[str, str], Any]] = {
    ("CreatableTopic", "name"): "new",
    ("CreatableTopic", "assignments"): [],
    ("CreatePartitionsTopic", "assignments"): None,
    ("SyncGroupRequest", "assignments"): [],
    ("JoinGroupRequestProtocol", "name"): "range",
    ("JoinGroupRequest", "session_timeout_ms"): 10_000,
    ("JoinGroupRequest", "protocol_type"): "consumer",
    ("CreatableTopicConfig", "name"): "retention.ms",
    ("CreatableTopicConfig", "value"): "1000",
    ("AlterableConfig", "name"): "retention.ms",
    ("AlterableConfig", "value"): "1000",
    ("UserName", "name"): SCRAM_USER,
    ("ScramCredentialUpsertion", "name"): SCRAM_USER,
    ("ScramCredentialUpsertion", "mechanism"): 1,
    ("ScramCredentialDeletion", "name"): "dave",
    ("ScramCredentialDeletion", "mechanism"): 1,
    ("ListTransactionsRequest", "duration_filter"): -1,
    ("ListTransactionsRequest", "state_filters"): [],
    ("ListTransactionsRequest", "producer_id_filters"): [],
    ("ListGroupsRequest", "states_filter"): [],
    ("ListGroupsRequest", "types_filter"): [],
    ("ConsumerGroupHeartbeatRequest", "member_id"): "m",
    ("ConsumerGroupHeartbeatRequest", "member_epoch"): 0,
    ("ConsumerGroupHeartbeatRequest", "instance_id"): None,
    ("ConsumerGroupHeartbeatRequest", "rack_id"): None,
    ("ConsumerGroupHeartbeatRequest", "rebalance_timeout_ms"): 1000,
    ("ConsumerGroupHeartbeatRequest", "subscribed_topic_names"): [TOPIC],
    ("ConsumerGroupHeartbeatRequest", "subscribed_topic_regex"): None,
    ("ConsumerGroupHeartbeatRequest", "server_assignor"): None,
    ("ConsumerGroupHeartbeatRequest", "topic_partitions"): [],
    ("DescribeLogDirsRequest", "topics"): None,
    ("FetchRequest", "session_epoch"): -1,
    ("InitProducerIdRequest", "transaction_timeout_ms"): 1000,
    ("InitProducerIdRequest", "producer_id"): -1,
    ("InitProducerIdRequest", "producer_epoch"): -1,
}


class Guarded(Teller):
    """A server with a topic, a group, a transactional id and a super user, who is the first to speak."""

    def __init__(self, database: str = "", **settings: str) -> None:
        super().__init__(
            database,
            authorizer__class__name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            super__users=ROOT,
            **settings,
        )

    def connect(self) -> None:
        super().connect()
        self.become(ROOT)

    def fill(self) -> "Guarded":
        """Make the topic, the group and the transactional id."""
        self.create(TOPIC, 2)
        self.produce(b"value")
        place = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=[place])]
        self.ask(OFFSET_COMMIT, OffsetCommitRequest(group_id=GROUP, topics=topics), 8)
        self.open(TRANSACTIONAL_ID)
        return self

    def become(self, principal: str) -> None:
        """Go on as somebody else."""
        self.client.principal = principal

    def allow(self, principal: str, operation: Operation, kind: ResourceType, name: str = "*") -> None:
        """Create an ACL."""
        name = CLUSTER_NAME if kind is ResourceType.CLUSTER else name
        acl = Acl(Resource(kind, PatternType.LITERAL, name), principal, "*", operation, Permission.ALLOW)
        assert self.broker.authorizer is not None
        self.wait(self.broker.authorizer.acls.create([acl]))

    def state(self) -> object:
        """What somebody could have changed."""
        broker = self.broker
        topics = {
            topic.name.flat: (topic.configs, [(one.log.start_offset, one.log.end_offset) for one in topic.partitions])
            for topic in broker.topics
        }
        producer = broker.transactional_producers.find(TRANSACTIONAL_ID)
        kinds = {kind: dict(broker.documents.of_kind(kind)) for kind in ("acl", "scram-credential")}
        groups = {name: dict(broker.groups.offsets.of_group(name)) for name in broker.groups.ids()}
        return topics, producer and producer.identity, kinds, groups


def request_of(cls: type, version: int) -> Any:
    """A request, or a part of one, that names what there is."""
    return cls(
        **{
            name: _value(cls, name, field, version)
            for name, field in fields_of(cls)
            if field.since <= version <= field.until
        }
    )


def _value(cls: type, name: str, field: Any, version: int) -> Any:
    if (cls.__name__, name) in _VALUES_OF:
        return _VALUES_OF[cls.__name__, name]
    if field.kind == "array" and not isinstance(field.element, str):
        return [request_of(field.element, version)]
    if name in _VALUES:
        return _VALUES[name]
    return field.default()


def codes(response: Any) -> Iterator[int]:
    """Every error code of a response, its parts included."""
    for field in dataclasses.fields(response):
        value = getattr(response, field.name)
        if field.name.endswith("error_code"):
            yield value
        for part in value if isinstance(value, list) else [value]:
            if dataclasses.is_dataclass(part):
                yield from codes(part)
