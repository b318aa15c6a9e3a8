#!/usr/bin/env python3
"""Single queries alone, and beside an export of every row: their p50 and p99 in turns, at the client and in the server (total_us of the
receipt), and what the export takes alone and beside them.

    PYTHONPATH=build/clients/python python3 tests/bench/serving/export_beside_singles.py build/bin/simile FOLDER

One client process asks for one item at a time; the export is read in another. All share the machine.
"""

import argparse
import multiprocessing
import time

import numpy as np
import simile_search
from simile_search import testing

K = 10


def export(address: str, rows: "multiprocessing.Queue[object]") -> None:
    with simile_search.connect(address, timeout=60) as client:
        begin, sources = time.perf_counter(), []
        for part in client.collection("c").export(k=K):
            sources.extend(part.source_ids)
        rows.put((time.perf_counter() - begin, len(sources), len(set(sources))))


def latencies(collection, ids, goes_on) -> np.ndarray:
    """Milliseconds at the client and in the server, [queries, 2], of queries that are asked one after the other while it goes on."""
    taken = []
    while goes_on(len(taken)):
        begin = time.perf_counter()
        answer = collection.similar(ids[len(taken) % len(ids)], K)
        taken.append((1e3 * (time.perf_counter() - begin), answer.receipt.total_us / 1e3))
    return np.asarray(taken)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    with testing.serve(program=given.program, c=given.folder) as client:
        collection = client.collection("c")
        ids = next(collection.export(k=1)).source_ids
        latencies(collection, ids, lambda number: number < 2_000)  # the index is built
        print("round  p50 alone, beside  p99 alone, beside  p99 in the server alone, beside  export alone s, beside")
        for number in range(given.rounds):
            alone = latencies(collection, ids, lambda count: count < 3_000)
            results = spawn.Queue()
            process = spawn.Process(target=export, args=(client._target, results))
            process.start()
            beside = latencies(collection, ids, lambda _: process.is_alive())
            process.join()
            seconds, rows, distinct = results.get()
            if rows != distinct:
                raise SystemExit(f"{rows} rows were exported, {distinct} different ones")
            export(client._target, results)
            seconds_alone, _, _ = results.get()
            (p50, _), (p99, in_server) = np.percentile(alone, (50, 99), axis=0)
            (p50_beside, _), (p99_beside, in_server_beside) = np.percentile(beside, (50, 99), axis=0)
            print(f"{number + 1:5}  {p50:9.2f} {p50_beside:7.2f}  {p99:9.2f} {p99_beside:7.2f}  {in_server:23.2f} {in_server_beside:7.2f}  "
                  f"{seconds_alone:14.1f} {seconds:7.1f}")


if __name__ == "__main__":
    main()
