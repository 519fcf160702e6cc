"""CreateAcls: versions 1 to 3. One that is there already counts as created."""

from millstream.broker.acl import Acl, Operation
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.sessions.kafka.acl_codes import acl_of
from millstream.sessions.kafka.authorization import acls_for
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

__all__ = ["handle"]


def handle(call: Call, request: CreateAclsRequest) -> Pending[CreateAclsResponse]:
    """Create those ACLs that make sense; answered once they last."""
    response = CreateAclsResponse(results=[AclCreationResult() for _ in request.creations])
    accepted: dict[Acl, None] = {}

    def create() -> Pending[None]:
        acls = acls_for(call, Operation.ALTER)
        for creation, result in zip(request.creations, response.results, strict=True):
            try:
                accepted[acl_of(creation)] = None
            except MillstreamError as error:
                _refuse(result, error)
        return acls.create(list(accepted)) if accepted else settled(None)

    def refuse(error: MillstreamError) -> CreateAclsResponse:
        for result in response.results:
            if not result.error_code:
                _refuse(result, error)
        return response

    return Pending.attempt(create).settle(lambda _: response, refuse)


def _refuse(result: AclCreationResult, error: MillstreamError) -> None:
    result.error_code, result.error_message = code_of(error), str(error)
