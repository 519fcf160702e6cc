"""Heartbeat: versions 0 to 4."""

from millstream.broker.acl import Operation, ResourceType
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka.authorization import require
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

__all__ = ["handle"]


def handle(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
    """Keep a member's session alive, and tell it when it is to join again."""
    try:
        require(call, Operation.READ, ResourceType.GROUP, request.group_id)
        group = call.broker.groups.member_group(request.group_id)
        group.heartbeat(request.member_id, request.group_instance_id, request.generation_id)
    except MillstreamError as error:
        return HeartbeatResponse(error_code=code_of(error))
    return HeartbeatResponse()
