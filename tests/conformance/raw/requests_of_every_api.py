"""A request of every API that a server can answer without error, whatever the version."""

from typing import Any, Final
from uuid import UUID

from millstream.wire.kafka.messages import alter_configs, incremental_alter_configs
from millstream.wire.kafka.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from millstream.wire.kafka.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from millstream.wire.kafka.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from millstream.wire.kafka.messages.api_versions import ApiVersionsRequest
from millstream.wire.kafka.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from millstream.wire.kafka.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from millstream.wire.kafka.messages.create_acls import AclCreation, CreateAclsRequest
from millstream.wire.kafka.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from millstream.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.wire.kafka.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from millstream.wire.kafka.messages.delete_groups import DeleteGroupsRequest
from millstream.wire.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from millstream.wire.kafka.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.wire.kafka.messages.describe_acls import DescribeAclsRequest
from millstream.wire.kafka.messages.describe_cluster import DescribeClusterRequest
from millstream.wire.kafka.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from millstream.wire.kafka.messages.describe_groups import DescribeGroupsRequest
from millstream.wire.kafka.messages.describe_log_dirs import DescribeLogDirsRequest
from millstream.wire.kafka.messages.describe_producers import DescribeProducersRequest
from millstream.wire.kafka.messages.describe_producers import TopicRequest as ProducersTopic
from millstream.wire.kafka.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from millstream.wire.kafka.messages.describe_transactions import DescribeTransactionsRequest
from millstream.wire.kafka.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from millstream.wire.kafka.messages.end_txn import EndTxnRequest
from millstream.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.wire.kafka.messages.find_coordinator import FindCoordinatorRequest
from millstream.wire.kafka.messages.heartbeat import HeartbeatRequest
from millstream.wire.kafka.messages.init_producer_id import InitProducerIdRequest
from millstream.wire.kafka.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from millstream.wire.kafka.messages.leave_group import LeaveGroupRequest, MemberIdentity
from millstream.wire.kafka.messages.list_groups import ListGroupsRequest
from millstream.wire.kafka.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from millstream.wire.kafka.messages.list_transactions import ListTransactionsRequest
from millstream.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from millstream.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.wire.kafka.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from millstream.wire.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from millstream.wire.kafka.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from millstream.wire.kafka.messages.sasl_authenticate import SaslAuthenticateRequest
from millstream.wire.kafka.messages.sasl_handshake import SaslHandshakeRequest
from millstream.wire.kafka.messages.sync_group import SyncGroupRequest
from millstream.wire.kafka.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.conformance.raw.log_client import batch_of, produce_request

__all__ = ["requests_by_key"]

_TOPIC: Final = 2
_READ: Final = 3
_ALLOW: Final = 3


def requests_by_key(topic: str, topic_id: UUID, fresh: str) -> dict[int, Any]:
    """One request for each API, by its key.

    Args:
        topic: a topic with one partition and at least one record, which stays as it is.
        topic_id: its id.
        fresh: a name that no topic and no group has.
    """
    produce = produce_request(topic, batch_of(b"value"))
    produce.topic_data[0].topic_id = topic_id
    fetched = FetchTopic(
        topic=topic,
        topic_id=topic_id,
        partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)],
    )
    listed = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    committed = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="note")
    commits = OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[committed])
    epoch_end = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    offsets_of = OffsetFetchRequestGroup(
        group_id=fresh, topics=[OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[0])]
    )
    return {
        0: produce,
        1: FetchRequest(max_wait_ms=0, topics=[fetched]),
        2: ListOffsetsRequest(replica_id=-1, topics=[listed]),
        3: MetadataRequest(topics=[MetadataRequestTopic(name=topic)]),
        8: OffsetCommitRequest(group_id=fresh, topics=[commits]),
        9: OffsetFetchRequest(
            group_id=fresh,
            topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0])],
            groups=[offsets_of],
        ),
        10: FindCoordinatorRequest(key=fresh, coordinator_keys=[fresh]),
        11: JoinGroupRequest(
            group_id=fresh,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        ),
        12: HeartbeatRequest(group_id=fresh, member_id="nobody"),
        13: LeaveGroupRequest(group_id=fresh, member_id="nobody", members=[MemberIdentity(member_id="nobody")]),
        14: SyncGroupRequest(group_id=fresh, member_id="nobody"),
        15: DescribeGroupsRequest(groups=[fresh]),
        16: ListGroupsRequest(),
        18: ApiVersionsRequest(client_software_name="raw", client_software_version="1"),
        19: CreateTopicsRequest(topics=[CreatableTopic(name=fresh, num_partitions=1, replication_factor=1)]),
        20: DeleteTopicsRequest(topics=[DeleteTopicState(name=fresh)], topic_names=[fresh]),
        21: DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition()])]),
        22: InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0),
        23: OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[epoch_end])]),
        **_requests_of_acls(topic),
        **_requests_of_configs(topic),
        35: DescribeLogDirsRequest(topics=None),
        37: CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=topic, count=2, assignments=None)]),
        42: DeleteGroupsRequest(groups_names=[fresh]),
        75: DescribeTopicPartitionsRequest(topics=[TopicRequest(name=topic)]),
        60: DescribeClusterRequest(),
        **_of_transactions(topic, fresh),
        **_of_authentication(fresh),
        **_of_groups(topic, fresh),
    }


