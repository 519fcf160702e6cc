"""Who reads: a single consumer or a member of a group; which partition that is, and how far it has come.

A stored offset is that of the last message that is done with; what is kept is the offset behind it, under a name that
it shares with groups of other protocols.
"""

from dataclasses import dataclass

import xxhash

from millstream.broker.errors import UnknownMember
from millstream.broker.offsets import Place as OffsetPlace
from millstream.broker.partition import Partition
from millstream.broker.topic_groups import TopicGroup
from millstream.model.pending import Pending
from millstream.sessions.iggy.call import Call, Place
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.kinds import Consumer

__all__ = ["Reader", "consumer_name", "reader_of"]


@dataclass(frozen=True, slots=True)
class Reader:
    """A consumer at a partition.

    Args:
        name: under which its offsets are kept.
        place: where.
        partition: that partition.
        group: the group, None for a single consumer.
    """

    name: str
    place: OffsetPlace
    partition: Partition
    group: TopicGroup | None

    def next_offset(self, call: Call) -> int:
        """The offset of the next message for it: behind the stored one, or the first there is."""
        position = call.shared.positions.get(self.name, self.place)
        return self.partition.log.start_offset if position is None else position

    def stored_offset(self, call: Call) -> int | None:
        """The stored offset; None if nothing is stored."""
        position = call.shared.positions.get(self.name, self.place)
        return position - 1 if position else None

    def store(self, call: Call, offset: int) -> Pending[None]:
        """Store an offset; seen at once."""
        stored = call.shared.positions.put(self.name, self.place, offset + 1)
        if self.group is not None:
            self.group.sharing.committed(self.partition.index, offset)
        return stored


def consumer_name(consumer: Consumer) -> str:
    """The name under which the offsets of a single consumer are kept: by its number, to which a name is hashed."""
    number = consumer.id if isinstance(consumer.id, int) else xxhash.xxh32_intdigest(consumer.id.encode())
    return f"consumer:{number}"


def reader_of(call: Call, place: Place, consumer: Consumer, partition: int | None, *, polls: bool) -> Reader | None:
    """Find out who reads what.

    Args:
        call: the request.
        place: the topic.
        consumer: as the client names it.
        partition: as the client names it, None for none.
        polls: whether it is about to poll, so that a member's turn goes on to its next partition.

    Returns:
        None for a member of a group that has no partition.

    Raises:
        Refused: there is no such group or partition, or it is not the client's to read.
    """
    if not consumer.in_group:
        index = partition or 0
        found = call.partition(place, index)
        return Reader(consumer_name(consumer), (place.topic.id, index), found, None)
    group = call.group(place, consumer.id)
    member_id = call.client.id
    sharing = group.sharing
    try:
        if call.dialect.long_headers and partition is not None:
            # From dialect D on a member knows its partitions, and names the one it polls.
            if polls and not sharing.owns(member_id, partition):
                raise Refused(ErrorCode.CONSUMER_GROUP_PARTITION_NOT_OWNED, f"partition {partition} of {group.name}")
            chosen: int | None = partition
        elif call.dialect.has_login and partition is not None:
            chosen = partition
        elif polls:
            chosen = sharing.next_partition(member_id)
        else:
            chosen = sharing.current_partition(member_id)
    except UnknownMember:
        raise Refused(ErrorCode.CONSUMER_GROUP_MEMBER_NOT_FOUND, f"not a member of {group.name}") from None
    if chosen is None:
        return None
    return Reader(group.name, (place.topic.id, chosen), call.partition(place, chosen), group)
