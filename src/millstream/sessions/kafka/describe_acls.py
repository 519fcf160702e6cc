"""DescribeAcls: versions 1 to 3."""

from millstream.broker.acl import Operation, Resource
from millstream.model.errors import MillstreamError
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
from millstream.wire.kafka.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

__all__ = ["handle"]


def handle(call: Call, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Tell the ACLs that a filter means, by resource."""
    try:
        found = acls_for(call, Operation.DESCRIBE).matching(filter_of(request))
    except MillstreamError as error:
        return DescribeAclsResponse(error_code=code_of(error), error_message=str(error))
    resources: dict[Resource, DescribeAclsResource] = {}
    for acl in found:
        resource = resources.get(acl.resource)
        if resource is None:
            resource = resources[acl.resource] = DescribeAclsResource(
                resource_type=RESOURCE_TYPE_CODES[acl.resource.type],
                resource_name=acl.resource.name,
                pattern_type=PATTERN_TYPE_CODES[acl.resource.pattern],
            )
        resource.acls.append(
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=OPERATION_CODES[acl.operation],
                permission_type=PERMISSION_CODES[acl.permission],
            )
        )
    return DescribeAclsResponse(resources=list(resources.values()))
