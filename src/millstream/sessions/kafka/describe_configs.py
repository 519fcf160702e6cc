"""DescribeConfigs: versions 1 to 4. Every setting is told with its default, not only those that were set."""

from collections.abc import Iterable
from typing import Final

from millstream.broker.acl import Operation
from millstream.broker.errors import UnknownTopic
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.config_resources import (
    TYPES,
    Described,
    ResourceType,
    describe_broker,
    describe_group,
    describe_topic,
    require_config,
)
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.errors import InvalidResource
from millstream.sessions.kafka.names import check_topic_name
from millstream.wire.kafka.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

__all__ = ["handle"]

_EMPTY_TYPES: Final = {ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS}


def handle(call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Tell the settings of topics, of consumer groups and of the server."""
    resources = {(resource.resource_type, resource.resource_name): resource for resource in request.resources}
    return DescribeConfigsResponse(results=[_result(call, request, resource) for resource in resources.values()])


def _result(call: Call, request: DescribeConfigsRequest, resource: DescribeConfigsResource) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        require_config(call, Operation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name)
        found = _settings(call, resource)
    except MillstreamError as error:
        result.error_code, result.error_message = code_of(error), str(error)
        return result
    wanted = frozenset(resource.configuration_keys or ())
    result.configs = [_told(request, one) for one in found if not wanted or one.key.name in wanted]
    return result


def _settings(call: Call, resource: DescribeConfigsResource) -> Iterable[Described]:
    if resource.resource_type == ResourceType.BROKER:
        return list(describe_broker(call, resource.resource_name))
    if resource.resource_type == ResourceType.TOPIC:
        check_topic_name(resource.resource_name)
        topic = call.topic(resource.resource_name)
        if topic is None:
            raise UnknownTopic(f"there is no topic {resource.resource_name}")
        return describe_topic(call, topic)
    if resource.resource_type == ResourceType.GROUP:
        return describe_group(call, resource.resource_name)
    if resource.resource_type in _EMPTY_TYPES:
        return []
    raise InvalidResource(f"there are no resources of type {resource.resource_type}")


def _told(request: DescribeConfigsRequest, one: Described) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=one.key.name,
        value=one.value,
        read_only=one.read_only,
        config_source=one.source,
        synonyms=[
            DescribeConfigsSynonym(name=name, value=value, source=source) for name, value, source in one.synonyms
        ]
        if request.include_synonyms
        else [],
        config_type=TYPES[one.key.kind],
        documentation=one.key.doc if request.include_documentation else None,
    )
