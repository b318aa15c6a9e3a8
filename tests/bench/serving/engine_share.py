#!/usr/bin/env python3
"""How much of its engine's speed the server gives: the same vectors, queries, k and instruction set, once through the
server under `simile bench` and once in engine_bench without a server, which take turns. Writes a section of
docs/benchmarks/serving.md.

Needs simile and engine_bench of build/bin (cmake --preset bench, then build both), and the virtual environment of run.py:

    rivals/bin/python tests/bench/serving/engine_share.py
    rivals/bin/python tests/bench/serving/engine_share.py --collections 200000x384,1000000x384 --isa avx512vnni,avx2

The rows are made: clustered, of unit length. Client and server share the machine's processors; the engine has all of them.
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
from typing import Iterator

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TESTS / "bench"))

import contender
import peer_report
from contender import Contender
from processor_name import processor_name
from servers import ROOT, Failed, Server, await_indexes, load, require_built, simile

BEGIN = "<!-- engine share: written by tests/bench/serving/engine_share.py -->\n"
END = "<!-- end of engine share -->\n"
COLLECTIONS = "5000x384,62423x384,200000x384,1000000x384,1000000x768"
QUERIES = 4_000
ENGINE_TURN_S = 1.0
VERIFIED_CALLS = ["--batch", 10, "--in-flight", 1, "--requests", 10, "--duration", "1s", "--warm-up", "0s", "--verify", "1"]


@dataclasses.dataclass(frozen=True)
class Load:
    """How a client asks: so many calls at a time, of so many queries each."""
    in_flight: int
    queries: int

    def engine_batch(self) -> int:
        return self.in_flight * self.queries

    def text(self) -> str:
        return f"{self.in_flight} single queries" if self.queries == 1 else f"one call of {self.queries:,}"


LOADS = [Load(1, 1_000), Load(1, 100), Load(64, 1)]


@dataclasses.dataclass
class Case:
    """What was measured of one collection, instruction set, k and load; a value a round."""
    rows: int
    dim: int
    isa: str
    k: int
    load: Load
    engine: str = ""
    engine_per_s: list[float] = dataclasses.field(default_factory=list)
    served_per_s: list[float] = dataclasses.field(default_factory=list)
    batch_size: list[float] = dataclasses.field(default_factory=list)
    left_out: str = ""

    def share(self) -> float:
        return statistics.median(self.served_per_s) / statistics.median(self.engine_per_s)


def parse() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collections", default=COLLECTIONS, metavar="ROWSxDIM,...", help="default %(default)s")
    parser.add_argument("--isa", default="", metavar="A,B", help="instruction sets, e.g. avx512vnni,avx2; default the fastest")
    parser.add_argument("--k", type=numbers, default=[10, 100], metavar="K,...", help="default 10,100")
    parser.add_argument("--rounds", type=int, default=5, help="of which medians are taken; default %(default)s")
    parser.add_argument("--duration-s", type=float, default=2, help="of a load of the server; default %(default)s")
    parser.add_argument("--limit-s", type=float, default=4, help="a case whose batch takes the engine longer is left out; default 4")
    parser.add_argument("--simile", type=pathlib.Path, default=ROOT / "build/bin/simile")
    parser.add_argument("--engine-bench", type=pathlib.Path, default=ROOT / "build/bin/engine_bench")
    parser.add_argument("--work", type=pathlib.Path, help="folder for the vectors, kept; default a temporary one")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/benchmarks/serving.md", help="the page to write to")
    parser.add_argument("--json", type=pathlib.Path, help="file to write all figures to")
    parser.add_argument("--after", type=pathlib.Path, metavar="JSON", help="figures of an earlier run, which are listed first")
    arguments = parser.parse_args()
    require_built(parser, arguments.simile, arguments.engine_bench)
    try:
        arguments.collections = [tuple(map(int, text.split("x"))) for text in arguments.collections.split(",")]
    except ValueError:
        parser.error(f"--collections {arguments.collections}: say ROWSxDIM, such as 200000x384")
    return arguments


def make_vectors(arguments: argparse.Namespace, folder: pathlib.Path, rows: int, dim: int) -> pathlib.Path:
    """A collection's folder, and the file of its queries beside it."""
    collection = folder / f"{rows}x{dim}"
    queries = folder / f"{rows}x{dim}-queries.npy"
    if not queries.exists():
        collection.mkdir(parents=True, exist_ok=True)
        subprocess.run([arguments.engine_bench, "--synthetic", "clustered", "--rows", str(rows), "--dim", str(dim),
                        "--query-count", str(QUERIES), "--save-vectors", collection / "vectors.npy", "--save-queries", queries],
                       check=True, stdout=subprocess.DEVNULL)
    return collection