def _of_groups(topic: str, fresh: str) -> dict[int, Any]:
    return {
        47: OffsetDeleteRequest(
            group_id=fresh, topics=[OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition()])]
        ),
        68: ConsumerGroupHeartbeatRequest(
            group_id=f"{fresh}-consumers",
            member_id=fresh,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        ),
        69: ConsumerGroupDescribeRequest(group_ids=[fresh]),
    }


def _of_authentication(fresh: str) -> dict[int, Any]:
    return {
        17: SaslHandshakeRequest(mechanism="PLAIN"),
        36: SaslAuthenticateRequest(auth_bytes=b"\0name\0password"),
        50: DescribeUserScramCredentialsRequest(users=None),
        51: AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name=fresh, mechanism=1)]),
    }


def _of_transactions(topic: str, fresh: str) -> dict[int, Any]:
    added = AddPartitionsToTxnTopic(name=topic, partitions=[0])
    pending = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="note")
    return {
        24: AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=fresh,
            v3_and_below_topics=[added],
            transactions=[AddPartitionsToTxnTransaction(transactional_id=fresh, topics=[added])],
        ),
        25: AddOffsetsToTxnRequest(transactional_id=fresh, group_id=fresh),
        26: EndTxnRequest(transactional_id=fresh),
        28: TxnOffsetCommitRequest(
            transactional_id=fresh,
            group_id=fresh,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[pending])],
        ),
        61: DescribeProducersRequest(topics=[ProducersTopic(name=topic, partition_indexes=[0])]),
        65: DescribeTransactionsRequest(transactional_ids=[fresh]),
        66: ListTransactionsRequest(),
    }


def _requests_of_acls(topic: str) -> dict[int, Any]:
    wanted: dict[str, Any] = {"resource_type_filter": _TOPIC, "operation": _READ, "permission_type": _ALLOW}
    granted = AclCreation(
        resource_type=_TOPIC,
        resource_name=topic,
        principal="User:ada",
        host="*",
        operation=_READ,
        permission_type=_ALLOW,
    )
    return {
        29: DescribeAclsRequest(**wanted),
        30: CreateAclsRequest(creations=[granted]),
        31: DeleteAclsRequest(filters=[DeleteAclsFilter(**wanted)]),
    }


def _requests_of_configs(topic: str) -> dict[int, Any]:
    described = DescribeConfigsResource(resource_type=_TOPIC, resource_name=topic, configuration_keys=None)
    replaced = alter_configs.AlterConfigsResource(resource_type=_TOPIC, resource_name=topic)
    changed = incremental_alter_configs.AlterConfigsResource(resource_type=_TOPIC, resource_name=topic)
    return {
        32: DescribeConfigsRequest(resources=[described]),
        33: alter_configs.AlterConfigsRequest(resources=[replaced]),
        44: incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[changed]),
    }
