"""OffsetDelete: version 0."""

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.any_group import AnyGroup
from millstream.broker.errors import GroupNotFound, SubscribedToTopic
from millstream.broker.offsets import Place
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.kafka.authorization import require, require_topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

__all__ = ["handle"]


def handle(call: Call, request: OffsetDeleteRequest) -> OffsetDeleteResponse | Pending[OffsetDeleteResponse]:
    """Delete a group's offsets in partitions of topics that none of its members subscribes to."""
    groups = call.broker.groups
    try:
        require(call, Operation.DELETE, ResourceType.GROUP, request.group_id)
    except MillstreamError as error:
        return OffsetDeleteResponse(error_code=code_of(error))
    group = groups.find(request.group_id)
    if group is None:
        return OffsetDeleteResponse(error_code=code_of(GroupNotFound("")))
    subscribed = _subscribed(group)
    response = OffsetDeleteResponse()
    places: list[Place] = []
    for asked in request.topics:
        topic = call.topic(asked.name)
        answered = OffsetDeleteResponseTopic(name=asked.name)
        response.topics.append(answered)
        for partition in asked.partitions:
            answer = OffsetDeleteResponsePartition(partition_index=partition.partition_index)
            answered.partitions.append(answer)
            try:
                require_topic(call, Operation.READ, topic, asked.name)
                call.partition(topic, partition.partition_index)
                if asked.name in subscribed:
                    raise SubscribedToTopic(f"the group subscribes to {asked.name}")
            except MillstreamError as error:
                answer.error_code = code_of(error)
                continue
            assert topic is not None
            places.append((topic.id, partition.partition_index))
    if not places:
        return response
    done = groups.delete_offsets(request.group_id, places)
    return done.settle(lambda _: response, lambda error: OffsetDeleteResponse(error_code=code_of(error)))


def _subscribed(group: AnyGroup) -> set[str]:
    return {name for member in group.members.values() for name in member.subscribed}
