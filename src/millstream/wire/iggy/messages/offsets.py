"""Stored offsets of consumers."""

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.kinds import (
    CONSUMER,
    ID,
    IDENT,
    OPTIONAL_PARTITION,
    U8,
    U64,
    Consumer,
    Identifier,
)
from millstream.wire.iggy.layout import field, message

__all__ = ["DeleteOffset", "GetOffset", "OffsetInfo", "StoreOffset"]


@message
class GetOffset:
    """GET_CONSUMER_OFFSET."""

    consumer: Consumer = field(CONSUMER)
    stream: Identifier = field(IDENT)
    topic: Identifier = field(IDENT)
    partition: int | None = field(OPTIONAL_PARTITION)


@message
class StoreOffset:
    """STORE_CONSUMER_OFFSET: of the last message that is done with. `ack` is 0 for none, 1 for a quorum."""

    consumer: Consumer = field(CONSUMER)
    stream: Identifier = field(IDENT)
    topic: Identifier = field(IDENT)
    partition: int | None = field(OPTIONAL_PARTITION)
    offset: int = field(U64)
    ack: int = field(U8, since=Dialect.D, default=1)


@message
class DeleteOffset:
    """DELETE_CONSUMER_OFFSET."""

    consumer: Consumer = field(CONSUMER)
    stream: Identifier = field(IDENT)
    topic: Identifier = field(IDENT)
    partition: int | None = field(OPTIONAL_PARTITION)
    ack: int = field(U8, since=Dialect.D, default=1)


@message
class OffsetInfo:
    """The answer to GET_CONSUMER_OFFSET."""

    partition: int = field(ID)
    current_offset: int = field(U64)
    stored_offset: int = field(U64)
