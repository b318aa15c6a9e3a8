#!/usr/bin/env python3
"""What a user would run instead: torch.matmul and torch.topk in fp16 on the same card, eager and captured in a CUDA graph.

    torch_rival.py --files FOLDER --json torch.json            vectors, queries and exact rows that gpu_bench --save wrote
    torch_rival.py --rows 10000000 --dim 768 --json torch.json   draws vectors itself, and finds exact rows in fp32

Needs torch with CUDA and nothing else.
"""

import argparse
import ast
import mmap
import pathlib
import statistics
import sys
import time

import json_file

BUDGET_S = 0.3  # per figure
EXACT_QUERIES = 16  # with exact rows, where none are given


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=pathlib.Path, help="folder with content_vectors.npy, queries.npy and rows.npy")
    parser.add_argument("--rows", type=int, help="instead: vectors to draw")
    parser.add_argument("--dim", type=int)
    parser.add_argument("--batch", default="1,32,100,1000")
    parser.add_argument("--k", default="10,100,1000")
    parser.add_argument("--json", type=pathlib.Path, help="file to write all figures to")
    arguments = parser.parse_args()
    if not arguments.files and not (arguments.rows and arguments.dim):
        parser.error("nothing to search: give --files, or --rows and --dim")
    return arguments


def read_npy(torch, path: pathlib.Path):
    """The file as a tensor on the host, without NumPy (format: NEP 1)."""
    with path.open("rb") as file:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    length_bytes = 2 if memory[6] == 1 else 4
    begin = 8 + length_bytes
    length = int.from_bytes(memory[8:begin], "little")
    head = ast.literal_eval(memory[begin:begin + length].decode("latin1"))
    kind = {"<f4": torch.float32, "<i8": torch.int64}[head["descr"]]
    return torch.frombuffer(memory, dtype=kind, offset=begin + length).reshape(head["shape"])


def given(torch, folder: pathlib.Path):
    vectors = read_npy(torch, folder / "content_vectors.npy")
    fp16_rows = torch.empty(vectors.shape, dtype=torch.float16, device="cuda")
    for first in range(0, len(vectors), 262_144):
        fp16_rows[first:first + 262_144] = vectors[first:first + 262_144].cuda().half()
    return fp16_rows, read_npy(torch, folder / "queries.npy"), read_npy(torch, folder / "rows.npy"), "the same vectors and queries"


