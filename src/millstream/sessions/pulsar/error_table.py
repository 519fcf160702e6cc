"""Which Pulsar error each of our errors is answered with: the one table.

Real clients retry some of these until their operation times out (ServiceNotReady, MetadataError, TooManyRequests and
UnknownError among them), and tell others at once: refusals that will not go away use the latter.
"""

from collections.abc import Mapping
from typing import Final

from millstream.broker import errors as broker
from millstream.broker import namespaces, schemas, subscriptions, transactions
from millstream.model.errors import IoFailed, MillstreamError
from millstream.sessions.pulsar import errors
from millstream.storage import errors as storage
from millstream.storage.metadata import MetadataFailed
from millstream.wire.pulsar import errors as wire
from millstream.wire.pulsar.pulsar_pb2 import ServerError

__all__ = ["Refusal", "code_of"]

_CODES: Final[Mapping[type[Exception], ServerError]] = {
    broker.UnknownTopic: ServerError.TopicNotFound,
    broker.TopicExists: ServerError.NotAllowedError,
    broker.InvalidTopicName: ServerError.InvalidTopicName,
    broker.InvalidPartitionCount: ServerError.NotAllowedError,
    broker.TopicTerminated: ServerError.TopicTerminatedError,
    broker.ProducerBusy: ServerError.ProducerBusy,
    broker.ProducersHeld: ServerError.ProducerBlockedQuotaExceededError,
    broker.ProducersRefused: ServerError.ProducerBlockedQuotaExceededException,
    broker.ProducerFenced: ServerError.ProducerFenced,
    namespaces.UnknownTenant: ServerError.TopicNotFound,
    namespaces.UnknownNamespace: ServerError.TopicNotFound,
    schemas.SchemaError: ServerError.IncompatibleSchema,
    schemas.UnknownSchema: ServerError.TopicNotFound,
    broker.GroupHeld: ServerError.ConsumerBusy,
    broker.AppendRefused: ServerError.NotAllowedError,
    subscriptions.ConsumerBusy: ServerError.ConsumerBusy,
    subscriptions.KindMismatch: ServerError.ConsumerBusy,
    subscriptions.SubscriptionInUse: ServerError.ConsumerBusy,
    subscriptions.KeyRangesTaken: ServerError.ConsumerAssignError,
    subscriptions.PolicyMismatch: ServerError.ConsumerAssignError,
    subscriptions.SubscriptionNotFound: ServerError.SubscriptionNotFound,
    subscriptions.SubscriptionGone: ServerError.ServiceNotReady,
    subscriptions.AcknowledgementConflict: ServerError.TransactionConflict,
    transactions.TransactionNotFound: ServerError.TransactionNotFound,
    transactions.InvalidTransactionState: ServerError.InvalidTxnStatus,
    transactions.TransactionError: ServerError.NotAllowedError,
    storage.DiskFull: ServerError.PersistenceError,
    storage.LogFailed: ServerError.PersistenceError,
    MetadataFailed: ServerError.MetadataError,
    errors.NotAllowed: ServerError.NotAllowedError,
    errors.NotAuthenticated: ServerError.AuthenticationError,
    errors.NotReady: ServerError.ServiceNotReady,
    errors.ConsumerNotFound: ServerError.ConsumerNotFound,
    errors.TooManyConsumers: ServerError.ConsumerBusy,
    errors.CoordinatorNotFound: ServerError.TransactionCoordinatorNotFound,
    errors.MessageUnknown: ServerError.ServiceNotReady,
    errors.UnknownListener: ServerError.ServiceNotReady,
    IoFailed: ServerError.PersistenceError,
    OSError: ServerError.PersistenceError,
    wire.ChecksumMismatch: ServerError.ChecksumError,
    wire.InvalidEntry: ServerError.NotAllowedError,
}

Refusal = MillstreamError | OSError
"""What a handler may answer with a code; anything else is a fault of ours and is loud."""


def code_of(error: Refusal) -> ServerError:
    """The code for an error, by its class or the nearest one it derives from."""
    for cls in type(error).__mro__:
        code = _CODES.get(cls)
        if code is not None:
            return code
    return ServerError.UnknownError
