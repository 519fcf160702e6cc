"""DescribeUserScramCredentials (API key 50)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, int8, int16, int32, message, string

__all__ = [
    "DESCRIBE_USER_SCRAM_CREDENTIALS",
    "CredentialInfo",
    "DescribeUserScramCredentialsRequest",
    "DescribeUserScramCredentialsResponse",
    "DescribeUserScramCredentialsResult",
    "UserName",
]


@message
class UserName:
    """A user, by name."""

    name: str = string()


@message
class DescribeUserScramCredentialsRequest:
    """DescribeUserScramCredentials request, all versions."""

    users: list[UserName] | None = array(UserName, nullable=0)


@message
class CredentialInfo:
    """A credential that a user has: its mechanism, and rounds of its hash."""

    mechanism: int = int8()
    iterations: int = int32()


@message
class DescribeUserScramCredentialsResult:
    """The credentials of one user."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


@message
class DescribeUserScramCredentialsResponse:
    """DescribeUserScramCredentials response, all versions."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)


DESCRIBE_USER_SCRAM_CREDENTIALS = Api(
    key=50,
    name="DescribeUserScramCredentials",
    versions=range(1),
    flexible_since=0,
    request=DescribeUserScramCredentialsRequest,
    response=DescribeUserScramCredentialsResponse,
)
