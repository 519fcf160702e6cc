"""ConsumerGroupHeartbeat: versions 0 and 1. From 1 on members choose their ids, and may subscribe by a pattern."""

import logging
from base64 import urlsafe_b64encode
from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.consumer_groups import Heartbeat, Reply, TopicPattern
from millstream.broker.errors import GroupHeld
from millstream.broker.offsets import Place
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.kafka.authorization import require
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.consumer_partitions import by_topic
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.errors import InvalidHeartbeat
from millstream.sessions.kafka.holders import PROTOCOL
from millstream.sessions.kafka.topic_pattern import TopicPatterns, topic_pattern
from millstream.wire.kafka.messages.consumer_group_heartbeat import (
    AssignedPartitions,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
)

__all__ = ["handle"]

_log = logging.getLogger(__name__)
_OWN_ID_SINCE: Final = 1
_JOIN: Final = 0
_LEAVE: Final = -1
_LEAVE_FOR_A_WHILE: Final = -2
_UNCHANGED_MS: Final = -1


def handle(
    call: Call, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Pending[ConsumerGroupHeartbeatResponse]:
    """Join a consumer group, stay in it, or leave it."""
    try:
        require(call, Operation.READ, ResourceType.GROUP, request.group_id)
        _check(call.version, request)
        if request.member_epoch < _JOIN:
            return _depart(call, request)
        for name in request.subscribed_topic_names or ():
            require(call, Operation.DESCRIBE, ResourceType.TOPIC, name)
        pattern = topic_pattern(call, request.subscribed_topic_regex)
        _check_holders(call, request, pattern)
        reply = call.broker.groups.beat(request.group_id, _heartbeat(call, request, pattern))
    except MillstreamError as error:
        return ConsumerGroupHeartbeatResponse(error_code=code_of(error), error_message=str(error))
    answer = reply.then(_answer)
    at_rest = call.broker.holders.at_rest(request.group_id, PROTOCOL) if request.member_epoch == _JOIN else None
    return answer if at_rest is None else at_rest.chain(lambda _: answer)


def _check(version: int, request: ConsumerGroupHeartbeatRequest) -> None:
    """Check that a request says what it must.

    Raises:
        InvalidHeartbeat: it does not.
    """
    epoch = request.member_epoch
    if (version >= _OWN_ID_SINCE or epoch not in {_JOIN, _LEAVE_FOR_A_WHILE}) and not request.member_id.strip():
        raise InvalidHeartbeat("a member has an id")
    for name, text in (("group", request.group_id), ("instance", request.instance_id), ("rack", request.rack_id)):
        if text is not None and not text.strip():
            raise InvalidHeartbeat(f"the id of the {name} is empty")
    if epoch < _LEAVE_FOR_A_WHILE:
        raise InvalidHeartbeat(f"there is no epoch {epoch}")
    if epoch == _LEAVE_FOR_A_WHILE and request.instance_id is None:
        raise InvalidHeartbeat("only static members leave for a while")
    if epoch == _JOIN:
        if request.rebalance_timeout_ms == _UNCHANGED_MS:
            raise InvalidHeartbeat("who joins tells its rebalance timeout")
        if request.topic_partitions is None or request.topic_partitions:
            raise InvalidHeartbeat("who joins has no partitions, and says so")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise InvalidHeartbeat("who joins subscribes to topics, by their names or by a regular expression")


def _depart(call: Call, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    call.broker.groups.depart(
        request.group_id,
        request.member_id,
        request.instance_id,
        for_a_while=request.member_epoch == _LEAVE_FOR_A_WHILE,
    )
    return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def _check_holders(call: Call, request: ConsumerGroupHeartbeatRequest, pattern: TopicPattern | None) -> None:
    """Refuse a member if clients of another protocol read its topics under the group's name. Raises GroupHeld."""
    names = set(request.subscribed_topic_names or ())
    if pattern is not None and pattern.text:
        everything = [topic.name.flat for topic in call.broker.topics]
        names |= TopicPatterns(call.broker.authorizer).matching([pattern], everything)[pattern]
    topics = [topic for name in names if (topic := call.topic(name)) is not None]
    try:
        call.broker.holders.check(request.group_id, topics, PROTOCOL)
    except GroupHeld as error:
        _log.warning("member refused group=%s client=%s reason=%s", request.group_id, call.client_id, error)
        raise


def _heartbeat(call: Call, request: ConsumerGroupHeartbeatRequest, pattern: TopicPattern | None) -> Heartbeat:
    timeout_ms, names = request.rebalance_timeout_ms, request.subscribed_topic_names
    return Heartbeat(
        member_id=request.member_id or urlsafe_b64encode(call.broker.runtime.random_bytes(16)).decode().rstrip("="),
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=call.client_id or "",
        client_host="/" + call.client.host,
        rebalance_timeout_ms=None if timeout_ms == _UNCHANGED_MS else max(timeout_ms, 0),
        topics=None if names is None else frozenset(names),
        pattern=pattern,
        assignor=request.server_assignor,
        owned=_owned(request),
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> frozenset[Place] | None:
    if request.topic_partitions is None:
        return None
    return frozenset((one.topic_id, index) for one in request.topic_partitions for index in one.partitions)


def _answer(reply: Reply) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if reply.assignment is not None:
        partitions = by_topic(reply.assignment).items()
        assignment = HeartbeatAssignment(
            topic_partitions=[AssignedPartitions(topic_id=one, partitions=indexes) for one, indexes in partitions]
        )
    return ConsumerGroupHeartbeatResponse(
        member_id=reply.member_id,
        member_epoch=reply.epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        assignment=assignment,
    )
