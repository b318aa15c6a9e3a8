#!/usr/bin/env python3
"""A server of simile.v1's Search as one would write it in Python: grpc.aio in front of FAISS, torch or NumPy.

usage: rival.py LIBRARY VECTORS.npy PORT THREADS BATCH_MAX [METADATA.jsonl]

Exact cosine similarity. Tuned as far as that goes without another language:
- requests that arrive together are searched together, one matrix product for BATCH_MAX queries;
- the answer is put together from bytes that are made once for each row, because building messages in Python takes
  several times as long as the search;
- several processes may listen on one port, each with its share of the connections.
"""
import asyncio
import concurrent.futures
import json
import sys

import grpc
import numpy as np

from simile.v1 import collections_pb2, search_pb2, types_pb2

# Multiply-adds above which the search leaves the event loop: about a millisecond.
INLINE_WORK_MAX = 20_000_000


class Faiss:
    def __init__(self, vectors, threads):
        import faiss
        faiss.omp_set_num_threads(threads)
        self._index = faiss.IndexFlatIP(vectors.shape[1])
        self._index.add(vectors)

    def search(self, queries, k):
        return self._index.search(queries, k)


class Torch:
    def __init__(self, vectors, threads):
        import torch
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self._torch = torch
        self._rows = torch.from_numpy(vectors).T

    def search(self, queries, k):
        scores, rows = self._torch.topk(self._torch.from_numpy(queries) @ self._rows, k)
        return scores.numpy(), rows.numpy()


class Numpy:
    def __init__(self, vectors, threads):
        del threads  # OMP_NUM_THREADS
        self._rows = vectors.T

    def search(self, queries, k):
        scores = queries @ self._rows
        rows = np.argpartition(scores, -k, axis=1)[:, -k:]
        best = np.take_along_axis(scores, rows, 1)
        order = np.argsort(-best, axis=1, kind="stable")
        return np.take_along_axis(best, order, 1), np.take_along_axis(rows, order, 1)


LIBRARIES = {"faiss": Faiss, "torch": Torch, "numpy": Numpy}


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


VARINTS = [varint(number) for number in range(1 << 16)]


def value_of(json_value):
    value = types_pb2.PayloadValue()
    match json_value:
        case None: value.null_value = True
        case bool(): value.bool_value = json_value
        case int(): value.int_value = json_value
        case float(): value.double_value = json_value
        case str(): value.string_value = json_value
        case list(): value.list_value.values.extend(map(value_of, json_value))
        case dict():
            for name, member in json_value.items():
                value.object_value.fields[name].CopyFrom(value_of(member))
    return value


def encoded_rows(count, metadata):
    """Of each row what a Hit has besides rank and score, encoded: the id alone, and with the payload."""
    payloads = [json.loads(line) for line in open(metadata, encoding="utf-8")] if metadata else [{}] * count
    plain, full = [], []
    for row, payload in enumerate(payloads):
        hit = types_pb2.Hit(id=str(payload.get("media_id", payload.get("id", row))))
        plain.append(hit.SerializeToString())
        for name, value in payload.items():
            hit.payload[name].CopyFrom(value_of(value))
        full.append(hit.SerializeToString())
    return plain, full


class Server:
    def __init__(self, engine, vectors, metadata, name, batch_max):
        self._engine = engine
        self._batch_max = batch_max
        self._dim = vectors.shape[1]
        self._plain, self._full = encoded_rows(len(vectors), metadata)
        self._work = vectors.size
        self._waiting = []
        self._is_searching = False
        self._executor = concurrent.futures.ThreadPoolExecutor(1)
        receipt = types_pb2.Receipt(backend=types_pb2.BACKEND_KIND_CPU, device="Python", engines=[name], exact=True,
                                    request_id="0" * 32)
        self._receipt = search_pb2.SearchResponse(receipt=receipt).SerializeToString()
        collection = collections_pb2.Collection(
            name="rival", state=collections_pb2.Collection.STATE_SERVING, rows=len(vectors), dim=self._dim,
            metric=collections_pb2.Collection.METRIC_COSINE)
        self._listed = collections_pb2.ListCollectionsResponse(collections=[collection])

    async def list_collections(self, request, context):
        del request, context
        return self._listed

    async def search(self, request, context):
        del context
        data = b"".join([query.packed_vector.data for query in request.queries])
        queries = np.frombuffer(data, np.float32).reshape(-1, self._dim)
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((queries, request.options.k or 10, future))
        if not self._is_searching:
            self._is_searching = True
            asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(self._search_waiting()))
        scores, rows = await future
        with_payload = request.options.payload.selection != types_pb2.PayloadSelector.SELECTION_NONE
        return self._encode(scores, rows, self._full if with_payload else self._plain)

    async def _search_waiting(self):
        while self._waiting:
            calls, count, k = [], 0, self._waiting[0][1]
            while self._waiting and self._waiting[0][1] == k and count < self._batch_max:
                calls.append(self._waiting.pop(0))
                count += len(calls[-1][0])
            queries = np.concatenate([call[0] for call in calls])
            queries /= np.linalg.norm(queries, axis=1, keepdims=True)
            if count * self._work <= INLINE_WORK_MAX:
                scores, rows = self._engine.search(queries, k)
            else:
                scores, rows = await asyncio.get_running_loop().run_in_executor(
                    self._executor, self._engine.search, queries, k)
            first = 0
            for call_queries, _, future in calls:
                end = first + len(call_queries)
                if not future.done():
                    future.set_result((scores[first:end], rows[first:end]))
                first = end
        self._is_searching = False

    def _encode(self, scores, rows, encoded):
        parts = []
        for query_scores, query_rows in zip(scores, rows.tolist()):
            packed = query_scores.astype("<f4").tobytes()
            hits = [b"\x10\x01"]  # score_kind: cosine
            for i, row in enumerate(query_rows):
                rank, rest = VARINTS[i + 1], encoded[row]
                hits.append(b"".join((b"\x0a", VARINTS[6 + len(rank) + len(rest)], b"\x08", rank, b"\x1d",
                                      packed[4 * i:4 * i + 4], rest)))
            result = b"".join(hits)
            parts += (b"\x0a", varint(len(result)), result)
        parts.append(self._receipt)
        return b"".join(parts)


async def serve(server, port):
    listener = grpc.aio.server(options=[("grpc.so_reuseport", 1), ("grpc.max_receive_message_length", 20 << 20)])
    handlers = {
        "simile.v1.SearchService": {
            "Search": grpc.unary_unary_rpc_method_handler(server.search, search_pb2.SearchRequest.FromString)},
        "simile.v1.CollectionService": {
            "ListCollections": grpc.unary_unary_rpc_method_handler(
                server.list_collections, collections_pb2.ListCollectionsRequest.FromString,
                collections_pb2.ListCollectionsResponse.SerializeToString)},
    }
    for service, methods in handlers.items():
        listener.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    listener.add_insecure_port(f"127.0.0.1:{port}")
    await listener.start()
    print("listening", flush=True)
    await listener.wait_for_termination()


def main():
    library, file, port, threads, batch_max = sys.argv[1:6]
    vectors = np.load(file).astype(np.float32)
    vectors /= np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True).astype(np.float32)
    engine = LIBRARIES[library](vectors, int(threads))
    metadata = sys.argv[6] if len(sys.argv) > 6 else None
    asyncio.run(serve(Server(engine, vectors, metadata, library, int(batch_max)), port))


if __name__ == "__main__":
    main()
