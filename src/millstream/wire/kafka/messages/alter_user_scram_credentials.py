"""AlterUserScramCredentials (API key 51)."""

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import array, bytes_, int8, int16, int32, message, string

__all__ = [
    "ALTER_USER_SCRAM_CREDENTIALS",
    "AlterUserScramCredentialsRequest",
    "AlterUserScramCredentialsResponse",
    "AlterUserScramCredentialsResult",
    "ScramCredentialDeletion",
    "ScramCredentialUpsertion",
]


@message
class ScramCredentialDeletion:
    """A credential that is to go."""

    name: str = string()
    mechanism: int = int8()


@message
class ScramCredentialUpsertion:
    """A credential that is to be set."""

    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = bytes_()
    salted_password: bytes = bytes_()


@message
class AlterUserScramCredentialsRequest:
    """AlterUserScramCredentials request, all versions."""

    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


@message
class AlterUserScramCredentialsResult:
    """What came of the changes to one user."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)


@message
class AlterUserScramCredentialsResponse:
    """AlterUserScramCredentials response, all versions."""

    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)


ALTER_USER_SCRAM_CREDENTIALS = Api(
    key=51,
    name="AlterUserScramCredentials",
    versions=range(1),
    flexible_since=0,
    request=AlterUserScramCredentialsRequest,
    response=AlterUserScramCredentialsResponse,
)
