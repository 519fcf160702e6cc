"""Every error that a request can meet has a code of its own kind."""

from collections.abc import Iterator

import pytest

from millstream.broker import errors as broker_errors
from millstream.model.errors import IoFailed, MillstreamError
from millstream.sessions.kafka import errors as session_errors
from millstream.sessions.kafka.error_table import code_of
from millstream.storage import errors as storage_errors
from millstream.storage import metadata
from millstream.wire import compression
from millstream.wire.errors import WireError
from millstream.wire.kafka import errors as wire_errors
from millstream.wire.kafka.error_codes import ErrorCode

MODULES = {
    module.__name__ for module in (broker_errors, session_errors, storage_errors, metadata, wire_errors, compression)
}
BASES = {
    broker_errors.BrokerError,
    broker_errors.TopicError,
    broker_errors.AppendRefused,
    broker_errors.GroupError,
    storage_errors.StorageError,
    storage_errors.ProducerError,
    WireError,
    wire_errors.InvalidBatch,
}
"""Never raised themselves."""
NEVER_ANSWERED = {
    broker_errors.ProducerError,  # producers of Kafka do not stay connected to a partition
    broker_errors.ProducerBusy,
    broker_errors.ProducerFenced,
    broker_errors.ProducersHeld,
    broker_errors.ProducersRefused,
    storage_errors.DataDirectoryInUse,  # before there are any clients
    storage_errors.DataDirectoryUnusable,
    wire_errors.MalformedMessage,  # the connection is closed
    wire_errors.Unanswerable,  # likewise
    compression.CompressionError,  # `check_batch` turns it into CorruptBatch
}


def error_classes(base: type[MillstreamError] = MillstreamError) -> Iterator[type[MillstreamError]]:
    for cls in base.__subclasses__():
        if cls.__module__ in MODULES:
            yield cls
        yield from error_classes(cls)


def raised(cls: type[MillstreamError]) -> MillstreamError:
    return cls("text")


ANSWERED = [cls for cls in error_classes() if cls not in BASES | NEVER_ANSWERED]


@pytest.mark.parametrize("cls", ANSWERED, ids=lambda cls: cls.__name__)
def test_every_error_has_a_code(cls: type[MillstreamError]) -> None:
    assert code_of(raised(cls)) not in {ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE}


def test_bases_are_not_raised_and_have_subclasses() -> None:
    for base in BASES:
        assert [cls for cls in error_classes() if base in cls.__mro__[1:]]


def test_few_errors_share_a_code() -> None:
    codes: dict[ErrorCode, list[str]] = {}
    for cls in ANSWERED:
        codes.setdefault(code_of(raised(cls)), []).append(cls.__name__)
    shared = {code: names for code, names in codes.items() if len(names) > 1}
    assert shared == {
        ErrorCode.KAFKA_STORAGE_ERROR: ["DiskFull", "LogFailed", "MetadataFailed"],
        ErrorCode.INVALID_REQUEST: ["InvalidResource", "InvalidHeartbeat"],
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL: ["InconsistentProtocol", "GroupHeld"],
    }


def test_what_the_operating_system_refuses_is_a_storage_error() -> None:
    for error in (OSError(5, "Input/output error"), FileNotFoundError(2, "x"), IoFailed("x")):
        assert code_of(error) == ErrorCode.KAFKA_STORAGE_ERROR


def test_an_error_that_nobody_has_put_in_the_table_is_unknown() -> None:
    class Unheard(MillstreamError):
        pass

    assert code_of(Unheard("x")) == ErrorCode.UNKNOWN_SERVER_ERROR
