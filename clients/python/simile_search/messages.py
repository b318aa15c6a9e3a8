"""The messages of simile.v1, in a descriptor pool of their own.

The contract imports google/rpc. In the default pool those files would collide with other copies of them, such as that of
googleapis-common-protos. `api.binpb` is the contract as protoc writes it (--descriptor_set_out --include_imports).
"""

import pathlib
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_CONTRACT = pathlib.Path(__file__).with_name("api.binpb")


def _load() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(_CONTRACT.read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _load()


def _class_of(name: str) -> Any:
    descriptor = _POOL.FindMessageTypeByName(name)
    if hasattr(message_factory, "GetMessageClass"):  # protobuf 4.22 and later
        return message_factory.GetMessageClass(descriptor)
    return getattr(message_factory.MessageFactory(_POOL), "GetPrototype")(descriptor)


Query = _class_of("simile.v1.Query")
SearchRequest = _class_of("simile.v1.SearchRequest")
SearchResponse = _class_of("simile.v1.SearchResponse")
RecommendRequest = _class_of("simile.v1.RecommendRequest")
RecommendResponse = _class_of("simile.v1.RecommendResponse")
SearchOptions = _class_of("simile.v1.SearchOptions")
ExplainRequest = _class_of("simile.v1.ExplainRequest")
ExplainResponse = _class_of("simile.v1.ExplainResponse")
Explanation = _class_of("simile.v1.Explanation")
ExportRequest = _class_of("simile.v1.ExportRequest")
ExportResponse = _class_of("simile.v1.ExportResponse")
FetchRequest = _class_of("simile.v1.FetchRequest")
FetchResponse = _class_of("simile.v1.FetchResponse")
LookupRequest = _class_of("simile.v1.LookupRequest")
LookupResponse = _class_of("simile.v1.LookupResponse")
ListCollectionsRequest = _class_of("simile.v1.ListCollectionsRequest")
ListCollectionsResponse = _class_of("simile.v1.ListCollectionsResponse")
GetCollectionRequest = _class_of("simile.v1.GetCollectionRequest")
GetCollectionResponse = _class_of("simile.v1.GetCollectionResponse")
DescribeFieldsRequest = _class_of("simile.v1.DescribeFieldsRequest")
DescribeFieldsResponse = _class_of("simile.v1.DescribeFieldsResponse")
LoadCollectionRequest = _class_of("simile.v1.LoadCollectionRequest")
LoadCollectionResponse = _class_of("simile.v1.LoadCollectionResponse")
ReloadCollectionRequest = _class_of("simile.v1.ReloadCollectionRequest")
ReloadCollectionResponse = _class_of("simile.v1.ReloadCollectionResponse")
RollbackCollectionRequest = _class_of("simile.v1.RollbackCollectionRequest")
RollbackCollectionResponse = _class_of("simile.v1.RollbackCollectionResponse")
UnloadCollectionRequest = _class_of("simile.v1.UnloadCollectionRequest")
UnloadCollectionResponse = _class_of("simile.v1.UnloadCollectionResponse")
Status = _class_of("google.rpc.Status")
ErrorInfo = _class_of("google.rpc.ErrorInfo")
BadRequest = _class_of("google.rpc.BadRequest")
RetryInfo = _class_of("google.rpc.RetryInfo")
