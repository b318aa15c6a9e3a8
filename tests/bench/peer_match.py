"""One data set: every contender and every case, alternating."""

import dataclasses
import json
import pathlib
import statistics
import sys

import numpy as np

from contender import Contender, Failed, TooSlow

# A contender that takes longer than this for a run is run less often, and not warmed up in each round.
SLOW_S = 1.0
WARM_MS = 30  # of runs before the one that counts
SLOW_ROUNDS = 3
# Rows may be in either order where their exact scores differ by less than this, relative to the lengths.
NEAR_TIE = 2e-6

EXACT = ("scan", "faiss", "torch", "torch-chunked", "numpy", "usearch")
APPROXIMATE = ("torch-bf16", "torch-bf16-chunked")
LIBRARIES = {"faiss": ["faiss"], "torch": ["torch", "torch-chunked"], "numpy": ["numpy"], "usearch": ["usearch"],
             "torch-bf16": ["torch-bf16", "torch-bf16-chunked"]}


@dataclasses.dataclass
class DataSet:
    """Vectors and queries as every contender reads them: float32, unit length for cosine."""
    name: str
    vectors: pathlib.Path
    queries: pathlib.Path
    metric: str
    batches: list[int]
    ks: list[int]


@dataclasses.dataclass
class Entry:
    """What one engine did in one case."""
    times_ms: list[float] = dataclasses.field(default_factory=list)
    answered_by: str = ""
    note: str = ""  # why there are no times
    found_share: float = 1  # of the exact rows, for an approximate engine
    verified: int = 0  # queries whose answers were compared with the plain scan's; ours alone

    def median_ms(self) -> float | None:
        return statistics.median(self.times_ms) if self.times_ms else None


