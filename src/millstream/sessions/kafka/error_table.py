"""Which Kafka error code each of our errors is answered with: the one table."""

from collections.abc import Mapping
from typing import Final

from millstream.broker import authorizer, transactions
from millstream.broker import errors as broker
from millstream.broker.acl import InvalidAcl
from millstream.broker.credentials import UnacceptableCredential, UnknownCredential
from millstream.model.errors import IoFailed, MillstreamError
from millstream.sessions.kafka.errors import (
    InvalidAssignment,
    InvalidHeartbeat,
    InvalidPattern,
    InvalidReplicationFactor,
    InvalidResource,
    SecurityDisabled,
)
from millstream.storage import errors as storage
from millstream.storage.metadata import MetadataFailed
from millstream.wire.kafka import errors as wire
from millstream.wire.kafka.error_codes import ErrorCode

__all__ = ["Refusal", "code_of"]

_CODES: Final[Mapping[type[Exception], ErrorCode]] = {
    broker.UnknownTopic: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    broker.TopicExists: ErrorCode.TOPIC_ALREADY_EXISTS,
    broker.InvalidTopicName: ErrorCode.INVALID_TOPIC_EXCEPTION,
    broker.InvalidPartitionCount: ErrorCode.INVALID_PARTITIONS,
    broker.InvalidConfig: ErrorCode.INVALID_CONFIG,
    broker.BatchTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    broker.InvalidTimestamp: ErrorCode.INVALID_TIMESTAMP,
    broker.NotEnoughReplicas: ErrorCode.NOT_ENOUGH_REPLICAS,
    broker.TopicTerminated: ErrorCode.POLICY_VIOLATION,
    broker.InvalidGroupId: ErrorCode.INVALID_GROUP_ID,
    broker.UnknownMember: ErrorCode.UNKNOWN_MEMBER_ID,
    broker.MemberIdRequired: ErrorCode.MEMBER_ID_REQUIRED,
    broker.FencedInstance: ErrorCode.FENCED_INSTANCE_ID,
    broker.UnreleasedInstance: ErrorCode.UNRELEASED_INSTANCE_ID,
    broker.IllegalGeneration: ErrorCode.ILLEGAL_GENERATION,
    broker.FencedEpoch: ErrorCode.FENCED_MEMBER_EPOCH,
    broker.StaleEpoch: ErrorCode.STALE_MEMBER_EPOCH,
    broker.UnsupportedAssignor: ErrorCode.UNSUPPORTED_ASSIGNOR,
    broker.RebalanceInProgress: ErrorCode.REBALANCE_IN_PROGRESS,
    broker.InconsistentProtocol: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    broker.InvalidSessionTimeout: ErrorCode.INVALID_SESSION_TIMEOUT,
    broker.GroupFull: ErrorCode.GROUP_MAX_SIZE_REACHED,
    broker.GroupNotEmpty: ErrorCode.NON_EMPTY_GROUP,
    broker.GroupHeld: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    broker.GroupNotFound: ErrorCode.GROUP_ID_NOT_FOUND,
    broker.GroupsClosed: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    broker.SubscribedToTopic: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    broker.NoteTooLarge: ErrorCode.OFFSET_METADATA_TOO_LARGE,
    authorizer.TopicNotAuthorized: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    authorizer.GroupNotAuthorized: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    authorizer.ClusterNotAuthorized: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    authorizer.TransactionalIdNotAuthorized: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    transactions.InvalidTransactionalId: ErrorCode.INVALID_REQUEST,
    transactions.InvalidTransactionTimeout: ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    transactions.InvalidTransactionState: ErrorCode.INVALID_TXN_STATE,
    transactions.UnknownTransactionalId: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    transactions.StaleTransactionalEpoch: ErrorCode.PRODUCER_FENCED,
    transactions.TransactionChanging: ErrorCode.CONCURRENT_TRANSACTIONS,
    transactions.TooManyTransactions: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    transactions.TransactionTooLarge: ErrorCode.POLICY_VIOLATION,
    storage.OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    storage.OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    storage.StaleProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    storage.DiskFull: ErrorCode.KAFKA_STORAGE_ERROR,
    storage.LogFailed: ErrorCode.KAFKA_STORAGE_ERROR,
    MetadataFailed: ErrorCode.KAFKA_STORAGE_ERROR,
    UnacceptableCredential: ErrorCode.UNACCEPTABLE_CREDENTIAL,
    UnknownCredential: ErrorCode.RESOURCE_NOT_FOUND,
    SecurityDisabled: ErrorCode.SECURITY_DISABLED,
    InvalidAcl: ErrorCode.INVALID_REQUEST,
    InvalidResource: ErrorCode.INVALID_REQUEST,
    InvalidReplicationFactor: ErrorCode.INVALID_REPLICATION_FACTOR,
    InvalidHeartbeat: ErrorCode.INVALID_REQUEST,
    InvalidPattern: ErrorCode.INVALID_REGULAR_EXPRESSION,
    InvalidAssignment: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    IoFailed: ErrorCode.KAFKA_STORAGE_ERROR,
    OSError: ErrorCode.KAFKA_STORAGE_ERROR,
    wire.CorruptBatch: ErrorCode.CORRUPT_MESSAGE,
    wire.UnsupportedCodec: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    wire.InvalidRecords: ErrorCode.INVALID_RECORD,
}

Refusal = MillstreamError | OSError
"""What a handler may answer with a code; anything else is a fault of ours and is loud."""


def code_of(error: Refusal) -> ErrorCode:
    """The code for an error, by its class or the nearest one it derives from."""
    for cls in type(error).__mro__:
        code = _CODES.get(cls)
        if code is not None:
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR
