#!/usr/bin/python3
"""Reads answers in columns as NumPy arrays, and compares their time with that of a message for each hit.

    examples/python/make_stubs.sh build/python
    PYTHONPATH=build/python /usr/bin/python3 examples/python/columns.py [HOST:PORT [COLLECTION [QUERIES [K]]]]

Needs Debian's python3-grpcio, python3-protobuf and python3-numpy.
"""
import sys
import time

import grpc
import numpy as np
from simile.v1.collections_pb2 import GetCollectionRequest
from simile.v1.collections_pb2_grpc import CollectionServiceStub
from simile.v1.search_pb2 import LAYOUT_COLUMNS, LAYOUT_HITS, Query, SearchOptions, SearchRequest
from simile.v1.search_pb2_grpc import SearchServiceStub
from simile.v1.types_pb2 import PackedVector, PayloadSelector

REPLY_BYTES_MAX = 64 << 20


def texts_of(column):
    """The values of a TextColumn, as an array of str."""
    offsets, utf8 = np.frombuffer(column.offsets, "<u4"), column.utf8
    if len(offsets) > 1 and b"\0" not in utf8:  # then one split of all texts makes them faster than a slice each
        zeros_at = offsets[1:-1].astype("i8")
        texts = np.insert(np.frombuffer(utf8, "u1"), zeros_at, 0).tobytes().decode().split("\0")
    else:
        texts = [utf8[begin:end].decode() for begin, end in zip(offsets, offsets[1:])]
    texts = np.array(texts, object)
    return texts[np.frombuffer(column.places, "<u4")] if column.places else texts


def ids_of(columns):
    """The ids of the items: integers if the answer has integer ids, else str."""
    ids = columns.ids
    return np.frombuffer(ids.integers, "<i8") if ids.WhichOneof("ids") == "integers" else texts_of(ids.texts)


def values_of(column):
    """The values of a payload column, masked where the item has none of the field's type.

    For a field of lists: the list offsets and the values of all lists; an item without a value has an empty list.
    """
    kind = column.WhichOneof("values")
    if kind is None:
        return None  # a field of objects or of several types: all values are in column.others
    if kind == "texts":
        values = texts_of(column.texts)
    else:
        values = np.frombuffer(getattr(column, kind), {"integers": "<i8", "numbers": "<f8", "booleans": "?"}[kind])
    if column.list_offsets:
        return np.frombuffer(column.list_offsets, "<u4"), values
    return np.ma.array(values, mask=np.frombuffer(column.states, "u1") != 1 if column.states else False)


def arrays_of(answer):
    """Offsets [results + 1], ids [hits] and scores [hits]: result i has the hits offsets[i] to offsets[i + 1]."""
    columns = answer.columns
    items = np.frombuffer(columns.items, "<u4")
    return np.frombuffer(columns.offsets, "<u4"), ids_of(columns)[items], np.frombuffer(columns.scores, "<f4")


def arrays_of_hits(answer):
    """The same from an answer with a message for each hit."""
    offsets = np.cumsum([0] + [len(result.hits) for result in answer.results], dtype="u4")
    hits = [hit for result in answer.results for hit in result.hits]
    return offsets, np.array([hit.id for hit in hits], object), np.array([hit.score for hit in hits], "f4")


def timed(call):
    start = time.perf_counter()
    result = call()
    return result, (time.perf_counter() - start) * 1e3


def main(server="localhost:50051", collection="films", count="1000", k="100"):
    channel = grpc.insecure_channel(server, options=[("grpc.enable_http_proxy", 0),
                                                     ("grpc.max_receive_message_length", REPLY_BYTES_MAX)])
    described = CollectionServiceStub(channel).GetCollection(GetCollectionRequest(collection=collection), timeout=10,
                                                             wait_for_ready=True)
    if not described.collection.dim:
        sys.exit(f"{collection} is still loading")
    search = SearchServiceStub(channel)
    vectors = np.random.default_rng(44).standard_normal((int(count), described.collection.dim), "f4")
    packed = [PackedVector(format=PackedVector.FORMAT_F32_LE, data=vector.tobytes()) for vector in vectors]
    options = SearchOptions(k=int(k), reply_bytes_max=REPLY_BYTES_MAX,
                            payload=PayloadSelector(selection=PayloadSelector.SELECTION_NONE))
    request = SearchRequest(collection=collection, queries=[Query(packed_vector=vector) for vector in packed],
                            options=options)
    answers = {}
    for name, layout, unpack in (("hits", LAYOUT_HITS, arrays_of_hits), ("columns", LAYOUT_COLUMNS, arrays_of)):
        request.options.layout = layout
        answer, call_ms = timed(lambda: search.Search(request, timeout=10))
        answers[name], unpack_ms = min((timed(lambda: unpack(answer)) for _ in range(5)), key=lambda pair: pair[1])
        print(f"{name:8} {answer.ByteSize():>10,} bytes, call {call_ms:7.1f} ms, to arrays {unpack_ms:7.2f} ms")
    for hits, columns in zip(answers["hits"], answers["columns"]):
        if not np.array_equal(hits, columns.astype(str) if hits.dtype == object else columns):
            sys.exit("the layouts differ")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except grpc.RpcError as error:
        sys.exit(f"error: {error.details()}")
