"""Every Kafka API that this server speaks: the one table that serves, advertises and documents them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from millstream.sessions.kafka import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_user_scram_credentials,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
)
from millstream.sessions.kafka.api_versions import answer as answer_api_versions
from millstream.sessions.kafka.call import Call
from millstream.wire.kafka.api import Api
from millstream.wire.kafka.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN
from millstream.wire.kafka.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from millstream.wire.kafka.messages.alter_configs import ALTER_CONFIGS
from millstream.wire.kafka.messages.alter_user_scram_credentials import ALTER_USER_SCRAM_CREDENTIALS
from millstream.wire.kafka.messages.api_versions import API_VERSIONS
from millstream.wire.kafka.messages.consumer_group_describe import CONSUMER_GROUP_DESCRIBE
from millstream.wire.kafka.messages.consumer_group_heartbeat import CONSUMER_GROUP_HEARTBEAT
from millstream.wire.kafka.messages.create_acls import CREATE_ACLS
from millstream.wire.kafka.messages.create_partitions import CREATE_PARTITIONS
from millstream.wire.kafka.messages.create_topics import CREATE_TOPICS
from millstream.wire.kafka.messages.delete_acls import DELETE_ACLS
from millstream.wire.kafka.messages.delete_groups import DELETE_GROUPS
from millstream.wire.kafka.messages.delete_records import DELETE_RECORDS
from millstream.wire.kafka.messages.delete_topics import DELETE_TOPICS
from millstream.wire.kafka.messages.describe_acls import DESCRIBE_ACLS
from millstream.wire.kafka.messages.describe_cluster import DESCRIBE_CLUSTER
from millstream.wire.kafka.messages.describe_configs import DESCRIBE_CONFIGS
from millstream.wire.kafka.messages.describe_groups import DESCRIBE_GROUPS
from millstream.wire.kafka.messages.describe_log_dirs import DESCRIBE_LOG_DIRS
from millstream.wire.kafka.messages.describe_producers import DESCRIBE_PRODUCERS
from millstream.wire.kafka.messages.describe_topic_partitions import DESCRIBE_TOPIC_PARTITIONS
from millstream.wire.kafka.messages.describe_transactions import DESCRIBE_TRANSACTIONS
from millstream.wire.kafka.messages.describe_user_scram_credentials import DESCRIBE_USER_SCRAM_CREDENTIALS
from millstream.wire.kafka.messages.end_txn import END_TXN
from millstream.wire.kafka.messages.fetch import FETCH
from millstream.wire.kafka.messages.find_coordinator import FIND_COORDINATOR
from millstream.wire.kafka.messages.heartbeat import HEARTBEAT
from millstream.wire.kafka.messages.incremental_alter_configs import INCREMENTAL_ALTER_CONFIGS
from millstream.wire.kafka.messages.init_producer_id import INIT_PRODUCER_ID
from millstream.wire.kafka.messages.join_group import JOIN_GROUP
from millstream.wire.kafka.messages.leave_group import LEAVE_GROUP
from millstream.wire.kafka.messages.list_groups import LIST_GROUPS
from millstream.wire.kafka.messages.list_offsets import LIST_OFFSETS
from millstream.wire.kafka.messages.list_transactions import LIST_TRANSACTIONS
from millstream.wire.kafka.messages.metadata import METADATA
from millstream.wire.kafka.messages.offset_commit import OFFSET_COMMIT
from millstream.wire.kafka.messages.offset_delete import OFFSET_DELETE
from millstream.wire.kafka.messages.offset_fetch import OFFSET_FETCH
from millstream.wire.kafka.messages.offset_for_leader_epoch import OFFSET_FOR_LEADER_EPOCH
from millstream.wire.kafka.messages.produce import PRODUCE
from millstream.wire.kafka.messages.sasl_authenticate import SASL_AUTHENTICATE
from millstream.wire.kafka.messages.sasl_handshake import SASL_HANDSHAKE
from millstream.wire.kafka.messages.sync_group import SYNC_GROUP
from millstream.wire.kafka.messages.txn_offset_commit import TXN_OFFSET_COMMIT

__all__ = ["HANDLERS", "Handler", "Turn"]

Handle = Callable[[Call, Any], Any]
"""Takes a call and a request; returns the response, one that is pending, or None for no answer."""

_REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024
"""Bytes of a request that carries no batches. The largest of these, a leader's assignment for a group with tens of
thousands of partitions, has some MiB; decoded, a request takes up to some forty times its bytes in memory."""


class Turn(Enum):
    """Which requests of a connection are served after one that is under way; all are answered after it."""

    ALL = "all: they count on what it changes"
    OTHERS = "those of other APIs: its own kind keep their order by themselves, and may lie together on the disk"
    NONE = "none, but for `Call.effects`: else a produce has its place at once; fetches and groups may wait for them"


@dataclass(frozen=True, slots=True)
class Handler:
    """How one API is served.

    Args:
        api: its key, versions and messages.
        handle: serves a decoded request.
        advertised: the versions that clients are told of.
        request_bytes_max: bytes of a request at most, below the server's own limit; None for that limit.
        turn: which of the requests behind one that is under way are served after it.
    """

    api: Api
    handle: Handle
    advertised: range
    request_bytes_max: int | None = _REQUEST_BYTES_MAX
    turn: Turn = Turn.ALL

    @property
    def key(self) -> int:
        """The API's number."""
        return self.api.key


