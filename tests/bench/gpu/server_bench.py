#!/usr/bin/env python3
"""A server over given vectors, asked over gRPC on this machine: `simile bench` at several loads, with the CPU cores that the server's
threads of each name take, and its A100 report.

    server_bench.py --simile build/bin/simile --files FOLDER --json server.json     FOLDER of gpu_bench --save

The figures are written after each load. Exits with 1 when the server does not start, or an answer is wrong.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import json_file


class Failed(Exception):
    """The text is for a person."""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simile", type=pathlib.Path, required=True, help="the program")
    parser.add_argument("--files", type=pathlib.Path, required=True, help="folder with content_vectors.npy")
    parser.add_argument("--in-flight", default="1,16,64,256", help="loads, a run each; default 1,16,64,256")
    parser.add_argument("--duration", type=float, default=4, help="seconds of a run; default 4")
    parser.add_argument("--backend", default="gpu", help="of simile serve; default gpu, so that it says why there is none")
    parser.add_argument("--json", type=pathlib.Path, help="file to write all figures to")
    return parser.parse_args()


@contextlib.contextmanager
def serving(program: pathlib.Path, folder: pathlib.Path, backend: str):
    """Yields the server's process, its address and its lines about backend and collection."""
    command = [str(program), "serve", "--collection", f"rows={folder}", "--backend", backend, "--port", "0", "--no-metrics",
               "--die-with-parent"]
    with tempfile.NamedTemporaryFile("a") as log:  # and no pipe, which would fill and stop the server
        printed = pathlib.Path(log.name)
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            found = None
            while found is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.05)
                lines = printed.read_text(encoding="utf-8")
                found = re.search(r"listening on (\S+:\d+)", lines)
                if found is None and process.returncode is not None:
                    raise Failed(f'the server ended before it listened: {" ".join(lines.split())}')
            yield process.pid, found[1], lines
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
            print("The server's last lines:", *printed.read_text(encoding="utf-8").splitlines()[-40:], sep="\n", flush=True)


def asked(program: pathlib.Path, address: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(program), "bench", "--server", address, *words], capture_output=True, text=True, check=False,
                          timeout=120)


def thread_seconds(process: int) -> collections.Counter:
    """CPU seconds so far, by thread name."""
    seconds: collections.Counter = collections.Counter()
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            name, _, fields = (task / "stat").read_text(encoding="utf-8").partition("(")[2].rpartition(")")
            seconds[name] += sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return seconds


def one_load(program: pathlib.Path, process: int, address: str, in_flight: int, seconds: float) -> dict:
    began, before = time.monotonic(), thread_seconds(process)  # the warm-up counts, too
    done = asked(program, address, "--in-flight", str(in_flight), "--duration", f"{seconds}s", "--warm-up", f"{seconds / 4}s",
                 "--verify", "0.01", "--json")
    if not done.stdout.startswith("{"):
        raise Failed(f"simile bench: {done.stderr.strip() or done.stdout.strip()}")
    spent = thread_seconds(process) - before  # a thread that took none is left out
    spent_s = time.monotonic() - began
    run = json.loads(done.stdout)["runs"][0]
    latency = run["latency"]
    return {"in_flight": in_flight, "rate": run["queries_per_s"], "latency_us": [latency[name] for name in ("p50_us", "p99_us", "p99_9_us")],
            "engine": ", ".join(run["receipts"]["backends"]), "cores_by_thread": {name: each / spent_s for name, each in spent.most_common()},
            "compared": run["verify"]["compared"], "wrong": run["verify"]["wrong"]}


def measure(arguments: argparse.Namespace) -> None:
    with serving(arguments.simile, arguments.files, arguments.backend) as (process, address, lines):
        print(lines, end="", flush=True)
        shape = re.search(r"([\d,]+) vectors x (\d+)", lines)
        results = {"rows": int(shape[1].replace(",", "")), "dim": int(shape[2]), "runs": [], "a100": ""}
        for in_flight in map(int, arguments.in_flight.split(",")):
            results["runs"].append(one_load(arguments.simile, process, address, in_flight, arguments.duration))
            print(json.dumps(results["runs"][-1]), flush=True)
            json_file.write(arguments.json, results)
        report = asked(arguments.simile, address, "--report", "a100")
        if report.returncode != 0:
            raise Failed(f"simile bench --report a100: {report.stderr.strip()}")
        print(report.stdout)
        json_file.write(arguments.json, results | {"a100": report.stdout})
    if wrong := sum(run["wrong"] for run in results["runs"]):
        raise Failed(f"{wrong} answers are wrong")


def report_failure(run: Callable[[], None]) -> int:
    """Runs it, prints why it failed, and returns the exit code."""
    try:
        run()
    except Failed as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    return 0


def main() -> int:
    arguments = parse()
    return report_failure(lambda: measure(arguments))


if __name__ == "__main__":
    sys.exit(main())
