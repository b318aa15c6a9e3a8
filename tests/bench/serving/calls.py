#!/usr/bin/env python3
"""What a call costs, beside its targets: the server's CPU, rates and latencies next to an echo that does nothing, the
engine without a server, and servers in Python. Prints a table of medians over rounds, in which the servers take turns.

Needs simile, serving_echo and engine_bench of build/bin (cmake --preset bench, then build them), and the virtual environment
of run.py:

    rivals/bin/python tests/bench/serving/calls.py
    rivals/bin/python tests/bench/serving/calls.py --rows films,idle --json calls.json

Asks for ten films like another one, by its id; the sentences by vectors. Client and server share the machine.
"""

import argparse
import concurrent.futures
import contextlib
import json
import pathlib
import subprocess
import sys
import threading
from typing import Iterator

import numpy as np

import targets
from targets import Figure, Machine
from servers import FILMS, IDLE_INTERVAL_S, ROOT, Failed, Server, ask, echo, films_request, python_servers, simile

ENGINE_BATCH = 64
OWN_CPU_US = 15  # a call may cost this much more than the echo and the engine's part
SINGLE_US = 80   # with one call in flight: longer than with the echo
IDLE_CALLS = 75


def in_flight(calls: int) -> list:
    return ["--in-flight", calls, "--connections", min(calls, 16)]


@contextlib.contextmanager
def films_beside_echo(machine: Machine, payload: bool):
    """Simile with the films, and echoes of what it answers: grpc++'s, and the own transport's."""
    with simile(machine.arguments.simile, "films", FILMS) as ours:
        with ours.turn():
            reply, _ = ask(ours, films_request(payload))
        file = machine.work / f"reply-{payload}"
        file.write_bytes(reply)
        shape = np.load(FILMS / "content_vectors.npy", mmap_mode="r").shape
        with echo(machine.arguments.echo, file, shape) as floor, echo(machine.arguments.echo, file, shape, "own") as own:
            yield ours, floor, own


def take_turns(machine: Machine, servers: list[Server], *flags, seconds: float = 4) -> list[tuple[dict, ...]]:
    """Of each round a run of each server."""
    rounds = []
    for _ in machine.rounds():
        runs = []
        for server in servers:
            with server.turn():
                runs.append(machine.load(server, *flags, seconds=seconds))
        rounds.append(tuple(runs))
    return rounds


def engine_queries_per_s(machine: Machine, vectors: pathlib.Path, queries: pathlib.Path, threads: int) -> float:
    """0 threads: every processor."""
    file = machine.work / "engine.json"
    command = [machine.arguments.engine_bench, "--vectors", vectors, "--queries", queries, "--batch", ENGINE_BATCH, "--k", 10,
               "--threads", threads, "--verify", 64, "--rounds", 3 if machine.arguments.quick else 15, "--json", file]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Failed(f"engine_bench: {run.stderr.strip()}")
    return json.loads(file.read_text(encoding="utf-8"))["cases"][0]["queries_per_s"]


def films(machine: Machine, payload: bool) -> Iterator[Figure]:
    """64 films in flight: CPU of a call, and the share of the echo's rate."""
    calls = machine.mix({"kind": "id", "payload": "all" if payload else "none"})
    with films_beside_echo(machine, payload) as servers:
        rounds = take_turns(machine, servers, *in_flight(64), *calls)
    cpu_us, echo_cpu_us, own_cpu_us = ([run["server_cpu_us_per_call"] for run in runs] for runs in zip(*rounds, strict=True))
    transport = [own / floor for own, floor in zip(own_cpu_us, echo_cpu_us, strict=True)]
    yield Figure("CPU of the own transport's echo, of grpc++'s", transport, 0.5)
    if payload:
        yield Figure("server CPU a call, with payload", cpu_us, 85, "us")
    else:
        queries = FILMS / "preference_vectors.npy"
        engine_us = 1e6 / engine_queries_per_s(machine, FILMS / "content_vectors.npy", queries, 1)
        floor_us = Figure("", echo_cpu_us, 0).median()
        machine.notes.append(f"a film costs the echo {floor_us:.1f} us of CPU a call and the engine alone {engine_us:.1f} us "
                             f"a query, {ENGINE_BATCH} at a time")
        yield Figure("server CPU a call", cpu_us, round(floor_us + engine_us + OWN_CPU_US, 1), "us")
        yield Figure("the same, aim", cpu_us, 60, "us")
    share = [ours["calls_per_s"] / floor["calls_per_s"] for ours, floor, _ in rounds]
    yield Figure("calls/s, of the echo's", share, 0.60 if payload else 0.55, at_least=True)


