"""AlterUserScramCredentials: version 0."""

from collections import Counter

from millstream.broker.acl import Operation
from millstream.broker.credentials import ScramCredential
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather
from millstream.sessions.kafka.authorization import require_cluster
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.scram_mechanisms import HASHES
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

__all__ = ["handle"]

Change = ScramCredentialDeletion | ScramCredentialUpsertion


def handle(call: Call, request: AlterUserScramCredentialsRequest) -> Pending[AlterUserScramCredentialsResponse]:
    """Set and delete credentials; of one user all changes are made, or none if one of them makes no sense."""
    changes: list[Change] = [*request.deletions, *request.upsertions]
    results = {one.name: AlterUserScramCredentialsResult(user=one.name) for one in changes}
    try:
        require_cluster(call, Operation.ALTER)
    except MillstreamError as error:
        for result in results.values():
            _refuse(result, code_of(error), str(error))
    for change in changes:
        _check(change, results[change.name])
    for (name, _), count in Counter((one.name, one.mechanism) for one in changes).items():
        if count > 1:
            _refuse(results[name], ErrorCode.DUPLICATE_RESOURCE, "a mechanism of a user is changed more than once")
    made = [_make(call, one, results[one.name]) for one in changes if not results[one.name].error_code]
    return gather(made).then(lambda _: AlterUserScramCredentialsResponse(results=list(results.values())))


def _check(change: Change, result: AlterUserScramCredentialsResult) -> None:
    if change.mechanism not in HASHES:
        _refuse(result, ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"there is no SCRAM mechanism {change.mechanism}")
    elif not change.name:
        _refuse(result, ErrorCode.UNACCEPTABLE_CREDENTIAL, "a user has a name")


def _refuse(result: AlterUserScramCredentialsResult, code: int, message: str) -> None:
    if not result.error_code:
        result.error_code, result.error_message = code, message


def _make(call: Call, change: Change, result: AlterUserScramCredentialsResult) -> Pending[None]:
    credentials = call.service.security.credentials
    kind = HASHES[change.mechanism]

    def begin() -> Pending[None]:
        if isinstance(change, ScramCredentialDeletion):
            return credentials.delete(change.name, kind)
        salted = bytes(change.salted_password)
        made = ScramCredential.of_salted(kind, bytes(change.salt), change.iterations, salted)
        return credentials.put(change.name, made)

    def refuse(error: MillstreamError) -> None:
        _refuse(result, code_of(error), str(error))

    return Pending.attempt(begin).settle(lambda _: None, refuse)
