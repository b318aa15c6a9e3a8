#!/usr/bin/env python3
"""What the Python client takes beside raw bytes: calls of 1,000 vectors whose answers become arrays, and 64 single searches at a time
under asyncio. Both ask the same server in turns. Prints a table.

    PYTHONPATH=build/clients/python python3 tests/bench/serving/python_client.py build/bin/simile examples/films

Raw bytes: a request that is made once, whose answer is not parsed. Messages: the same request answered as messages of hits, read into
arrays by protobuf's classes. Client and server share the machine.
"""

import argparse
import asyncio
import statistics
import sys
import time

import grpc
import grpc.aio
import numpy as np
from simile_search import aio, messages, testing, vectors

METHOD = "/simile.v1.SearchService/Search"
QUERIES = 1_000
IN_FLIGHT = 64
OPTIONS = [("grpc.max_receive_message_length", 64 << 20)]


def request_of(matrix, k: int, layout: int) -> bytes:
    options = messages.SearchOptions(k=k, layout=layout, reply_bytes_max=64 << 20)
    options.payload.selection = 2  # none
    return messages.SearchRequest(collection="c", options=options).SerializeToString() + vectors.queries_of(matrix)


def seconds_of(run, seconds: float) -> float:
    """The median of one run."""
    taken = []
    end = time.perf_counter() + seconds
    while len(taken) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def blocks_of(run) -> int:
    """Blocks of memory that the result of a run holds."""
    run()
    before = sys.getallocatedblocks()
    kept = run()
    count = sys.getallocatedblocks() - before
    del kept
    return count


def arrays_of(response) -> tuple[np.ndarray, np.ndarray, list]:
    ids = np.array([[hit.id for hit in result.hits] for result in response.results], object)
    scores = np.array([[hit.score for hit in result.hits] for result in response.results], "f4")
    return ids, scores, [response]


async def asyncio_rates(address: str, matrix, k: int, seconds: float) -> tuple[float, float]:
    """Single searches a second: raw bytes, the client."""
    async with aio.connect(address) as client, grpc.aio.insecure_channel(address, OPTIONS) as channel:
        films = client.collection("c")
        call = channel.unary_unary(METHOD, request_serializer=None, response_deserializer=None)
        requests = [request_of(matrix[row:row + 1], k, 2) for row in range(len(matrix))]

        async def rate(ask) -> float:
            end, count = time.perf_counter() + seconds, 0

            async def caller(number: int) -> None:
                nonlocal count
                while time.perf_counter() < end:
                    await ask((number + count) % len(matrix))
                    count += 1

            begin = time.perf_counter()
            await asyncio.gather(*(caller(number) for number in range(IN_FLIGHT)))
            return count / (time.perf_counter() - begin)

        raw, own = [], []
        for _ in range(3):
            raw.append(await rate(lambda row: call(requests[row], timeout=10)))
            own.append(await rate(lambda row: films.search(matrix[row], k)))
        return statistics.median(raw), statistics.median(own)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=3, help="of each case and round; default 3")
    given = parser.parse_args()
    with testing.serve(program=given.program, c=given.folder) as client:
        collection, address = client.collection("c"), client._target
        dim = collection.describe().dim
        matrix = np.random.default_rng(1).standard_normal((QUERIES, dim)).astype("f4")
        print(f"{'':34}{'raw bytes':>14}{'client':>14}{'of raw':>9}{'messages':>14}{'objects, client':>17}{'messages':>10}")
        with grpc.insecure_channel(address, OPTIONS) as channel:
            bare = channel.unary_unary(METHOD, request_serializer=None, response_deserializer=None)
            for k in (10, 100):
                columns, hits = request_of(matrix, k, 2), request_of(matrix, k, 1)

                def own(k=k):
                    answer = collection.search(matrix, k)
                    return answer.ids, answer.scores, answer

                def unpacked(hits=hits):
                    return arrays_of(messages.SearchResponse.FromString(bare(hits, timeout=10)))

                rounds = [(seconds_of(lambda: bare(columns, timeout=10), given.seconds), seconds_of(own, given.seconds),
                           seconds_of(unpacked, given.seconds)) for _ in range(3)]
                raw, client_s, message_s = (statistics.median(column) for column in zip(*rounds))
                print(f"{f'a call of {QUERIES:,}, k {k}':34}{1e3 * raw:11.1f} ms{1e3 * client_s:11.1f} ms{raw / client_s:9.2f}"
                      f"{1e3 * message_s:11.1f} ms{blocks_of(own):17,}{blocks_of(unpacked):10,}")
        raw, client_rate = asyncio.run(asyncio_rates(address, matrix, 10, given.seconds))
        print(f"{f'asyncio, {IN_FLIGHT} single searches, k 10':34}{raw:12,.0f}/s{client_rate:12,.0f}/s{client_rate / raw:9.2f}")


if __name__ == "__main__":
    main()
