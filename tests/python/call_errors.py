"""What the error of a call says beyond its code: the details in its trailing metadata."""

import grpc
from google.rpc import error_details_pb2, status_pb2

KEY = "grpc-status-details-bin"


def details_of(error: grpc.RpcError) -> status_pb2.Status:
    """Raises KeyError for an error without details, as those are that gRPC makes itself."""
    return status_pb2.Status.FromString(dict(error.trailing_metadata())[KEY])


def unpack(status: status_pb2.Status, message_type) -> list:
    """The details of one type."""
    found = []
    for detail in status.details:
        message = message_type()
        if detail.Unpack(message):
            found.append(message)
    return found


def reason_of(error: grpc.RpcError) -> str:
    """One of the contract's, such as STOPPING; empty for an error that gRPC makes itself."""
    if KEY not in dict(error.trailing_metadata() or ()):
        return ""
    info, = unpack(details_of(error), error_details_pb2.ErrorInfo)
    return info.reason
