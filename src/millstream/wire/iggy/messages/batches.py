"""Sending and polling. The messages themselves are taken apart in `millstream.wire.iggy.batches`."""

from enum import IntEnum

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.kinds import (
    BOOL,
    CONSUMER,
    ID,
    IDENT,
    OPTIONAL_PARTITION,
    PARTITIONING,
    REST,
    U8,
    U32,
    U64,
    Consumer,
    Counted,
    Identifier,
    Partitioning,
    Struct,
)
from millstream.wire.iggy.layout import field, message

__all__ = [
    "Archive",
    "FlushBuffer",
    "Placed",
    "PollMessages",
    "PolledMessages",
    "SendMessages",
    "SendReply",
    "Strategy",
]


class Strategy(IntEnum):
    """Where a poll begins: at an offset, at a time in microseconds, at the first message, with the last n, behind
    what is stored."""

    OFFSET = 1
    TIMESTAMP = 2
    FIRST = 3
    LAST = 4
    NEXT = 5


@message
class PollMessages:
    """POLL_MESSAGES; `strategy` is a `Strategy`, if it is any."""

    consumer: Consumer = field(CONSUMER)
    stream: Identifier = field(IDENT)
    topic: Identifier = field(IDENT)
    partition: int | None = field(OPTIONAL_PARTITION)
    strategy: int = field(U8)
    value: int = field(U64)
    count: int = field(U32)
    auto_commit: bool = field(BOOL)


@message
class PolledMessages:
    """The head of the answer to POLL_MESSAGES, and the messages in the dialect's own layout."""

    partition: int = field(ID)
    current_offset: int = field(U64)
    count: int = field(U32)
    messages: memoryview = field(REST)


@message
class SendMessages:
    """SEND_MESSAGES. From dialect C1 on the metadata has a length, which counts the fields up to `count` and that."""

    metadata_bytes: int = field(U32, since=Dialect.C1, default=0)
    stream: Identifier = field(IDENT)
    topic: Identifier = field(IDENT)
    partitioning: Partitioning = field(PARTITIONING)
    count: int = field(U32, since=Dialect.C1, default=0)
    messages: memoryview = field(REST)


@message
class Placed:
    """Where a batch was put, with numbers that are the same in every dialect that has them."""

    stream: int = field(ID)
    topic: int = field(ID)
    partition: int = field(ID)
    base_offset: int = field(U64)


@message
class SendReply:
    """The answer to SEND_MESSAGES; before dialect D it was empty."""

    placed: list[Placed] = field(Counted(Struct(Placed)), since=Dialect.D0, default=list)


@message
class FlushBuffer:
    """FLUSH_UNSAVED_BUFFER."""

    stream: Identifier = field(IDENT)
    topic: Identifier = field(IDENT)
    partition: int = field(ID)
    fsync: bool = field(BOOL)


@message
class Archive:
    """The answer to GET_SNAPSHOT: a ZIP archive."""

    content: memoryview = field(REST)