def drawn(torch, rows: int, dim: int, batch: int, k: int):
    """Unit vectors in random directions: torch's time does not depend on their directions."""
    torch.manual_seed(1)
    fp16_rows = torch.empty((rows, dim), dtype=torch.float16, device="cuda")
    queries = torch.nn.functional.normalize(torch.randn((batch, dim), device="cuda"))
    asked = queries[:EXACT_QUERIES]
    best_scores = torch.empty((len(asked), 0), device="cuda")
    best_rows = torch.empty((len(asked), 0), dtype=torch.int64, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    for first in range(0, rows, 262_144):
        part = torch.nn.functional.normalize(torch.randn((min(262_144, rows - first), dim), device="cuda"))
        fp16_rows[first:first + len(part)] = part.half()
        scores, found = torch.topk(asked @ part.T, min(k, len(part)), dim=1)
        scores, found = torch.cat([best_scores, scores], 1), torch.cat([best_rows, found + first], 1)
        best_scores, order = torch.topk(scores, min(k, scores.shape[1]), dim=1)
        best_rows = found.gather(1, order)
    return fp16_rows, queries.cpu(), best_rows.cpu(), "vectors of its own, in random directions"


def spread(samples: list[float]) -> dict:
    return {"median": statistics.median(samples), "min": min(samples), "max": max(samples), "samples": len(samples)}


def device_times(torch, work) -> dict:
    """Microseconds of one run, by events around runs of about a millisecond in total."""
    def sample(runs: int) -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(runs):
            work()
        end.record()
        end.synchronize()
        return 1e3 * begin.elapsed_time(end) / runs
    sample(3)
    runs = max(1, min(64, int(1_000 / max(sample(3), 1)) + 1))
    samples, began = [], time.perf_counter()
    while len(samples) < 5 or (len(samples) < 25 and time.perf_counter() - began < BUDGET_S):
        samples.append(sample(runs))
    return spread(samples)


def host_times(torch, work) -> dict:
    """Microseconds from a query in pinned memory to rows and scores in pinned memory."""
    samples, began = [], time.perf_counter()
    for _ in range(3):
        work()
        torch.cuda.synchronize()
    while len(samples) < 7 or (len(samples) < 200 and time.perf_counter() - began < BUDGET_S):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        samples.append(1e6 * (time.perf_counter() - start))
    return spread(samples)


def recall(found, exact, k: int) -> float | None:
    """The share of the exact rows that are among those found, over the queries whose exact rows are known."""
    known = min(len(found), len(exact))
    if known == 0 or exact.shape[1] < k:
        return None
    hits = sum(len(set(found[i, :k].tolist()) & set(exact[i, :k].tolist())) for i in range(known))
    return hits / (known * k)


def warm_up(torch, fp16_rows, inputs: dict) -> None:
    """The first product of each size loads code and plans, which no later one does, and which a capture does not allow."""
    for _, asked in inputs.values():
        torch.topk(asked @ fp16_rows[:262_144].T, 1, dim=1)
    torch.cuda.synchronize()


def measure(torch, fp16_rows, pinned, asked, exact, k: int) -> dict:
    batch = len(asked)
    case = {"batch": batch, "k": k}
    transposed = fp16_rows.T

    def search():
        return torch.topk(asked @ transposed, k, dim=1)

    scores, rows = search()
    case["recall"] = recall(rows.cpu(), exact, k)
    pinned_scores, pinned_rows = scores.cpu().pin_memory(), rows.cpu().pin_memory()
    del scores, rows

    def eager_from_host():
        asked.copy_(pinned, non_blocking=True)
        scores, rows = search()
        pinned_scores.copy_(scores, non_blocking=True)
        pinned_rows.copy_(rows, non_blocking=True)

    case["eager_us"] = device_times(torch, search)
    case["host_eager_us"] = host_times(torch, eager_from_host)
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            graphed_scores, graphed_rows = search()
    except RuntimeError as error:
        torch.cuda.synchronize()
        case["graph_note"] = "cannot be captured" if "memory" not in str(error) else "out of memory"
        return case

    def graphed_from_host():
        asked.copy_(pinned, non_blocking=True)
        graph.replay()
        pinned_scores.copy_(graphed_scores, non_blocking=True)
        pinned_rows.copy_(graphed_rows, non_blocking=True)

    case["graphed_us"] = device_times(torch, graph.replay)
    case["host_graphed_us"] = host_times(torch, graphed_from_host)
    return case


def line_of(case: dict) -> str:
    times = {name: case[name]["median"] for name in ("eager_us", "graphed_us", "host_eager_us", "host_graphed_us") if name in case}
    found = f' recall {case["recall"]:.4f}' if case.get("recall") is not None else ""
    return " ".join(f"{name} {us:.1f}" for name, us in times.items()) + found + case.get("note", "") + case.get("graph_note", "")


def note_of(error: RuntimeError) -> str:
    lines = str(error).splitlines() or [type(error).__name__]
    return "out of memory" if "out of memory" in lines[0] else lines[0][:80]


def main() -> int:
    arguments = parse()
    try:
        import torch
    except ImportError:
        print("error: this Python has no torch: run it with one that has (run.py --python)", file=sys.stderr)
        return 1
    if not torch.cuda.is_available():
        print("error: torch finds no GPU; run this on a machine with an NVIDIA card, with a torch built for CUDA", file=sys.stderr)
        return 2
    batches, ks = ([int(word) for word in text.split(",")] for text in (arguments.batch, arguments.k))
    with torch.inference_mode():
        fp16_rows, queries, exact, description = given(torch, arguments.files) if arguments.files else \
            drawn(torch, arguments.rows, arguments.dim, max(batches), max(ks))
        inputs = {batch: (pinned := queries[:batch].half().pin_memory(), pinned.cuda()) for batch in batches}
        warm_up(torch, fp16_rows, inputs)
        results = {"torch": torch.__version__, "cuda": torch.version.cuda, "card": torch.cuda.get_device_name(),
                   "data": description, "rows": len(fp16_rows), "dim": fp16_rows.shape[1]}
        results["cases"] = [{"batch": batch, "k": k} for k in ks for batch in batches]
        for index, (k, batch) in enumerate((k, batch) for k in ks for batch in batches):
            try:
                case = measure(torch, fp16_rows, *inputs[batch], exact, k)
            except RuntimeError as error:  # out of memory, or a size that it does not support
                case = {"batch": batch, "k": k, "note": note_of(error)}
            results["cases"][index] = case
            print(f"batch {batch} k {k}: {line_of(case)}", flush=True)
            json_file.write(arguments.json, results)
            torch.cuda.synchronize()  # raises where the error has ended the device's context
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
