"""CreatePartitions (API key 37)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, boolean, int16, int32, message, string

__all__ = ["CREATE_PARTITIONS", "CreatePartitionsRequest", "CreatePartitionsResponse"]


@message
class CreatePartitionsAssignment:
    broker_ids: list[int] = array("int32")


@message
class CreatePartitionsTopic:
    name: str = string()
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = array(CreatePartitionsAssignment, nullable=0)


@message
class CreatePartitionsRequest:
    """CreatePartitions request, all versions."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


@message
class CreatePartitionsTopicResult:
    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable=0, default=None)


@message
class CreatePartitionsResponse:
    """CreatePartitions response, all versions."""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)


CREATE_PARTITIONS = Api(
    key=37,
    name="CreatePartitions",
    versions=range(4),
    flexible_since=2,
    request=CreatePartitionsRequest,
    response=CreatePartitionsResponse,
)