class Engine:
    """engine_bench, which searches on command."""

    def __init__(self, bench: pathlib.Path, collection: pathlib.Path, queries: pathlib.Path, isa: str, log: pathlib.Path):
        command = [str(bench), "--paced", "--backend", "auto", "--vectors", str(collection / "vectors.npy"), "--queries", str(queries)]
        self._process = Contender("engine_bench", command + (["--isa", isa] if isa else []), os.cpu_count(), log)
        self._next = 0
        self.answered_by = ""

    def start(self) -> None:
        with self._process:
            pass

    def ms(self, batch: int, k: int) -> float:
        """One batch. REQUIRES: called in the engine's turn."""
        if self._next + batch > QUERIES:
            self._next = 0
        name = self._process.greeting["engines"][0]["name"]
        answer = self._process.call(f"run {name} {batch} {k} {self._next}")
        self._next += batch
        self.answered_by = answer["engine"]
        return answer["ms"]

    def queries_per_s(self, batch: int, k: int) -> float:
        """Of as many batches as about a second holds."""
        with self._process:
            first = self.ms(batch, k)
            count = max(3, round(ENGINE_TURN_S * 1e3 / max(first, 0.01)))
            return batch / statistics.median(self.ms(batch, k) for _ in range(count)) * 1e3

    def batch_ms(self, batch: int, k: int) -> float:
        with self._process:
            return self.ms(batch, k)

    def finish(self) -> None:
        self._process.finish()

    def kill(self) -> None:
        self._process.kill()


def ask(arguments: argparse.Namespace, server: Server, queries: pathlib.Path, k: int, *flags) -> dict:
    return load(arguments.simile, server, "--vectors", queries, "-k", k, "--timeout", 60, *flags)[0]


def check_answers(arguments: argparse.Namespace, server: Server, queries: pathlib.Path, isa: str) -> None:
    """That they are right, and come from the index and the instruction set."""
    run = ask(arguments, server, queries, 10, *VERIFIED_CALLS)
    if run["verify"]["wrong"] or not run["verify"]["compared"]:
        raise Failed(f"answers of the server: {json.dumps(run['verify'])}")
    engines = run["receipts"]["backends"]
    if not all(f"int8-{isa}" in engine for engine in engines):
        raise Failed(f"the server answers by {', '.join(engines)} and not by int8-{isa}")


def served(arguments: argparse.Namespace, server: Server, queries: pathlib.Path, case: Case) -> tuple[float, float]:
    """Queries a second, and the mean size of the passes. The rate is what was in flight over the mean latency, because a
    window of seconds holds few calls of a thousand queries."""
    # Long enough for two calls at least.
    call_s = case.load.queries / case.engine_per_s[-1]
    load_flags = ["--batch", case.load.queries, "--in-flight", case.load.in_flight, "--connections", min(case.load.in_flight, 16),
                  "--duration", f"{max(arguments.duration_s, 3 * call_s):g}s", "--warm-up", "300ms"]
    run = ask(arguments, server, queries, case.k, *load_flags)
    if run["errors"]:
        raise Failed(f"{case.load.text()}: {json.dumps(run['errors'])}")
    return case.load.engine_batch() / run["latency"]["mean_us"] * 1e6, run["receipts"]["batch_size_mean"]


