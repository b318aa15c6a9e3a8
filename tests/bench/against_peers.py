#!/usr/bin/env python3
"""Simile's CPU engine against its rivals, in one run: FAISS, torch, NumPy, usearch, all exact; torch bf16 for comparison.

Needs build/bin/engine_bench (make with -DSIMILE_BENCH=ON, or cmake --preset bench) and the rivals, in a virtual
environment of their own:

    python3 -m venv peers
    peers/bin/pip install -r tests/bench/requirements.txt
    peers/bin/python tests/bench/against_peers.py --data sentences=vectors.npy,queries.npy --synthetic all

Every contender is a process of its own with the same number of threads, stopped while another runs. Their answers are
compared before anything is timed. Writes one table and a picture for each data set into docs/benchmarks.
"""

import argparse
import datetime
import pathlib
import shlex
import subprocess
import sys
import tempfile

import numpy as np

import peer_plots
import peer_report
from contender import Failed
from peer_match import LIBRARIES, DataSet, Match, say
from processor_name import processor_name

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCHES, KS = [1, 32, 100, 1000], [10, 100]

# name: engine_bench's options, metric, batches, ks
PRESETS = {
    "clustered-1m": (["--synthetic", "clustered", "--rows", "1000000", "--dim", "384"], "cosine", BATCHES, KS),
    "isotropic-200k": (["--synthetic", "isotropic", "--rows", "200000", "--dim", "384"], "cosine", BATCHES, KS),
    "wide-200k": (["--synthetic", "clustered", "--rows", "200000", "--dim", "1536"], "cosine", [1, 32, 1000], [10]),
    "dot-1m": (["--synthetic", "clustered", "--rows", "1000000", "--dim", "384", "--norm-spread", "10"], "dot", [1, 32, 1000],
               [10]),
}


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", default=[], metavar="NAME=VECTORS,QUERIES", help="two .npy files")
    parser.add_argument("--metric", choices=["cosine", "dot"], default="cosine", help="of --data")
    parser.add_argument("--synthetic", action="append", default=[], choices=[*PRESETS, "all"])
    parser.add_argument("--batch", type=numbers, metavar="1,32", help="batch sizes, instead of each data set's own")
    parser.add_argument("--k", type=numbers, metavar="10,100", help="hits a query, likewise")
    parser.add_argument("--ours", default="auto", help="engines: auto, int8:avx512vnni, int8:avx2, ...; default auto")
    parser.add_argument("--rivals", default=",".join(LIBRARIES), help="libraries; default all: %(default)s")
    parser.add_argument("--threads", type=int, default=2, help="of every contender; default 2")
    parser.add_argument("--rounds", type=int, default=9, help="times each case is measured; default 9, slow ones less often")
    parser.add_argument("--limit-s", type=float, default=60, help="a rival that takes longer a round is left out; default 60")
    parser.add_argument("--bench", type=pathlib.Path, default=ROOT / "build/bin/engine_bench")
    parser.add_argument("--work", type=pathlib.Path, help="folder for vectors and answers; default a temporary one")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/benchmarks", help="folder for cpu.md and pictures")
    parser.add_argument("--json", type=pathlib.Path, help="file to write all figures to")
    parser.add_argument("--keep", action="store_true", help="keep what --json holds of data sets that are not run now")
    arguments = parser.parse_args()
    if not arguments.data and not arguments.synthetic:
        parser.error("nothing to compare on: give --data or --synthetic")
    if not arguments.bench.exists():
        parser.error(f"{arguments.bench.name} is not built: cmake --preset bench, then build the target engine_bench")
    if unknown := set(arguments.rivals.split(",")) - set(LIBRARIES):
        parser.error(f"no such rival: {', '.join(unknown)}; there are {', '.join(LIBRARIES)}")
    return arguments