def _served(api: Api, handle: Handle, *, turn: Turn = Turn.ALL) -> Handler:
    return Handler(api, handle, api.versions, turn=turn)


def _table(*handlers: Handler) -> dict[int, Handler]:
    return {handler.key: handler for handler in handlers}


HANDLERS: Final[Mapping[int, Handler]] = _table(
    Handler(PRODUCE, produce.handle, PRODUCE.versions, request_bytes_max=None, turn=Turn.NONE),
    _served(FETCH, fetch.handle, turn=Turn.NONE),
    _served(LIST_OFFSETS, list_offsets.handle),
    _served(METADATA, metadata.handle),
    _served(OFFSET_COMMIT, offset_commit.handle, turn=Turn.OTHERS),
    _served(OFFSET_FETCH, offset_fetch.handle),
    _served(FIND_COORDINATOR, find_coordinator.handle),
    _served(JOIN_GROUP, join_group.handle, turn=Turn.NONE),
    _served(HEARTBEAT, heartbeat.handle),
    _served(LEAVE_GROUP, leave_group.handle),
    _served(SYNC_GROUP, sync_group.handle, turn=Turn.NONE),
    _served(DESCRIBE_GROUPS, describe_groups.handle),
    _served(LIST_GROUPS, list_groups.handle),
    _served(SASL_HANDSHAKE, sasl_handshake.handle),
    _served(API_VERSIONS, lambda call, request: answer_api_versions(HANDLERS.values(), call.version)),
    _served(CREATE_TOPICS, create_topics.handle),
    _served(DELETE_TOPICS, delete_topics.handle),
    _served(DELETE_RECORDS, delete_records.handle),
    # Version 6 belongs to a part of KIP-939 that Apache Kafka has not released.
    Handler(INIT_PRODUCER_ID, init_producer_id.handle, range(6)),
    _served(OFFSET_FOR_LEADER_EPOCH, offset_for_leader_epoch.handle),
    _served(ADD_PARTITIONS_TO_TXN, add_partitions_to_txn.handle),
    _served(ADD_OFFSETS_TO_TXN, add_offsets_to_txn.handle),
    _served(END_TXN, end_txn.handle),
    _served(TXN_OFFSET_COMMIT, txn_offset_commit.handle, turn=Turn.OTHERS),
    _served(DESCRIBE_ACLS, describe_acls.handle),
    _served(CREATE_ACLS, create_acls.handle),
    _served(DELETE_ACLS, delete_acls.handle),
    _served(DESCRIBE_CONFIGS, describe_configs.handle),
    _served(ALTER_CONFIGS, alter_configs.handle),
    _served(DESCRIBE_LOG_DIRS, describe_log_dirs.handle),
    _served(SASL_AUTHENTICATE, sasl_authenticate.handle),
    _served(CREATE_PARTITIONS, create_partitions.handle),
    _served(DELETE_GROUPS, delete_groups.handle),
    _served(INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs.handle),
    _served(OFFSET_DELETE, offset_delete.handle),
    _served(DESCRIBE_USER_SCRAM_CREDENTIALS, describe_user_scram_credentials.handle),
    _served(ALTER_USER_SCRAM_CREDENTIALS, alter_user_scram_credentials.handle),
    _served(DESCRIBE_CLUSTER, describe_cluster.handle),
    _served(DESCRIBE_PRODUCERS, describe_producers.handle),
    _served(DESCRIBE_TRANSACTIONS, describe_transactions.handle),
    _served(LIST_TRANSACTIONS, list_transactions.handle),
    _served(CONSUMER_GROUP_HEARTBEAT, consumer_group_heartbeat.handle),
    _served(CONSUMER_GROUP_DESCRIBE, consumer_group_describe.handle),
    _served(DESCRIBE_TOPIC_PARTITIONS, describe_topic_partitions.handle),
)
