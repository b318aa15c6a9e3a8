"""Errors as exceptions. A server's error has a reason, by which its class is chosen; docs/api.md lists the reasons."""

import re
from typing import Any, Optional

import grpc
from google.protobuf.message import DecodeError

from . import messages

_DETAILS_KEY = "grpc-status-details-bin"
_QUERY = re.compile(r"\A(queries|user_ids|ids)\[(\d+)\]")


class SimileError(Exception):
    """An error of a call.

    reason       for programs, such as "ITEM_NOT_FOUND"; empty for an error that gRPC made itself
    code         the grpc.StatusCode
    message      for people: what is wrong, where, and what would be right
    field        path of the wrong field in the request, such as "queries[3].k"; empty for none
    request_id   finds the call in the server's log
    retry_after  seconds after which the server would take the call; None where it cannot say
    """

    def __init__(self, message: str, *, reason: str = "", code: Optional[grpc.StatusCode] = None, field: str = "",
                 request_id: str = "", retry_after: Optional[float] = None):
        super().__init__(message)
        self.reason, self.code, self.message = reason, code, message
        self.field, self.request_id, self.retry_after = field, request_id, retry_after

    def __str__(self) -> str:
        kind = self.reason or (self.code.name if self.code else "")
        return f"{self.message} ({kind})" if kind else self.message

    def __reduce__(self) -> Any:
        names = ("reason", "code", "field", "request_id", "retry_after")
        return _restored, (type(self), self.message, {name: getattr(self, name) for name in names})


def _restored(kind: type[SimileError], message: str, values: dict[str, Any]) -> SimileError:
    return kind(message, **values)


class InvalidVectors(SimileError, ValueError):
    """The vectors cannot be sent. Raised before a call, with the shape, dtype or row."""


class InvalidRequest(SimileError, ValueError):
    """INVALID_ARGUMENT: a field, filter, vector or page token is wrong, or the answer would be too large."""


class NotFound(SimileError, LookupError):
    """NOT_FOUND: an item, user or collection does not exist for the caller."""


class NotAllowed(SimileError, PermissionError):
    """UNAUTHENTICATED or PERMISSION_DENIED."""


class Busy(SimileError):
    """RESOURCE_EXHAUSTED: too much waits, or the caller has too much under way. `retry_after` says when to come again."""


class NotReady(SimileError):
    """FAILED_PRECONDITION or ABORTED: the collection loads, has other content, or changed between two pages."""


class Unavailable(SimileError, ConnectionError):
    """UNAVAILABLE: no connection, or the server stops."""


class DeadlineExceeded(SimileError, TimeoutError):
    """DEADLINE_EXCEEDED: the answer did not come in time."""


_CLASSES = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.OUT_OF_RANGE: InvalidRequest,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.UNAUTHENTICATED: NotAllowed,
    grpc.StatusCode.PERMISSION_DENIED: NotAllowed,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Busy,
    grpc.StatusCode.FAILED_PRECONDITION: NotReady,
    grpc.StatusCode.ABORTED: NotReady,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
}


def of_status(status: Any, first: int = 0) -> SimileError:
    """Of a google.rpc.Status, such as that of one query of a partial call.

    first  queries that earlier calls of the same search have sent
    """
    codes = {code.value[0]: code for code in grpc.StatusCode}
    return _error_of(codes.get(status.code, grpc.StatusCode.UNKNOWN), status.message, status.details, first)


def of_call(error: Any, waited: float, timeout: float, first: int = 0) -> SimileError:
    """Of a grpc.RpcError.

    waited   seconds that the client has waited
    timeout  seconds that the caller allowed
    first    as of_status
    """
    metadata = {key: value for key, value in error.trailing_metadata() or ()}  # that of asyncio is no list of pairs to dict()
    message = error.details() or "no message"
    if error.code() in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE):
        message += f"; the client waited {waited:.3g} s of timeout={timeout:.3g}"
    if "failed to connect" in message:
        message += ". Is the server running? simile serve --collection NAME=FOLDER starts one"
    try:
        return _error_of(error.code(), message, messages.Status.FromString(metadata.get(_DETAILS_KEY, b"")).details, first)
    except DecodeError:  # the details of a proxy
        return _error_of(error.code(), message, [], first)


def _error_of(code: grpc.StatusCode, message: str, details: Any, first: int) -> SimileError:
    values: dict[str, Any] = {"code": code}
    for detail in details:
        kind = detail.type_url.rpartition("/")[2]
        if kind == "google.rpc.ErrorInfo":
            info = messages.ErrorInfo.FromString(detail.value)
            values["reason"] = info.reason
            values["request_id"] = info.metadata.get("request_id", "")
        elif kind == "google.rpc.BadRequest":
            violations = messages.BadRequest.FromString(detail.value).field_violations
            values["field"] = _shifted(violations[0].field, first) if violations else ""
        elif kind == "google.rpc.RetryInfo":
            delay = messages.RetryInfo.FromString(detail.value).retry_delay
            values["retry_after"] = delay.seconds + delay.nanos / 1e9
    return _CLASSES.get(code, SimileError)(_shifted(message, first), **values)


def _shifted(text: str, first: int) -> str:
    """With the number of a query as the caller counts."""
    return _QUERY.sub(lambda found: f"{found[1]}[{int(found[2]) + first}]", text)