def as_float32(source: pathlib.Path, target: pathlib.Path, metric: str) -> pathlib.Path:
    """Writes the vectors as every contender reads them: float32, for cosine of unit length, computed in double."""
    given = np.load(source, mmap_mode="r")
    out = np.lib.format.open_memmap(target, mode="w+", dtype=np.float32, shape=given.shape)
    for first in range(0, len(given), 16_384):
        part = given[first:first + 16_384].astype(np.float64)
        if metric == "cosine":
            part /= np.linalg.norm(part, axis=1, keepdims=True)
        out[first:first + 16_384] = part
    out.flush()
    return target


def given_sets(arguments: argparse.Namespace, work: pathlib.Path):
    for text in arguments.data:
        try:
            name, files = text.split("=", 1)
            vectors, queries = (pathlib.Path(file) for file in files.split(","))
        except ValueError:
            raise Failed(f"--data {text}: say NAME=vectors.npy,queries.npy") from None
        yield DataSet(name, as_float32(vectors, work / f"{name}.vectors.npy", arguments.metric),
                      as_float32(queries, work / f"{name}.queries.npy", arguments.metric), arguments.metric,
                      arguments.batch or BATCHES, arguments.k or KS)


def synthetic_sets(arguments: argparse.Namespace, work: pathlib.Path):
    names = list(PRESETS) if "all" in arguments.synthetic else arguments.synthetic
    for name in names:
        options, metric, batches, ks = PRESETS[name]
        vectors, queries = work / f"{name}.vectors.npy", work / f"{name}.queries.npy"
        if not (vectors.exists() and queries.exists()):
            say(f"{name}: drawing vectors")
            subprocess.run([arguments.bench, *options, "--metric", metric, "--save-vectors", vectors, "--save-queries", queries],
                           check=True)
        yield DataSet(name, vectors, queries, metric, arguments.batch or batches, arguments.k or ks)


def command_text() -> str:
    """The command line without the machine's folders."""
    words = [pathlib.Path(word).name if word.startswith(("/", "../", "./", "~")) else
             word.split("=")[0] + "=" + ",".join(pathlib.Path(part).name for part in word.split("=", 1)[1].split(","))
             if "=" in word else word for word in sys.argv[1:]]
    return "tests/bench/against_peers.py " + shlex.join(words)


def run(arguments: argparse.Namespace, work: pathlib.Path) -> None:
    about = {"date": datetime.date.today().isoformat(), "cpu": processor_name(), "threads": arguments.threads,
             "command": command_text(), "versions": [], "builds": {}}
    results = []
    if arguments.keep and arguments.json and arguments.json.exists():
        results, kept = peer_report.read_json(arguments.json)
        about |= {"versions": kept["versions"], "builds": kept["builds"], "command": f'{kept["command"]}\n{about["command"]}'}
    for sets in (given_sets(arguments, work), synthetic_sets(arguments, work)):
        for data in sets:
            match = Match(data, arguments.bench, arguments.ours.split(","), arguments.rivals.split(","), arguments.threads,
                          arguments.rounds, arguments.limit_s, work)
            measured = match.run()
            results = [result for result in results if result["data"] != data.name] + measured
            about["versions"] = list(dict.fromkeys(about["versions"] + [version for version in match.versions if version]))
            about["builds"][data.name] = [
                f'{build["name"]} {build["build_s"]:.2f} s, {build["index_bytes"] / 1e6:.0f} MB' for build in match.builds]
            # Written after each data set, because the next one may take long.
            write(arguments, results, about)
    print(peer_report.table(results, about))


def write(arguments: argparse.Namespace, results: list[dict], about: dict) -> None:
    plots = peer_plots.draw(results, arguments.out, about)
    peer_report.write_page(arguments.out / "cpu.md", peer_report.table(results, about), plots)
    if arguments.json:
        peer_report.write_json(arguments.json, results, about)


def main() -> int:
    arguments = parse()
    try:
        if arguments.work:
            arguments.work.mkdir(parents=True, exist_ok=True)
            run(arguments, arguments.work)
        else:
            with tempfile.TemporaryDirectory() as folder:
                run(arguments, pathlib.Path(folder))
    except FileNotFoundError as error:
        print(f"error: {error.filename}: no such file", file=sys.stderr)
        return 1
    except (Failed, OSError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
