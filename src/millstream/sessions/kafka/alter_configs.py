"""AlterConfigs: versions 0 to 2. It replaces all settings of a topic or a consumer group."""

from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.config_resources import changeable, refuse_duplicates, repeated, required
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

__all__ = ["handle"]


def handle(call: Call, request: AlterConfigsRequest) -> Pending[AlterConfigsResponse]:
    """Replace settings; answered once they last."""
    response = AlterConfigsResponse()
    altering = []
    twice = repeated((resource.resource_type, resource.resource_name) for resource in request.resources)
    for resource in request.resources:
        answer = AlterConfigsResourceResponse(
            error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        response.responses.append(answer)
        if (resource.resource_type, resource.resource_name) in twice:
            answer.error_code = ErrorCode.INVALID_REQUEST
            answer.error_message = "the resource is given more than once"
            continue
        altering.append(_alter(call, resource, answer, validate_only=request.validate_only))
    return gather(altering).then(lambda _: response)


def _alter(
    call: Call, resource: AlterConfigsResource, answer: AlterConfigsResourceResponse, *, validate_only: bool
) -> Pending[None]:
    def begin() -> Pending[None]:
        changing = changeable(call, resource.resource_type, resource.resource_name)
        refuse_duplicates(config.name for config in resource.configs)
        configs = {config.name: required(config.name, config.value) for config in resource.configs}
        return changing.change(configs, validate_only=validate_only)

    def refuse(error: MillstreamError) -> None:
        answer.error_code, answer.error_message = code_of(error), str(error)

    return Pending.attempt(begin).settle(lambda _: None, refuse)
