#!/usr/bin/python3
"""Queries a Simile server for similar films and for a user's recommendations.

    examples/python/make_stubs.sh build/python
    PYTHONPATH=build/python /usr/bin/python3 examples/python/client.py [HOST:PORT [COLLECTION [ITEM [USER]]]]

Needs Debian's python3-grpcio and python3-protobuf (or grpcio and protobuf from PyPI).
"""
import sys

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from simile.v1.search_pb2 import Query, RecommendRequest, SearchOptions, SearchRequest
from simile.v1.search_pb2_grpc import SearchServiceStub
from simile.v1.types_pb2 import BackendKind, PayloadSelector


def show(hits):
    for hit in hits:
        print(f'  {hit.rank}  {hit.score:.4f}  {hit.payload["title"].string_value}')


def main(server="localhost:50051", collection="films", item="toy-story-1995", user="user_00042"):
    # http_proxy and its like are for the web, not for this server.
    channel = grpc.insecure_channel(server, options=[("grpc.enable_http_proxy", 0)])
    search = SearchServiceStub(channel)

    answer = search.Search(
        SearchRequest(collection=collection, queries=[Query(id=item, k=5)]),
        timeout=10, wait_for_ready=True)
    print(f"like {item}:")
    show(answer.results[0].hits)

    options = SearchOptions(k=5, exclude_seen=True, payload=PayloadSelector(fields=["title"]))
    answer = search.Recommend(
        RecommendRequest(collection=collection, user_ids=[user], options=options),
        timeout=10, wait_for_ready=True)
    print(f"for {user}:")
    show(answer.results[0].hits)

    receipt = answer.receipt
    backend = BackendKind.Name(receipt.backend).removeprefix("BACKEND_KIND_").lower()
    print(f"exact: {receipt.exact}, {receipt.compute_us} us, {backend}: {receipt.reason}")


def reason_of(error):
    """Why a call failed, for programs: "USER_NOT_FOUND"; docs/api.md lists the reasons."""
    metadata = dict(error.trailing_metadata() or ())
    info = ErrorInfo()
    for detail in Status.FromString(metadata.get("grpc-status-details-bin", b"")).details:
        detail.Unpack(info)  # does nothing when the detail is of another type
    return info.reason or error.code().name


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except grpc.RpcError as error:
        sys.exit(f"error: {error.details()} ({reason_of(error)})")
