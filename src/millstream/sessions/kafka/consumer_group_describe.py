"""ConsumerGroupDescribe: versions 0 and 1. From 1 on members say which protocol they use.

Every group asked for gets an entry: librdkafka aborts on an empty list. Where clients of another protocol read under
the group's name as well, they are shown as members of unknown type.
"""

from collections.abc import Iterable
from enum import IntEnum

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.any_group import GroupState
from millstream.broker.consumer_groups import ConsumerGroup, ConsumerMember
from millstream.broker.holders import Holder
from millstream.broker.offsets import Place
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka import authorized_operations
from millstream.sessions.kafka.authorization import require
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.consumer_partitions import by_topic
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.holders import PROTOCOL, assignors, by_client
from millstream.wire.kafka.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedAssignment,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedPartitions,
)

__all__ = ["handle"]


class MemberType(IntEnum):
    """The protocol that a member uses, by Kafka's numbers."""

    UNKNOWN = -1
    CLASSIC = 0
    CONSUMER = 1


def handle(call: Call, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    """Describe consumer groups and their members."""
    response = ConsumerGroupDescribeResponse()
    for group_id in dict.fromkeys(request.group_ids):
        try:
            require(call, Operation.DESCRIBE, ResourceType.GROUP, group_id)
            described = _described(call, call.broker.groups.consumer_group(group_id))
        except MillstreamError as error:
            described = DescribedConsumerGroup(group_id=group_id, error_code=code_of(error), error_message=str(error))
        if request.include_authorized_operations and not described.error_code:
            described.authorized_operations = authorized_operations.of_group(call, group_id)
        response.groups.append(described)
    return response


def _described(call: Call, group: ConsumerGroup) -> DescribedConsumerGroup:
    for name in sorted({name for member in group.members.values() for name in member.subscribed}):
        require(call, Operation.DESCRIBE, ResourceType.TOPIC, name)
    others = call.broker.holders.of(group.id, besides=PROTOCOL)
    state = GroupState.STABLE if others and not group.members else group.state
    return DescribedConsumerGroup(
        group_id=group.id,
        group_state=state.value,
        group_epoch=group.roster.epoch,
        assignment_epoch=group.roster.target_epoch,
        assignor_name=assignors(group.roster.assignor if group.members or not others else "", others),
        members=[*(_member(call, member) for member in group.members.values()), *_others(call, others)],
    )


def _member(call: Call, member: ConsumerMember) -> DescribedConsumer:
    return DescribedConsumer(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.pattern.text or None,
        assignment=_assignment(call, member.assigned),
        target_assignment=_assignment(call, member.target),
        member_type=MemberType.CONSUMER if member.classic is None else MemberType.CLASSIC,
    )


def _assignment(call: Call, places: Iterable[Place]) -> DescribedAssignment:
    named = ((call.broker.topics.by_id(topic_id), indexes) for topic_id, indexes in by_topic(places).items())
    return DescribedAssignment(
        topic_partitions=[
            DescribedPartitions(topic_id=topic.id, topic_name=topic.name.flat, partitions=indexes)
            for topic, indexes in named
            if topic is not None
        ]
    )


def _others(call: Call, holders: Iterable[Holder]) -> Iterable[DescribedConsumer]:
    for client, partitions in by_client(holders).items():
        named = ((call.topic(name), indexes) for name, indexes in partitions.items())
        read = _assignment(call, [(topic.id, index) for topic, indexes in named if topic for index in indexes])
        yield DescribedConsumer(
            member_id=client.member_id,
            client_id=client.client_id,
            client_host=client.client_host,
            subscribed_topic_names=sorted(partitions),
            assignment=read,
            target_assignment=read,
            member_type=MemberType.UNKNOWN,
        )
