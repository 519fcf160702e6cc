"""DeleteAcls: versions 1 to 3."""

from typing import Final

from millstream.broker.acl import Acl, InvalidAcl, Operation
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.sessions.kafka.acl_codes import (
    OPERATION_CODES,
    PATTERN_TYPE_CODES,
    PERMISSION_CODES,
    RESOURCE_TYPE_CODES,
    filter_of,
)
from millstream.sessions.kafka.authorization import acls_for
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

__all__ = ["handle"]

_FILTERS_MAX: Final = 1000
"""Filters in one request: each is compared with every ACL, and may have all of them in its part of the answer."""


def handle(call: Call, request: DeleteAclsRequest) -> Pending[DeleteAclsResponse]:
    """Delete the ACLs that filters mean, and tell which they were; answered once that lasts."""
    response = DeleteAclsResponse(filter_results=[DeleteAclsFilterResult() for _ in request.filters])
    deleted: dict[Acl, None] = {}

    def delete() -> Pending[None]:
        acls = acls_for(call, Operation.ALTER)
        if len(request.filters) > _FILTERS_MAX:
            raise InvalidAcl(f"{len(request.filters)} filters in one request, where {_FILTERS_MAX} are allowed")
        for wanted, result in zip(request.filters, response.filter_results, strict=True):
            try:
                found = acls.matching(filter_of(wanted))
            except MillstreamError as error:
                result.error_code, result.error_message = code_of(error), str(error)
                continue
            result.matching_acls = [_told(acl) for acl in found]
            deleted.update(dict.fromkeys(found))
        return acls.delete(list(deleted)) if deleted else settled(None)

    def refuse(error: MillstreamError) -> DeleteAclsResponse:
        for result in response.filter_results:
            if not result.error_code:
                result.error_code, result.error_message = code_of(error), str(error)
                result.matching_acls = []
        return response

    return Pending.attempt(delete).settle(lambda _: response, refuse)


def _told(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        resource_type=RESOURCE_TYPE_CODES[acl.resource.type],
        resource_name=acl.resource.name,
        pattern_type=PATTERN_TYPE_CODES[acl.resource.pattern],
        principal=acl.principal,
        host=acl.host,
        operation=OPERATION_CODES[acl.operation],
        permission_type=PERMISSION_CODES[acl.permission],
    )
