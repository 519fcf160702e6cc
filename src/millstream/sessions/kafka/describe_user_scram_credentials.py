"""DescribeUserScramCredentials: version 0."""

from millstream.broker.acl import Operation
from millstream.broker.credentials import ScramCredential
from millstream.model.errors import MillstreamError
from millstream.sessions.kafka.authorization import require_cluster
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.scram_mechanisms import NUMBERS
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

__all__ = ["handle"]


def handle(call: Call, request: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    """Tell which credentials users have, of all that have any or of those named; never the credentials."""
    try:
        require_cluster(call, Operation.DESCRIBE)
    except MillstreamError as error:
        return DescribeUserScramCredentialsResponse(error_code=code_of(error), error_message=str(error))
    kept = call.service.security.credentials.kept()
    if not request.users:
        return DescribeUserScramCredentialsResponse(results=[_result(name, kept[name]) for name in sorted(kept)])
    names = [user.name for user in request.users]
    results = []
    for name in dict.fromkeys(names):
        result = _result(name, kept.get(name, []))
        if names.count(name) > 1:
            result = DescribeUserScramCredentialsResult(
                user=name,
                error_code=ErrorCode.DUPLICATE_RESOURCE,
                error_message=f"the user {name!r} is asked for more than once",
            )
        elif not result.credential_infos:
            result.error_code = ErrorCode.RESOURCE_NOT_FOUND
            result.error_message = f"the user {name!r} has no SCRAM credentials"
        results.append(result)
    return DescribeUserScramCredentialsResponse(results=results)


def _result(name: str, credentials: list[ScramCredential]) -> DescribeUserScramCredentialsResult:
    infos = [CredentialInfo(mechanism=NUMBERS[one.hash], iterations=one.iterations) for one in credentials]
    return DescribeUserScramCredentialsResult(user=name, credential_infos=infos)
