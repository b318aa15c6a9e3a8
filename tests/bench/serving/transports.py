#!/usr/bin/env python3
"""gRPC's ways to serve a call, as echoes that do nothing, and Simile's server beside them: the table in
docs/design/serving.md. Prints it, with medians over the rounds, in which the servers take turns.

Needs build/bin/simile and build/bin/serving_echo (cmake --preset bench, then build both), grpcio, grpcio-tools and NumPy:

    python3 tests/bench/serving/transports.py --rounds 5

Asks for ten films like another one, under load by a vector, when idle by an id. Client and server share the machine.
"""

import argparse
import contextlib
import pathlib
import statistics
import sys
import tempfile

import numpy as np

from servers import FILMS, IDLE_INTERVAL_S, ROOT, Server, ask, echo, films_request, load, make_stubs, simile

TRANSPORTS = ["typed-callback", "raw-callback", "async-typed", "async-raw", "generic"]
IN_FLIGHT = [1, 8, 64, 256]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="default %(default)s")
    parser.add_argument("--duration", default="2s", help="measured time of each case; default %(default)s")
    parser.add_argument("--idle-calls", type=int, default=10, help="calls to an idle server in each round; default %(default)s")
    parser.add_argument("--simile", type=pathlib.Path, default=ROOT / "build/bin/simile")
    parser.add_argument("--echo", type=pathlib.Path, default=ROOT / "build/bin/serving_echo")
    return parser.parse_args()


def bench(arguments: argparse.Namespace, server: Server, in_flight: int) -> dict:
    return load(arguments.simile, server, "--vectors", FILMS / "preference_vectors.npy", "--in-flight", in_flight,
                "--connections", min(in_flight, 16), "--duration", arguments.duration, "--warm-up", "500ms")[0]


def measure(arguments: argparse.Namespace, servers: dict[str, Server], request: bytes) -> dict[str, list[dict]]:
    """Of each server and round: {in flight: run, "idle_us": latencies}."""
    measured = {name: [] for name in servers}
    for number in range(arguments.rounds):
        for name, server in servers.items():
            print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
            with server.turn():
                runs = {in_flight: bench(arguments, server, in_flight) for in_flight in IN_FLIGHT}
                _, idle_us = ask(server, request, arguments.idle_calls, IDLE_INTERVAL_S)
            measured[name].append(runs | {"idle_us": idle_us})
    return measured


def table(measured: dict[str, list[dict]]) -> str:
    titles = [f"{in_flight}: CPU, p50, p99 us" for in_flight in IN_FLIGHT]
    lines = [["in flight", *titles, "64: calls/s", f"every {IDLE_INTERVAL_S} s: p50, max ms"], ["---"] * (len(IN_FLIGHT) + 3)]
    for name, rounds in measured.items():
        cells = [name]
        for in_flight in IN_FLIGHT:
            runs = [measured_round[in_flight] for measured_round in rounds]
            figures = [statistics.median(run["server_cpu_us_per_call"] for run in runs),
                       *(statistics.median(run["latency"][key] for run in runs) for key in ("p50_us", "p99_us"))]
            cells.append(", ".join(f"{figure:,.0f}" for figure in figures))
        cells.append(f"{statistics.median(measured_round[64]['calls_per_s'] for measured_round in rounds):,.0f}")
        idle_us = [latency for measured_round in rounds for latency in measured_round["idle_us"]]
        cells.append(f"{statistics.median(idle_us) / 1e3:.1f}, {max(idle_us) / 1e3:.1f}" if idle_us else "")
        lines.append(cells)
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def main() -> int:
    arguments = parse()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        make_stubs(folder / "stubs")
        request = films_request(False)
        ours = stack.enter_context(simile(arguments.simile, "films", FILMS))
        with ours.turn():
            answer, _ = ask(ours, request)
        (folder / "answer").write_bytes(answer)
        shape = np.load(FILMS / "content_vectors.npy", mmap_mode="r").shape
        servers = {name: stack.enter_context(echo(arguments.echo, folder / "answer", shape, name)) for name in TRANSPORTS}
        servers["async-raw, 2 queues"] = stack.enter_context(echo(arguments.echo, folder / "answer", shape, "async-raw", 2))
        servers["Simile"] = ours
        print(f"answer of {len(answer)} bytes\n\n{table(measure(arguments, servers, request))}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
