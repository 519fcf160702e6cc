"""FindCoordinator: versions 0 to 6. This server coordinates every group and every transactional id."""

from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka.authorization import require
from millstream.sessions.kafka.call import NODE_ID, Call
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.errors import InvalidResource
from millstream.wire.kafka.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

__all__ = ["handle"]

_COORDINATED: Final = {0: ResourceType.GROUP, 1: ResourceType.TRANSACTIONAL_ID}
"""The types of key. Type 2 belongs to share groups."""
_LISTS_SINCE: Final = 4


def handle(call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Name the coordinator of each key."""
    if call.version >= _LISTS_SINCE:
        return FindCoordinatorResponse(
            coordinators=[_coordinator(call, request.key_type, key) for key in request.coordinator_keys]
        )
    only = _coordinator(call, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _coordinator(call: Call, key_type: int, key: str) -> Coordinator:
    kind = _COORDINATED.get(key_type)
    try:
        if kind is None:
            raise InvalidResource("this server coordinates groups and transactional ids only")
        require(call, Operation.DESCRIBE, kind, key)
    except MillstreamError as error:
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code_of(error), error_message=str(error))
    endpoint = call.client.endpoint
    return Coordinator(key=key, node_id=NODE_ID, host=endpoint.host, port=endpoint.port)
