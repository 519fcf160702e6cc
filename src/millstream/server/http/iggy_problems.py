"""What the routes of the Iggy HTTP API answer errors with: a status, and {"id", "code", "reason", "field"}.

Statuses and fields are those of Iggy's server. A request that cannot be read at all is answered with a line of text,
as its framework does it: 400 for JSON or a query that is none, 422 for JSON of another shape.
"""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from millstream.model.errors import MillstreamError
from millstream.sessions.iggy.error_table import code_of
from millstream.wire.iggy.error_codes import ErrorCode

__all__ = ["IggyRoute", "NotFound"]

_STATUSES: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.INVALID_PERSONAL_ACCESS_TOKEN: 401,
    ErrorCode.UNAUTHORIZED: 403,
    ErrorCode.RESOURCE_NOT_FOUND: 404,
    ErrorCode.CLIENT_NOT_FOUND: 404,
    ErrorCode.STREAM_ID_NOT_FOUND: 404,
    ErrorCode.STREAM_NAME_NOT_FOUND: 404,
    ErrorCode.TOPIC_ID_NOT_FOUND: 404,
    ErrorCode.TOPIC_NAME_NOT_FOUND: 404,
    ErrorCode.PARTITION_NOT_FOUND: 404,
    ErrorCode.SEGMENT_NOT_FOUND: 404,
    ErrorCode.CONSUMER_GROUP_ID_NOT_FOUND: 404,
    ErrorCode.CONSUMER_GROUP_NAME_NOT_FOUND: 404,
    ErrorCode.CONSUMER_GROUP_MEMBER_NOT_FOUND: 404,
    ErrorCode.CONSUMER_OFFSET_NOT_FOUND: 404,
}
"""Any other is 400, but what goes wrong here, which is 500."""
_FIELDS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.STREAM_ID_NOT_FOUND: "stream_id",
    ErrorCode.INVALID_STREAM_ID: "stream_id",
    ErrorCode.TOPIC_ID_NOT_FOUND: "topic_id",
    ErrorCode.INVALID_TOPIC_ID: "topic_id",
    ErrorCode.PARTITION_NOT_FOUND: "partition_id",
    ErrorCode.SEGMENT_NOT_FOUND: "segment_id",
    ErrorCode.CLIENT_NOT_FOUND: "client_id",
    ErrorCode.INVALID_STREAM_NAME: "name",
    ErrorCode.STREAM_NAME_ALREADY_EXISTS: "name",
    ErrorCode.INVALID_TOPIC_NAME: "name",
    ErrorCode.TOPIC_NAME_ALREADY_EXISTS: "name",
    ErrorCode.CONSUMER_GROUP_NAME_ALREADY_EXISTS: "name",
    ErrorCode.PERSONAL_ACCESS_TOKEN_ALREADY_EXISTS: "name",
    ErrorCode.INVALID_OFFSET: "offset",
    ErrorCode.INVALID_CONSUMER_GROUP_ID: "consumer_group_id",
    ErrorCode.USER_ALREADY_EXISTS: "username",
}


class NotFound(Exception):
    """What was asked for is not there."""


def _refused(error: MillstreamError | OSError) -> Response:
    code = code_of(error)
    status = 500 if code is ErrorCode.ERROR else _STATUSES.get(code, 400)
    return _problem(status, int(code), code.name.lower(), str(error), _FIELDS.get(code))


def _problem(status: int, number: int, code: str, reason: str, field: str | None = None) -> Response:
    return JSONResponse({"id": number, "code": code, "reason": reason, "field": field}, status)


def _unreadable(error: RequestValidationError) -> Response:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    in_body = first["loc"][0] == "body" and first["type"] != "json_invalid"
    return PlainTextResponse(f"{place}: {first['msg']}", 422 if in_body else 400)


class IggyRoute(APIRoute):
    """A route whose errors are answered in the form of this API."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except (MillstreamError, OSError) as error:
                return _refused(error)
            except NotFound:
                return _problem(404, 404, "not_found", "Resource not found")
            except RequestValidationError as error:
                return _unreadable(error)
            except HTTPException as error:
                return _problem(error.status_code, error.status_code, "http_error", str(error.detail))

        return answer
