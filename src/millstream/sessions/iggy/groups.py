"""The commands of consumer groups: get, list, create, delete, join, leave, sync."""

from millstream.broker.permissions import Action
from millstream.broker.topic_groups import TopicGroup
from millstream.model.pending import Pending
from millstream.sessions.iggy.call import Call, Place
from millstream.sessions.iggy.holders import PROTOCOL
from millstream.sessions.iggy.names import check_name
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.kinds import Identifier
from millstream.wire.iggy.messages.groups import (
    CreateGroup,
    GroupAssignment,
    GroupDetails,
    GroupInfo,
    GroupList,
    GroupMember,
    GroupReply,
    GroupRequest,
)
from millstream.wire.iggy.messages.system import Empty
from millstream.wire.iggy.messages.topics import TopicRequest

__all__ = ["create", "delete", "get", "get_all", "join", "leave", "sync"]


def _place(call: Call, stream: Identifier, topic: Identifier) -> Place:
    place = call.place(stream, topic)
    call.permit(Action.READ_TOPIC, place.stream.number, place.number)
    return place


def _info(place: Place, group: TopicGroup) -> GroupInfo:
    return GroupInfo(
        id=group.number,
        partitions_count=len(place.topic.partitions),
        members_count=len(group.sharing),
        name=group.name,
    )


def get(call: Call, request: GroupRequest) -> GroupDetails:
    """A group, its members and their partitions."""
    place = _place(call, request.stream, request.topic)
    group = call.group(place, request.group)
    members = [GroupMember(id=key, partitions=mine) for key, mine in group.sharing.assignments().items()]
    return GroupDetails(group=_info(place, group), members=members)


def get_all(call: Call, request: TopicRequest) -> GroupList:
    """The groups of a topic."""
    place = _place(call, request.stream, request.topic)
    return GroupList(groups=[_info(place, group) for group in call.shared.groups.of_topic(place.topic)])


def create(call: Call, request: CreateGroup) -> Pending[GroupReply]:
    """Make a group. In dialect A it is named by its number."""
    place = _place(call, request.stream, request.topic)
    if request.group_id == -1:
        raise Refused(ErrorCode.INVALID_CONSUMER_GROUP_ID, "group 0")
    name = request.name
    if call.dialect is Dialect.A and request.group_id is not None:
        name = str(request.group_id + 1)
    check_name(name, ErrorCode.INVALID_CONSUMER_GROUP_NAME)
    group, stored = call.shared.groups.create(place.topic, name, request.group_id)
    return stored.then(lambda _: GroupReply(group=_info(place, group)))


def delete(call: Call, request: GroupRequest) -> Pending[Empty]:
    """Delete a group and its offsets in this topic."""
    place = _place(call, request.stream, request.topic)
    group = call.group(place, request.group)
    places = [(place.topic.id, partition.index) for partition in place.topic.partitions]
    for client in call.shared.clients.values():
        if group in client.groups:
            client.groups.remove(group)
    deleted = call.shared.groups.delete(group)
    return deleted.chain(lambda _: call.shared.positions.delete(group.name, places)).then(lambda _: Empty())


def join(call: Call, request: GroupRequest) -> Empty | Pending[Empty]:
    """Become a member. From dialect C3 on the others keep what is not the newcomer's share."""
    place = _place(call, request.stream, request.topic)
    group = call.group(place, request.group)
    call.broker.holders.check(group.name, [place.topic], PROTOCOL)
    group.sharing.join(call.client.id, cooperative=call.dialect >= Dialect.C3)
    if group not in call.client.groups:
        call.client.groups.append(group)
    at_rest = call.broker.holders.at_rest(group.name, PROTOCOL)
    return Empty() if at_rest is None else at_rest.then(lambda _: Empty())


def leave(call: Call, request: GroupRequest) -> Empty:
    """Be a member no more."""
    group = call.group(_place(call, request.stream, request.topic), request.group)
    if not group.sharing.leave(call.client.id):
        raise Refused(ErrorCode.CONSUMER_GROUP_MEMBER_NOT_FOUND, f"not a member of {group.name}")
    if group in call.client.groups:
        call.client.groups.remove(group)
    return Empty()


def sync(call: Call, request: GroupRequest) -> GroupAssignment:
    """What is this member's to poll."""
    group = call.group(_place(call, request.stream, request.topic), request.group)
    return GroupAssignment(generation=group.sharing.generation, partitions=group.sharing.assigned(call.client.id))
