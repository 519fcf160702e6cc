"""The error codes of what goes wrong below the sessions."""

from collections.abc import Callable, Mapping
from typing import Final

from millstream.broker import errors as broker_errors
from millstream.broker import namespaces, streams, topic_groups, users
from millstream.model.errors import IoFailed, MillstreamError
from millstream.storage import errors as storage_errors
from millstream.storage.metadata import MetadataFailed
from millstream.wire.compression import CompressionError
from millstream.wire.errors import WireError
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused

__all__ = ["code_of"]


def _stream_exists(error: MillstreamError) -> ErrorCode:
    by_number = isinstance(error, streams.StreamExists) and error.by_number
    return ErrorCode.STREAM_ID_ALREADY_EXISTS if by_number else ErrorCode.STREAM_NAME_ALREADY_EXISTS


def _group_exists(error: MillstreamError) -> ErrorCode:
    if isinstance(error, topic_groups.GroupExists) and error.by_number:
        return ErrorCode.CONSUMER_GROUP_ID_ALREADY_EXISTS
    return ErrorCode.CONSUMER_GROUP_NAME_ALREADY_EXISTS


_CODES: Final[Mapping[type[BaseException], ErrorCode | Callable[[MillstreamError], ErrorCode]]] = {
    streams.StreamExists: _stream_exists,
    streams.UnknownStream: ErrorCode.STREAM_ID_NOT_FOUND,
    namespaces.InvalidNamespaceName: ErrorCode.INVALID_STREAM_NAME,
    namespaces.NamespaceExists: ErrorCode.STREAM_NAME_ALREADY_EXISTS,
    streams.TopicNumberTaken: ErrorCode.TOPIC_ID_ALREADY_EXISTS,
    broker_errors.TopicExists: ErrorCode.TOPIC_NAME_ALREADY_EXISTS,
    broker_errors.UnknownTopic: ErrorCode.TOPIC_ID_NOT_FOUND,
    broker_errors.InvalidTopicName: ErrorCode.INVALID_TOPIC_NAME,
    broker_errors.InvalidPartitionCount: ErrorCode.TOO_MANY_PARTITIONS,
    broker_errors.InvalidConfig: ErrorCode.INVALID_OPTION_VALUE,
    broker_errors.BatchTooLarge: ErrorCode.TOO_BIG_MESSAGE_PAYLOAD,
    broker_errors.AppendRefused: ErrorCode.FEATURE_UNAVAILABLE,
    broker_errors.GroupHeld: ErrorCode.FEATURE_UNAVAILABLE,
    broker_errors.GroupNotFound: ErrorCode.CONSUMER_GROUP_ID_NOT_FOUND,
    broker_errors.UnknownMember: ErrorCode.CONSUMER_GROUP_MEMBER_NOT_FOUND,
    topic_groups.GroupExists: _group_exists,
    users.UnknownUser: ErrorCode.RESOURCE_NOT_FOUND,
    users.UserExists: ErrorCode.USER_ALREADY_EXISTS,
    users.UserInactive: ErrorCode.USER_INACTIVE,
    users.WrongPassword: ErrorCode.INVALID_CREDENTIALS,
    users.InvalidToken: ErrorCode.INVALID_PERSONAL_ACCESS_TOKEN,
    users.TokenExpired: ErrorCode.PERSONAL_ACCESS_TOKEN_EXPIRED,
    users.TokenExists: ErrorCode.PERSONAL_ACCESS_TOKEN_ALREADY_EXISTS,
    users.TooManyTokens: ErrorCode.PERSONAL_ACCESS_TOKENS_LIMIT_REACHED,
    users.CannotChangeRoot: ErrorCode.CANNOT_DELETE_USER,
    storage_errors.OffsetOutOfRange: ErrorCode.INVALID_OFFSET,
    storage_errors.StorageError: ErrorCode.ERROR,
    MetadataFailed: ErrorCode.ERROR,
    IoFailed: ErrorCode.ERROR,
    OSError: ErrorCode.ERROR,
    CompressionError: ErrorCode.ERROR,
    WireError: ErrorCode.ERROR,
    MillstreamError: ErrorCode.ERROR,
}


def code_of(error: MillstreamError | OSError) -> ErrorCode:
    """The code of an error: that of its class, or of the nearest class above it."""
    if isinstance(error, Refused):
        return error.code
    for cls in type(error).__mro__:
        found = _CODES.get(cls)
        if found is not None:
            return found if isinstance(found, ErrorCode) else found(error)  # type: ignore[arg-type]  # never an OSError
    return ErrorCode.ERROR
