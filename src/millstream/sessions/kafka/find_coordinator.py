"""FindCoordinator: versions 0 to 6. This server coordinates every group and every transactional id."""

from typing import Final

from millstream.sessions.kafka.call import NODE_ID, Call
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

__all__ = ["handle"]

_COORDINATED: Final = frozenset({0, 1})
"""The types of key: a group, and a transactional id. Type 2 belongs to share groups."""
_LISTS_SINCE: Final = 4
_REFUSAL: Final = "this server coordinates groups and transactional ids only"


def handle(call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Name the coordinator of each key."""
    keys = request.coordinator_keys if call.version >= _LISTS_SINCE else [request.key]
    code, text = ErrorCode.NONE, None
    if request.key_type not in _COORDINATED:
        code, text = ErrorCode.INVALID_REQUEST, _REFUSAL
    node_id, host, port = (
        (NODE_ID, call.client.endpoint.host, call.client.endpoint.port) if not code else (-1, "", -1)
    )
    return FindCoordinatorResponse(
        error_code=code,
        error_message=text,
        node_id=node_id,
        host=host,
        port=port,
        coordinators=[
            Coordinator(key=key, node_id=node_id, host=host, port=port, error_code=code, error_message=text)
            for key in keys
        ],
    )
