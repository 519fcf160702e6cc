"""Which HTTP status each error is answered with: the one table. A body says why, as Pulsar's: {"reason": ...}."""

from collections.abc import Mapping
from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from millstream.broker import errors as broker
from millstream.broker import namespaces, schemas, subscriptions
from millstream.broker.compaction import CompactionRunning
from millstream.model.errors import MillstreamError
from millstream.storage import errors as storage

__all__ = ["add_problem_handlers", "status_of"]

_STATUSES: Final[Mapping[type[MillstreamError], int]] = {
    broker.UnknownTopic: 404,
    broker.TopicExists: 409,
    broker.InvalidTopicName: 412,
    broker.InvalidPartitionCount: 406,
    broker.InvalidConfig: 412,
    broker.TopicTerminated: 409,
    broker.ProducerError: 409,
    broker.GroupNotEmpty: 412,
    broker.GroupNotFound: 404,
    namespaces.UnknownTenant: 404,
    namespaces.UnknownNamespace: 404,
    namespaces.TenantExists: 409,
    namespaces.NamespaceExists: 409,
    namespaces.TenantNotEmpty: 409,
    namespaces.NamespaceNotEmpty: 409,
    namespaces.NamespaceInUse: 409,
    namespaces.InvalidNamespaceName: 412,
    namespaces.InvalidPolicy: 412,
    schemas.UnknownSchema: 404,
    schemas.InvalidSchema: 422,
    schemas.IncompatibleSchema: 409,
    subscriptions.SubscriptionNotFound: 404,
    subscriptions.SubscriptionInUse: 412,
    subscriptions.SubscriptionGone: 404,
    subscriptions.SubscriptionError: 409,
    CompactionRunning: 409,
    storage.DiskFull: 507,
    storage.OffsetOutOfRange: 412,
    MillstreamError: 500,
}


def status_of(error: MillstreamError) -> int:
    """The status for an error, by its class or the nearest one it derives from."""
    return next(_STATUSES[cls] for cls in type(error).__mro__ if cls in _STATUSES)


def _reason(status: int, reason: str) -> JSONResponse:
    return JSONResponse({"reason": reason}, status)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, MillstreamError)
    return _reason(status_of(error), str(error))


async def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    answer = _reason(error.status_code, str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return _reason(400, f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}")


def add_problem_handlers(app: FastAPI) -> None:
    """Let an app answer errors as this module says."""
    app.add_exception_handler(MillstreamError, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
