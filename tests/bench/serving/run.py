#!/usr/bin/env python3
"""Simile's server beside its rivals, in one run and under the same load: echoes that do nothing, and servers in Python
(grpc.aio with FAISS, torch, NumPy). Writes docs/benchmarks/serving.md and its plots.

Needs build/bin/simile and build/bin/serving_echo (cmake --preset bench, then build both), and the rivals, in a virtual
environment of their own:

    python3 -m venv rivals
    rivals/bin/pip install -r tests/bench/serving/requirements.txt
    rivals/bin/python tests/bench/serving/run.py --vectors sentences=vectors.npy,queries.npy

The films of examples/ are always measured, with and without payload; --vectors adds collections without payload. Answers of
every server are compared with double precision before anything is timed. Servers take turns, case by case; those that wait
are stopped. Client and server share the machine.
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import serving_report
from processor_name import processor_name
from servers import FILMS, ROOT, SEARCH, Failed, Server, echo, load, make_stubs, python_servers, require_built, simile

CLOSED = [(1, 1), (1, 8), (1, 64), (1, 256), (10, 4), (100, 4)]  # queries a call, calls in flight
LIBRARIES = ["faiss", "torch", "numpy"]
SCORE_ERROR_MAX = 2e-6
LOAD_SHARES = [0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1]  # of the closed loop's best rate, for the open loop
CONNECTIONS_MAX = 16


@dataclasses.dataclass
class Collection:
    name: str
    folder: pathlib.Path
    vectors: pathlib.Path
    queries: pathlib.Path
    payloads: list[str]  # "none", "all"

    def metadata(self) -> list[str]:
        file = self.folder / "metadata.jsonl"
        return [str(file)] if file.exists() else []


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", action="append", default=[], metavar="NAME=VECTORS,QUERIES", help="two .npy files")
    parser.add_argument("--duration", default="2s", help="measured time of each case; default 2s")
    parser.add_argument("--warm-up", default="500ms", help="load before it; default 500ms")
    parser.add_argument("--rivals", default=",".join(LIBRARIES), help="default %(default)s")
    parser.add_argument("--simile", type=pathlib.Path, default=ROOT / "build/bin/simile")
    parser.add_argument("--echo", type=pathlib.Path, default=ROOT / "build/bin/serving_echo")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/benchmarks", help="folder for serving.md and plots")
    parser.add_argument("--json", type=pathlib.Path, help="file to write all figures to")
    arguments = parser.parse_args()
    require_built(parser, arguments.simile, arguments.echo)
    arguments.rivals = [name for name in arguments.rivals.split(",") if name]
    if unknown := set(arguments.rivals) - set(LIBRARIES):
        parser.error(f"no such rival: {', '.join(sorted(unknown))}; there are {', '.join(LIBRARIES)}")
    return arguments


def unit_rows(file: pathlib.Path) -> np.ndarray:
    rows = np.load(file).astype(np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def collections(arguments: argparse.Namespace, work: pathlib.Path):
    queries = work / "film-queries.npy"
    np.save(queries, unit_rows(FILMS / "preference_vectors.npy").astype(np.float32))
    yield Collection("films", FILMS, FILMS / "content_vectors.npy", queries, ["none", "all"])
    for text in arguments.vectors:
        try:
            name, files = text.split("=", 1)
            vectors, queries = (pathlib.Path(file).resolve() for file in files.split(","))
        except ValueError:
            raise Failed(f"--vectors {text}: say NAME=vectors.npy,queries.npy") from None
        folder = work / name
        folder.mkdir()
        np.save(folder / "vectors.npy", np.load(vectors))
        yield Collection(name, folder, vectors, queries, ["none"])


class Client:
    """Asks a server the way the load generator does, to look at its answers."""

    def __init__(self, address: str, collection: str):
        import grpc
        from simile.v1 import search_pb2
        self._messages = search_pb2
        self._channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", 64 << 20)])
        self._search = self._channel.unary_unary(SEARCH)
        self._collection = collection

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._channel.close()

    def ask(self, vectors: np.ndarray, payload: str) -> bytes:
        request = self._messages.SearchRequest(collection=self._collection)
        request.options.k = 10
        request.options.payload.selection = 1 if payload == "all" else 2
        for vector in vectors:
            packed = request.queries.add().packed_vector
            packed.format, packed.data = 1, vector.astype("<f4").tobytes()
        return self._search(request.SerializeToString(), timeout=30)

    def parse(self, answer: bytes):
        return self._messages.SearchResponse.FromString(answer)


def ids_of(collection: Collection) -> list[str]:
    if not collection.metadata():
        return [str(row) for row in range(len(np.load(collection.vectors, mmap_mode="r")))]
    return [json.loads(line)["media_id"] for line in open(collection.metadata()[0], encoding="utf-8")]


def check_answers(server: Server, collection: Collection, payload: str) -> None:
    """The ten best by double precision, but for scores within the rounding of single precision."""
    rows, ids = unit_rows(collection.vectors), ids_of(collection)
    queries = np.load(collection.queries)[:50].astype(np.float32)
    exact = (queries / np.linalg.norm(queries.astype(np.float64), axis=1, keepdims=True)) @ rows.T
    row_of = {row_id: row for row, row_id in enumerate(ids)}
    with Client(server.address, server.collection) as client:
        response = client.parse(client.ask(queries, payload))
    if len(response.results) != len(queries):
        raise Failed(f"{server.name}: {len(response.results)} results for {len(queries)} queries")
    for query, result in enumerate(response.results):
        best = np.sort(exact[query])[::-1][:10]
        for rank, hit in enumerate(result.hits):
            score = exact[query, row_of[hit.id]]
            if abs(score - hit.score) > SCORE_ERROR_MAX or abs(score - best[rank]) > SCORE_ERROR_MAX:
                raise Failed(f"{server.name}: query {query}, rank {rank + 1}: {hit.id} with {hit.score}, exactly {score}; "
                             f"the score of this rank is {best[rank]}")
        if len(result.hits) != 10 or (payload == "all") != bool(result.hits[0].payload):
            raise Failed(f"{server.name}: query {query}: {len(result.hits)} hits, payload {payload}")


def bench(arguments: argparse.Namespace, server: Server, collection: Collection, *flags: str) -> list[dict]:
    with server.turn():
        return load(arguments.simile, server, "--vectors", collection.queries, "-k", 10, "--duration", arguments.duration,
                    "--warm-up", arguments.warm_up, *flags)


def measure(arguments: argparse.Namespace, server: Server, collection: Collection, case: tuple[int, int], payload: str,
            *flags: str) -> dict:
    batch, in_flight = case
    connections = str(min(in_flight, CONNECTIONS_MAX))
    return bench(arguments, server, collection, "--in-flight", str(in_flight), "--connections", connections, "--batch",
                 str(batch), "--payload", payload, *flags)[0]


def measure_payload(arguments, servers: list[Server], collection: Collection, payload: str, work: pathlib.Path):
    """All cases of a collection: {"server", "batch", "in_flight", "run"}, one after the other."""
    ours = servers[0]
    for server in servers:
        with server.turn():
            check_answers(server, collection, payload)
    queries = np.load(collection.queries)
    for batch in dict.fromkeys(batch for batch, _ in CLOSED):
        answer = work / f"answer-{collection.name}-{payload}-{batch}"
        with ours.turn(), Client(ours.address, ours.collection) as client:
            answer.write_bytes(client.ask(queries[:batch], payload))
        shape = np.load(collection.vectors, mmap_mode="r").shape
        with echo(arguments.echo, answer, shape) as floor, echo(arguments.echo, answer, shape, "raw-callback") as callback:
            for case in [case for case in CLOSED if case[0] == batch]:
                for server in [floor, callback, *servers]:
                    run = measure(arguments, server, collection, case, payload)
                    say(f"{collection.name}, payload {payload}, batch {case[0]}, {case[1]} in flight: {server.name} "
                        f"{run['queries_per_s']:,.0f} queries/s")
                    yield {"server": server.name, "batch": case[0], "in_flight": case[1], "run": run}
                run = measure(arguments, ours, collection, case, payload, "--stream")
                yield {"server": "Simile, streamed", "batch": case[0], "in_flight": case[1], "run": run}
            if batch == 1:
                for threads in ("1", "2"):
                    run = measure(arguments, floor, collection, (1, 64), payload, "--threads", threads)
                    yield {"server": f"client threads {threads}", "batch": 1, "in_flight": 64, "run": run}


def measure_load(arguments, server: Server, collection: Collection, best_rate: float) -> list[dict]:
    """The open loop: latencies of Simile against the load, drawn by `simile bench` itself."""
    rates = ",".join(f"{best_rate * share:.0f}" for share in LOAD_SHARES)
    return bench(arguments, server, collection, "--rate", rates, "--payload", "none", "--connections", str(CONNECTIONS_MAX),
                 "--plot", str(arguments.out / f"serving-load-{collection.name}.svg"))


def measure_collection(arguments, collection: Collection, work: pathlib.Path) -> dict:
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(simile(arguments.simile, collection.name, collection.folder))
        servers = [ours]
        for library in arguments.rivals:
            for server in python_servers(library, collection.vectors, collection.metadata(), work / "stubs"):
                servers.append(stack.enter_context(server))
        parts = {payload: list(measure_payload(arguments, servers, collection, payload, work))
                 for payload in collection.payloads}
        best = max(entry["run"]["queries_per_s"] for entry in parts["none"]
                   if entry["server"] == ours.name and entry["batch"] == 1)
        rows, dim = np.load(collection.vectors, mmap_mode="r").shape
        return {"collection": collection.name, "rows": rows, "dim": dim, "parts": parts,
                "load": measure_load(arguments, ours, collection, best)}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def command_text() -> str:
    """The command line without the machine's folders."""
    words = [word.split("=")[0] + "=" + ",".join(pathlib.Path(part).name for part in word.split("=", 1)[1].split(","))
             if "=" in word else pathlib.Path(word).name for word in sys.argv[1:]]
    return "tests/bench/serving/run.py " + shlex.join(words)


def main() -> int:
    arguments = parse()
    arguments.out.mkdir(parents=True, exist_ok=True)
    import faiss
    import grpc
    import torch
    about = {"date": datetime.date.today().isoformat(), "cpu": processor_name(), "processors": os.cpu_count(),
             "command": command_text(), "duration": arguments.duration,
             "versions": [f"faiss-cpu {faiss.__version__}", f"torch {torch.__version__}", f"numpy {np.__version__}",
                          f"grpcio {grpc.__version__}"]}
    try:
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            make_stubs(work / "stubs")
            results = [measure_collection(arguments, collection, work) for collection in collections(arguments, work)]
    except (Failed, OSError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        arguments.json.write_text(json.dumps({"about": about, "results": results}), encoding="utf-8")
    serving_report.write(arguments.out, about, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
