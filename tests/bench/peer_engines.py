#!/usr/bin/env python3
"""One library's exact search, in a process of its own, a line a run.

    peer_engines.py LIBRARY --vectors F.npy --queries Q.npy --threads N

Uses the protocol of engine_bench --paced: begins with {"ready": true, "engines": [{"name"}, ...]}; answers `run ENGINE BATCH K
FIRST` with {"ms", "engine"} and `answers PATH` (the last run's rows, int64 [batch, k]) with {}; {"error"} for a command that fails.
Started by against_peers.py for each rival.
"""

import argparse
import json
import sys
import time

import numpy as np

CHUNK_ROWS = 50_000
# The greatest share of the free memory for the scores of a whole batch against all rows.
SCORES_SHARE_MAX = 0.5


class Unfit(Exception):
    """Why a run is left out; the message appears in the table's notes."""


def require_memory(byte_count: int) -> None:
    with open("/proc/meminfo", encoding="ascii") as lines:
        available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    if byte_count > available * SCORES_SHARE_MAX:
        raise Unfit(f"its scores would take {byte_count / 1e9:.0f} GB")


class Faiss:
    """IndexFlatIP. The fastest of its settings differs by batch; each batch size uses its best."""

    # (distance_compute_blas_threshold, distance_compute_blas_database_bs); None: the default.
    SETTINGS = (None, (1, 1_024), (1, 8_192), (1, 65_536))

    def __init__(self, vectors: np.ndarray, threads: int):
        import faiss
        faiss.omp_set_num_threads(threads)
        self.cvar = faiss.cvar
        self.default = (self.cvar.distance_compute_blas_threshold, self.cvar.distance_compute_blas_database_bs)
        self.index = faiss.IndexFlatIP(vectors.shape[1])
        self.index.add(vectors)
        self.best = {}
        self.engines = {"faiss": self.search}
        self.version = f"faiss-cpu {faiss.__version__}"

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        self.use(self.best[len(queries)])
        return self.index.search(queries, k)[1]

    def use(self, setting) -> None:
        threshold, block = setting or self.default
        self.cvar.distance_compute_blas_threshold = threshold
        self.cvar.distance_compute_blas_database_bs = block

    def prepare(self, queries: np.ndarray, k: int) -> None:
        if len(queries) in self.best:
            return
        seconds = {}
        for setting in self.SETTINGS:
            self.use(setting)
            start = time.perf_counter()
            self.index.search(queries, k)
            seconds[setting] = time.perf_counter() - start
        self.best[len(queries)] = min(seconds, key=seconds.get)


class Torch:
    """matmul and topk, whole and in chunks of rows whose scores stay small; in fp32, or (approximately) in bf16."""

    def __init__(self, vectors: np.ndarray, threads: int, dtype: str):
        import torch
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.torch = torch
        self.dtype = getattr(torch, dtype)
        self.rows = torch.from_numpy(vectors).to(self.dtype)
        self.version = f"torch {torch.__version__}"
        name = "torch" if dtype == "float32" else "torch-bf16"
        self.engines = {name: self.whole, f"{name}-chunked": self.chunked}

    def tensor(self, queries: np.ndarray):
        return self.torch.from_numpy(queries).to(self.dtype)

    def whole(self, queries: np.ndarray, k: int) -> np.ndarray:
        require_memory(len(queries) * len(self.rows) * self.rows.element_size())
        return self.torch.topk(self.tensor(queries) @ self.rows.T, k).indices.numpy()

    def chunked(self, queries: np.ndarray, k: int) -> np.ndarray:
        torch, wanted = self.torch, self.tensor(queries)
        scores, indices = [], []
        for first in range(0, len(self.rows), CHUNK_ROWS):
            rows = self.rows[first:first + CHUNK_ROWS]
            best = torch.topk(wanted @ rows.T, min(k, len(rows)))
            scores.append(best.values)
            indices.append(best.indices + first)
        best = torch.topk(torch.cat(scores, 1), k)
        return torch.gather(torch.cat(indices, 1), 1, best.indices).numpy()


class NumPy:
    """matmul and argpartition; in chunks of rows where the whole would not stay small."""

    WHOLE_SCORES_MAX = 64 << 20

    def __init__(self, vectors: np.ndarray, _threads: int):
        self.rows = vectors
        self.version = f"numpy {np.__version__}"
        self.engines = {"numpy": self.search}

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        whole = len(queries) * len(self.rows) <= self.WHOLE_SCORES_MAX
        chunk = len(self.rows) if whole else CHUNK_ROWS
        scores, indices = [], []
        for first in range(0, len(self.rows), chunk):
            part = queries @ self.rows[first:first + chunk].T
            best = self.best(part, min(k, part.shape[1]))
            scores.append(np.take_along_axis(part, best, 1))
            indices.append(best + first)
        scores, indices = np.concatenate(scores, 1), np.concatenate(indices, 1)
        best = self.best(scores, k)
        order = np.argsort(-np.take_along_axis(scores, best, 1), 1, kind="stable")
        return np.take_along_axis(indices, np.take_along_axis(best, order, 1), 1)

    @staticmethod
    def best(scores: np.ndarray, k: int) -> np.ndarray:
        count = scores.shape[1]
        return np.argpartition(scores, count - k, axis=1)[:, count - k:]


class Usearch:
    """The exact search of usearch.index."""

    def __init__(self, vectors: np.ndarray, threads: int):
        import usearch
        from usearch.index import MetricKind, search
        self.search_exactly, self.metric = search, MetricKind.IP
        self.rows, self.threads = vectors, threads
        self.version = f"usearch {usearch.__version__}"
        self.engines = {"usearch": self.search}

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        found = self.search_exactly(self.rows, queries, k, self.metric, exact=True, threads=self.threads)
        return np.asarray(found.keys).reshape(len(queries), -1)


LIBRARIES = {
    "faiss": Faiss,
    "torch": lambda vectors, threads: Torch(vectors, threads, "float32"),
    "torch-bf16": lambda vectors, threads: Torch(vectors, threads, "bfloat16"),
    "numpy": NumPy,
    "usearch": Usearch,
}


class Session:
    """Carries out commands."""

    def __init__(self, library, queries: np.ndarray):
        self.library = library
        self.queries = queries
        self.rows = None

    def do(self, line: str) -> dict:
        command, rest = line.split(" ", 1)
        if command == "answers":
            np.save(rest, np.asarray(self.rows, dtype=np.int64))
            return {}
        engine, batch, k, first = rest.split()
        queries = np.ascontiguousarray(self.queries[int(first):int(first) + int(batch)])
        if hasattr(self.library, "prepare"):
            self.library.prepare(queries, int(k))
        search = self.library.engines[engine]
        start = time.perf_counter()
        self.rows = search(queries, int(k))
        return {"ms": (time.perf_counter() - start) * 1e3, "engine": engine}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("--vectors", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    library = LIBRARIES[arguments.library](np.load(arguments.vectors), arguments.threads)
    session = Session(library, np.load(arguments.queries))
    engines = [{"name": name} for name in library.engines]
    print(json.dumps({"ready": True, "engines": engines, "version": library.version}), flush=True)
    for line in sys.stdin:
        try:
            answer = session.do(line.strip())
        except (Unfit, MemoryError) as error:
            answer = {"error": str(error) or "no memory"}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