class Match:
    """Runs all cases of a data set. `ours` names engines of engine_bench: auto, int8:avx2, ..."""

    def __init__(self, data: DataSet, bench: pathlib.Path, ours: list[str], libraries: list[str], threads: int,
                 rounds: int, limit_s: float, work: pathlib.Path):
        self.data = data
        self.ours = ours
        self.rounds = rounds
        self.limit_s = limit_s
        self.work = work
        self.versions = []
        self.builds = []
        self.vectors = np.load(data.vectors, mmap_mode="r")
        self.queries = np.load(data.queries)
        self.json = work / f"{data.name}.engine.json"
        files = ["--vectors", str(data.vectors), "--queries", str(data.queries), "--threads", str(threads)]
        self.contenders = {}  # by engine
        for name, options, engines in engine_processes(ours):
            path = self.json.with_suffix(f".{name}.json")
            command = [str(bench), *files, "--metric", data.metric, "--paced", *options, "--json", str(path),
                       "--batch", str(max(data.batches)), "--k", str(max(data.ks))]
            self.add(Contender(name, command, threads, work / f"{name}.log"), engines)
        worker = pathlib.Path(__file__).with_name("peer_engines.py")
        for library in libraries:
            command = [sys.executable, "-B", str(worker), library, *files]
            self.add(Contender(library, command, threads, work / f"{library}.log"), LIBRARIES[library])

    def add(self, contender: Contender, engines: list[str]) -> None:
        say(f"{self.data.name}: starting {contender.name}")
        contender.start()
        self.versions.append(contender.greeting.get("version", ""))
        self.builds += [engine for engine in contender.greeting["engines"] if engine.get("index_bytes")]
        for engine in engines:
            self.contenders[engine] = contender

    def run(self) -> list[dict]:
        results = []
        try:
            for k in self.data.ks:
                for batch in self.data.batches:
                    entries = self.run_case(batch, k)
                    results.append({"data": self.data.name, "metric": self.data.metric, "batch": batch, "k": k,
                                    "rows": len(self.vectors), "dim": self.vectors.shape[1], "entries": entries})
            for contender in set(self.contenders.values()):
                contender.finish()
        finally:
            for contender in set(self.contenders.values()):
                contender.kill()
        self.read_verified(results)
        return results

    def run_case(self, batch: int, k: int) -> dict[str, Entry]:
        entries = {engine: Entry() for engine in self.contenders}
        answers = {}  # by the first query, then by engine
        for engine, entry in entries.items():
            self.first_run(engine, entry, batch, k, answers)
        self.compare(entries, answers)
        for number in range(self.rounds):
            # Another contender goes first in each round.
            order = list(entries)[number % len(entries):] + list(entries)[:number % len(entries)]
            for engine in order:
                self.timed_run(engine, entries[engine], batch, k, number, answers)
        self.compare(entries, answers)
        say(f"{self.data.name}: batch {batch}, k {k}: " + ", ".join(
            f"{engine} {entry.median_ms():.2f} ms" for engine, entry in entries.items() if entry.times_ms))
        return entries

    def first_run(self, engine: str, entry: Entry, batch: int, k: int, answers: dict) -> None:
        """Fills caches, lets the contender choose its settings, and reads its answers."""
        try:
            with self.contenders[engine] as contender:
                # A first run may try up to four settings, each within the limit.
                run = contender.call(f"run {engine} {batch} {k} 0", self.limit_s * 4)
                self.read_answers(contender, engine, 0, answers)
            if run["ms"] > self.limit_s * 1e3:
                entry.note = f"over {self.limit_s:g} s a round"
            entry.answered_by = run["engine"]
        except TooSlow:
            entry.note = f"over {self.limit_s:g} s a round"
        except Failed as error:
            if engine in self.ours:
                raise
            entry.note = str(error)

    def timed_run(self, engine: str, entry: Entry, batch: int, k: int, number: int, answers: dict) -> None:
        slow = entry.times_ms and entry.times_ms[0] > SLOW_S * 1e3
        if entry.note or slow and number >= SLOW_ROUNDS:
            return
        first = self.window(batch, number)
        with self.contenders[engine] as contender:
            # Untimed runs first, so that none is slowed by what the previous contender left in the caches.
            warm_ms = WARM_MS if slow else 0
            while warm_ms < WARM_MS:
                warm_ms += contender.call(f"run {engine} {batch} {k} {self.window(batch, number + 1)}")["ms"]
            run = contender.call(f"run {engine} {batch} {k} {first}")
            self.read_answers(contender, engine, first, answers)
        entry.times_ms.append(run["ms"])

    def read_answers(self, contender: Contender, engine: str, first: int, answers: dict) -> None:
        path = self.work / "answers.npy"
        contender.call(f"answers {path}")
        answers.setdefault(first, {})[engine] = np.load(path)

    def window(self, batch: int, number: int) -> int:
        return number * batch % (len(self.queries) - batch + 1)

    def compare(self, entries: dict[str, Entry], answers: dict) -> None:
        """Compares all answers with our first engine's."""
        shares = {engine: [] for engine in APPROXIMATE}
        for first, by_engine in answers.items():
            ours = by_engine[self.ours[0]]
            for engine, rows in by_engine.items():
                if engine in APPROXIMATE:
                    shares[engine] += [len(np.intersect1d(a, b)) / len(a) for a, b in zip(ours, rows)]
                elif wrong := self.disagreement(first, ours, rows):
                    raise Failed(f"{self.data.name}: {engine} and {self.ours[0]} disagree: {wrong}")
        for engine, found in shares.items():
            if found:
                entries[engine].found_share = float(np.mean(found))

    def disagreement(self, first: int, ours: np.ndarray, theirs: np.ndarray) -> str:
        """The first place where the rows differ and their exact scores do not tie; empty when there is none."""
        for query, rank in np.argwhere(ours != theirs):
            vector = self.queries[first + query].astype(np.float64)
            rows = [self.vectors[answer[query, rank]].astype(np.float64) for answer in (ours, theirs)]
            scores = [float(vector @ row) for row in rows]
            lengths = np.linalg.norm(vector) * max(np.linalg.norm(row) for row in rows)
            if abs(scores[0] - scores[1]) > NEAR_TIE * lengths:
                return (f"query {first + query}, rank {rank}: row {ours[query, rank]} with {scores[0]:.9f}, "
                        f"row {theirs[query, rank]} with {scores[1]:.9f}")
        return ""

    def read_verified(self, results: list[dict]) -> None:
        """Reads how many queries' answers engine_bench compared with the plain scan's."""
        verified = {}
        for path in self.work.glob(f"{self.json.stem}.*.json"):
            for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
                verified[case["name"], case["batch"], case["k"]] = case["verified_queries"]
        for result in results:
            for engine, entry in result["entries"].items():
                entry.verified = verified.get((engine, result["batch"], result["k"]), 0)


def engine_processes(ours: list[str]) -> list[tuple[str, list[str], list[str]]]:
    """Processes of engine_bench: name, options, engines. One for the best choice and the scan, one for what is forced."""
    processes = [("simile", ["--backend", ",".join([name for name in ours if ":" not in name] + ["scan"])],
                  [name for name in ours if ":" not in name] + ["scan"])]
    forced = [name for name in ours if ":" in name]
    if forced:
        isas = ",".join(name.split(":")[1] for name in forced)
        processes.append(("simile-forced", ["--backend", "int8", "--isa", isas], forced))
    return processes


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
