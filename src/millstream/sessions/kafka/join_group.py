"""JoinGroup: versions 0 to 9. From 4 on a new member is first given its id; from 5 on members may be static."""

import logging
from collections.abc import Iterable
from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.any_group import Joined, Joining, Protocol
from millstream.broker.errors import GroupHeld, MemberIdRequired
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.sessions.kafka.authorization import require
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.consumer_subscription import subscribed_topics
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.holders import PROTOCOL
from millstream.wire.kafka.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

__all__ = ["handle"]

_log = logging.getLogger(__name__)
_REBALANCE_TIMEOUT_SINCE: Final = 1
_ID_REQUIRED_SINCE: Final = 4
_NULL_PROTOCOL_SINCE: Final = 7
_SKIP_ASSIGNMENT_SINCE: Final = 9


def handle(call: Call, request: JoinGroupRequest) -> JoinGroupResponse | Pending[JoinGroupResponse]:
    """Join a group; the answer comes when all members have joined."""
    has_timeout = call.version >= _REBALANCE_TIMEOUT_SINCE
    topics = frozenset(name for protocol in request.protocols for name in subscribed_topics(protocol.metadata))
    joining = Joining(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=call.client_id or "",
        client_host="/" + call.client.host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms if has_timeout else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple(Protocol(p.name, p.metadata) for p in request.protocols),
        id_required=call.version >= _ID_REQUIRED_SINCE,
        may_skip_assignment=call.version >= _SKIP_ASSIGNMENT_SINCE,
        topics=topics,
    )
    try:
        require(call, Operation.READ, ResourceType.GROUP, request.group_id)
        _check_holders(call, request.group_id, topics)
        joined = call.broker.groups.join(request.group_id, joining)
    except MillstreamError as error:
        return _refused(call, request.member_id, error)
    at_rest = call.broker.holders.at_rest(request.group_id, PROTOCOL)
    pending = joined if at_rest is None else at_rest.chain(lambda _: joined)
    return pending.settle(_answer, lambda error: _refused(call, request.member_id, error))


def _check_holders(call: Call, group_id: str, names: Iterable[str]) -> None:
    """Refuse a member if clients of another protocol read its topics under the group's name. Raises GroupHeld.

    The answer has no room for a text, so that the log has it.
    """
    topics = [topic for name in names if (topic := call.topic(name)) is not None]
    try:
        call.broker.holders.check(group_id, topics, PROTOCOL)
    except GroupHeld as error:
        _log.warning("member refused group=%s client=%s reason=%s", group_id, call.client_id, error)
        raise


def _answer(joined: Joined) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name,
        leader=joined.leader_id,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinGroupResponseMember(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in joined.members
        ],
    )


def _refused(call: Call, member_id: str, error: MillstreamError) -> JoinGroupResponse:
    given = error.member_id if isinstance(error, MemberIdRequired) else member_id
    protocol_name = None if call.version >= _NULL_PROTOCOL_SINCE else ""
    return JoinGroupResponse(error_code=code_of(error), member_id=given, protocol_name=protocol_name)