def single(machine: Machine) -> Iterator[Figure]:
    """One client, one call in flight."""
    with films_beside_echo(machine, False) as servers:
        rounds = take_turns(machine, servers, *in_flight(1), *machine.mix({"kind": "id", "payload": "none"}))
    p50_us = [ours["latency"]["p50_us"] for ours, _, _ in rounds]
    echo_us = Figure("", [floor["latency"]["p50_us"] for _, floor, _ in rounds], 0).median()
    yield Figure("one film in flight: p50", p50_us, round(echo_us) + SINGLE_US, "us")


def idle(machine: Machine) -> Iterator[Figure]:
    """One call now and then, and in between one to the echo."""
    calls = round(machine.seconds(IDLE_CALLS))
    with (films_beside_echo(machine, False) as (ours, floor, _), ours.turn(), floor.turn(),
          concurrent.futures.ThreadPoolExecutor() as pool):
        latencies_of = []
        for server in (ours, floor):
            latencies_of.append(pool.submit(ask, server, films_request(False), calls, IDLE_INTERVAL_S))
            threading.Event().wait(IDLE_INTERVAL_S / 2)
        ours_ms, echo_ms = (float(np.percentile(latencies.result()[1], 99)) / 1e3 for latencies in latencies_of)
    machine.notes.append(f"a call every {IDLE_INTERVAL_S} s takes the echo {echo_ms:.1f} ms (p99)")
    yield Figure(f"a film every {IDLE_INTERVAL_S} s: p99", [ours_ms], 4, "ms")


def query_vectors(machine: Machine, folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Of a collection of vectors: its file, and a file of queries, each 0.8 of one row and 0.2 of another."""
    file = next(path for name in ("content_vectors.npy", "vectors.npy") if (path := folder / name).exists())
    rows = np.load(file, mmap_mode="r")
    first, second = np.random.default_rng(1).integers(len(rows), size=(2, 2_000))
    queries = machine.work / f"queries-{folder.name}.npy"
    np.save(queries, (0.8 * rows[first] + 0.2 * rows[second]).astype(np.float32))
    return file, queries


def sentences(machine: Machine) -> Iterator[Figure]:
    """64 sentences in flight, against the engine without a server."""
    folder = machine.sentences()
    vectors, queries = query_vectors(machine, folder)
    engine = [engine_queries_per_s(machine, vectors, queries, 0) for _ in machine.rounds()]
    with simile(machine.arguments.simile, "sentences", folder) as ours:
        rounds = take_turns(machine, [ours], *in_flight(64), "--vectors", queries)
    share = [run["queries_per_s"] / rate for (run,), rate in zip(rounds, engine)]
    yield Figure(f"64 sentences, of the engine's rate at batch {ENGINE_BATCH}", share, 0.65, at_least=True)


def rivals(machine: Machine, folder: pathlib.Path, times_min: float) -> Iterator[Figure]:
    """Against servers in Python that search for one call at a time; run.py has those that search for calls together."""
    vectors, queries = query_vectors(machine, folder)
    metadata = [str(file)] if (file := folder / "metadata.jsonl").exists() else []
    libraries = []
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(simile(machine.arguments.simile, "collection", folder))]
        for library in ("faiss", "numpy"):
            for server in python_servers(library, vectors, metadata, machine.work / "stubs", batch_max=1):
                servers.append(stack.enter_context(server))
                libraries.append(library)
        rounds = take_turns(machine, servers, *in_flight(64), "--vectors", queries, seconds=1.5)
    for library in dict.fromkeys(libraries):
        times = [ours["calls_per_s"] / max(rival["calls_per_s"] for rival, name in zip(others, libraries) if name == library)
                 for ours, *others in rounds]
        yield Figure(f"times Python + {library}", times, times_min, at_least=True)


ROWS: targets.Rows = {
    "films": lambda machine: films(machine, False),
    "payload": lambda machine: films(machine, True),
    "sentences": sentences,
    "single": single,
    "idle": idle,
    "rivals-films": lambda machine: rivals(machine, FILMS, 7),
    "rivals-sentences": lambda machine: rivals(machine, machine.sentences(), 60),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--echo", type=pathlib.Path, default=ROOT / "build/bin/serving_echo")
    parser.add_argument("--engine-bench", type=pathlib.Path, default=ROOT / "build/bin/engine_bench")
    return targets.run(targets.parse(parser, ROWS))


if __name__ == "__main__":
    sys.exit(main())