def measure(arguments: argparse.Namespace, folder: pathlib.Path, rows: int, dim: int, isa: str) -> Iterator[Case]:
    collection = make_vectors(arguments, folder, rows, dim)
    queries = folder / f"{rows}x{dim}-queries.npy"
    engine = Engine(arguments.engine_bench, collection, queries, isa, folder / "engine.log")
    variables = {"SIMILE_BACKEND_ISA": isa} if isa else {}
    with contextlib.ExitStack() as stack:
        stack.callback(engine.kill)
        engine.start()
        server = stack.enter_context(simile(arguments.simile, "made", collection, variables=variables))
        with server.turn():
            await_indexes(arguments.simile, server)
            check_answers(arguments, server, queries, isa)
        for k in arguments.k:
            cases = [Case(rows, dim, isa, k, each) for each in LOADS]
            for case in cases:
                batch_ms = engine.batch_ms(case.load.engine_batch(), k)
                if batch_ms > arguments.limit_s * 1e3:
                    case.left_out = f"a batch takes the engine {batch_ms / 1e3:.1f} s"
            for _ in range(arguments.rounds):
                for case in cases:
                    if case.left_out:
                        continue
                    case.engine_per_s.append(engine.queries_per_s(case.load.engine_batch(), k))
                    with server.turn():
                        rate, batch = served(arguments, server, queries, case)
                    case.served_per_s.append(rate)
                    case.batch_size.append(batch)
                    case.engine = engine.answered_by
            for case in cases:
                say(case)
                yield case
        engine.finish()


def earlier(file: pathlib.Path) -> list[Case]:
    return [Case(**case | {"load": Load(**case["load"])}) for case in json.loads(file.read_text(encoding="utf-8"))]


def keep(arguments: argparse.Namespace, cases: list[Case]) -> None:
    if arguments.json:
        arguments.json.write_text(json.dumps([dataclasses.asdict(case) for case in cases], indent=1) + "\n", encoding="utf-8")


def say(case: Case) -> None:
    text = case.left_out or (f"engine {statistics.median(case.engine_per_s):,.0f}, served {statistics.median(case.served_per_s):,.0f} "
                             f"queries/s: {case.share():.2f}; passes of {statistics.median(case.batch_size):.1f}")
    print(f"{case.rows:,} x {case.dim}, {case.engine}, k {case.k}, {case.load.text()}: {text}", file=sys.stderr, flush=True)


def median_text(values: list[float], form: str) -> str:
    return f"{statistics.median(values):{form}}"


def table(cases: list[Case]) -> str:
    heads = ["rows", "engine", "k", "in flight", "engine alone, queries/s", "served, queries/s", "served / engine", "of rounds",
             "queries a pass"]
    lines = [heads, ["---:", "---", "---:", "---", *["---:"] * 5]]
    for case in cases:
        cells = [f"{case.rows:,} x {case.dim}", f"`{case.engine or case.isa}`", str(case.k), case.load.text()]
        if case.left_out:
            lines.append([*cells, case.left_out, "", "", "", ""])
            continue
        shares = [ours / alone for ours, alone in zip(case.served_per_s, case.engine_per_s)]
        lines.append([*cells, median_text(case.engine_per_s, ",.0f"), median_text(case.served_per_s, ",.0f"), f"**{case.share():.2f}**",
                      f"{min(shares):.2f} to {max(shares):.2f}", median_text(case.batch_size, ".1f")])
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def section(arguments: argparse.Namespace, cases: list[Case]) -> str:
    return (f"## What the server gives of its engine\n\n"
            f"{datetime.date.today().isoformat()}, {processor_name()}, {os.cpu_count()} processors that client and server share; "
            f"the engine has all of them. Medians of {arguments.rounds} rounds in which both take turns; clustered rows of unit "
            f"length, {QUERIES:,} different queries; answers of both were checked.\n\n"
            f"```\ntests/bench/serving/engine_share.py {shlex.join(sys.argv[1:])}\n```\n\n{table(cases)}")


def main() -> int:
    arguments = parse()
    cases = earlier(arguments.after) if arguments.after else []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.work or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for rows, dim in arguments.collections:
                for isa in arguments.isa.split(","):
                    for case in measure(arguments, folder, rows, dim, isa):
                        cases.append(case)
                        keep(arguments, cases)
        except (Failed, contender.Failed, subprocess.CalledProcessError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    peer_report.write_page(arguments.out, section(arguments, cases), [], BEGIN, END)
    print(table(cases))
    return 0


if __name__ == "__main__":
    sys.exit(main())
