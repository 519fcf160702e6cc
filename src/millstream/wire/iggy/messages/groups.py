"""Consumer groups. Dialect A knows them by number alone."""

from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.kinds import (
    ID,
    IDENT,
    NAME,
    OPTIONAL_ID,
    U32,
    U64,
    Counted,
    Identifier,
    Struct,
    ToEnd,
)
from millstream.wire.iggy.layout import Codec, field, message

__all__ = [
    "CreateGroup",
    "GroupAssignment",
    "GroupDetails",
    "GroupInfo",
    "GroupList",
    "GroupMember",
    "GroupReply",
    "GroupRequest",
]


class _GroupIdent:
    """A group: an identifier, or a u32 in dialect A."""

    def codec(self, dialect: Dialect) -> Codec[Identifier]:
        if dialect is not Dialect.A:
            return IDENT.codec(dialect)
        number = ID.codec(dialect)

        def write(value: Identifier, out: bytearray) -> None:
            assert isinstance(value, int), "dialect A knows no names of groups"
            number.write(value, out)

        return Codec(number.read, write)


GROUP_IDENT = _GroupIdent()


@message
class GroupRequest:
    """GET, DELETE, JOIN, LEAVE and SYNC_CONSUMER_GROUP."""

    stream: Identifier = field(IDENT)
    topic: Identifier = field(IDENT)
    group: Identifier = field(GROUP_IDENT)


@message
class CreateGroup:
    """CREATE_CONSUMER_GROUP. `group_id` None leaves the number to the server."""

    stream: Identifier = field(IDENT)
    topic: Identifier = field(IDENT)
    group_id: int | None = field(OPTIONAL_ID, until=Dialect.C1, default=None)
    name: str = field(NAME, since=Dialect.B1, default="")


@message
class GroupInfo:
    """A group in an answer."""

    id: int = field(ID)
    partitions_count: int = field(U32)
    members_count: int = field(U32)
    name: str = field(NAME, since=Dialect.B1, default="")


@message
class GroupMember:
    """A member of a group, and the partitions that are its to poll."""

    id: int = field(U32)
    partitions: list[int] = field(Counted(ID))


@message
class GroupDetails:
    """The answer to GET_CONSUMER_GROUP."""

    group: GroupInfo = field(Struct(GroupInfo))
    members: list[GroupMember] = field(ToEnd(Struct(GroupMember)), default=list)


@message
class GroupReply:
    """The answer to CREATE_CONSUMER_GROUP; before dialect B3 it was empty, and clients since then want it."""

    group: GroupInfo | None = field(Struct(GroupInfo), since=Dialect.B3, default=None)


@message
class GroupList:
    """The answer to GET_CONSUMER_GROUPS."""

    groups: list[GroupInfo] = field(ToEnd(Struct(GroupInfo)), default=list)


@message
class GroupAssignment:
    """The answer to SYNC_CONSUMER_GROUP: what is the asking member's to poll."""

    generation: int = field(U64)
    partitions: list[int] = field(Counted(ID))
