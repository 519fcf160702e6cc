"""IncrementalAlterConfigs: versions 0 and 1. It changes single settings of a topic or a consumer group."""

from collections.abc import Mapping
from enum import IntEnum

from millstream.broker.configs import ConfigKey, Kind
from millstream.broker.errors import InvalidConfig
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.config_resources import changeable, refuse_duplicates, repeated, required
from millstream.sessions.kafka.error_table import code_of
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

__all__ = ["handle"]


class Operation(IntEnum):
    """What is done with a setting, by Kafka's numbers. The last two are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def handle(call: Call, request: IncrementalAlterConfigsRequest) -> Pending[IncrementalAlterConfigsResponse]:
    """Change settings; answered once they last."""
    response = IncrementalAlterConfigsResponse()
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
        configs = dict(changing.configs)
        for change in resource.configs:
            _apply(call, changing.keys, configs, change)
        return changing.change(configs, validate_only=validate_only)

    def refuse(error: MillstreamError) -> None:
        answer.error_code, answer.error_message = code_of(error), str(error)

    return Pending.attempt(begin).settle(lambda _: None, refuse)


def _apply(call: Call, keys: Mapping[str, ConfigKey], configs: dict[str, str], change: AlterableConfig) -> None:
    key = keys.get(change.name)
    if key is None:
        raise InvalidConfig(f"there is no setting {change.name}")
    match change.config_operation:
        case Operation.SET:
            configs[change.name] = required(change.name, change.value)
        case Operation.DELETE:
            configs.pop(change.name, None)
        case Operation.APPEND | Operation.SUBTRACT:
            if key.kind is not Kind.LIST:
                raise InvalidConfig(f"{change.name} is not a list")
            assert key.server_name is not None
            in_force = configs.get(change.name, call.broker.settings.text(key.server_name))
            present = [item.strip() for item in in_force.split(",") if item.strip()]
            items = [item.strip() for item in required(change.name, change.value).split(",")]
            if change.config_operation == Operation.APPEND:
                present += [item for item in items if item not in present]
            else:
                present = [item for item in present if item not in items]
            configs[change.name] = ",".join(present)
        case _:
            raise InvalidConfig(f"there is no operation {change.config_operation}")
