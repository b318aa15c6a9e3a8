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
    return message_factory.MessageFactory(_POOL).GetPrototype(descriptor)


SearchRequest = _class_of("simile.v1.SearchRequest")
SearchResponse = _class_of("simile.v1.SearchResponse")
RecommendRequest = _class_of("simile.v1.RecommendRequest")
RecommendResponse = _class_of("simile.v1.RecommendResponse")
SearchOptions = _class_of("simile.v1.SearchOptions")
FetchRequest = _class_of("simile.v1.FetchRequest")
FetchResponse = _class_of("simile.v1.FetchResponse")
ListCollectionsRequest = _class_of("simile.v1.ListCollectionsRequest")
ListCollectionsResponse = _class_of("simile.v1.ListCollectionsResponse")
Status = _class_of("google.rpc.Status")
ErrorInfo = _class_of("google.rpc.ErrorInfo")
BadRequest = _class_of("google.rpc.BadRequest")
RetryInfo = _class_of("google.rpc.RetryInfo")
