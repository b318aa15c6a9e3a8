#!/usr/bin/env python3
"""Estimated device times of the GPU engine: arithmetic from assumed rates, never measured. Prints the tables of
docs/design/gpu-engine.md.

    python3 tests/bench/gpu/estimates.py
"""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Card:
    name: str
    memory: float        # bytes a second: 90% of the data sheet's
    fp16: float          # multiply-adds of tensor cores a second, as products reach them
    int8: float          # 0: no product of the scan's shape
    l2: float            # bytes a second, read
    l2_bytes: int
    multiprocessors: int
    latency: float       # of a load from memory
    bytes: float
    bus: float           # bytes a second to the host


CARDS = (
    Card("H200", 4.3e12, 395e12, 790e12, 4.5e12, 50 << 20, 132, 0.52e-6, 141e9, 50e9),
    Card("A100", 1.8e12, 135e12, 270e12, 3.0e12, 40 << 20, 108, 0.5e-6, 80e9, 24e9),
    Card("L4", 0.27e12, 30e12, 60e12, 1.5e12, 48 << 20, 58, 0.5e-6, 24e9, 24e9),
    Card("T4", 0.25e12, 17e12, 0, 0.8e12, 4 << 20, 40, 0.45e-6, 16e9, 12e9),
)


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    rows: int
    dim: int
    k: int
    hits: float        # of a query in the fp16 scan, as served: the table of hits in docs/design/gpu-engine.md
    kept: float        # of these, rescored
    int8_hits: float
    int8_kept: float


CASES = (
    Case("62,423 x 384, k 10", 62_423, 384, 10, 88, 11, 53, 12),
    Case("1M x 768, k 100", 1_000_000, 768, 100, 463, 120, 1_282, 198),     # the mean of clustered and isotropic rows
    Case("10M x 768, k 100", 10_000_000, 768, 100, 1_850, 120, 5_130, 198),  # extrapolated from it
)
BATCHES = (1, 8, 32, 100, 1000)
STEPS = ("plain", "loads", "gates", "tiles", "int8", "off")  # each with those before it; docs say what they are

LAUNCH = 2.2e-6        # one launch and its end; the next ones of a graph
NEXT_LAUNCH = 1.2e-6
BARRIER = 1.5e-6       # of the grid
RAMP_AND_TAIL = 2.2e-6
HIT = 0.6e-9           # staging and appending one
SECOND_GATE = 4e-6     # its barrier and ranks; without it there are twice the hits
SECOND_GATE_ROWS = 262_144  # the least that have one
MMA_SYNC = 0.75        # of the rate of products
SCAN_MAX = 64
TILE_BYTES = 17 << 20  # of the scores, two of them
GRANULE = 128          # rows, of which tiles are made
BUDGET = 0.8           # gpu.memory_fraction


def rescore(card, case, kept, batch, step):
    rate = 0.6 * card.memory if fits(card, case, 4) else card.bus
    streamed = batch * kept * case.dim * 4 / rate
    if step == "plain":  # one block a query, 16 rows at a time, a load and its wait 32 dimensions at a time
        return max(streamed, math.ceil(kept / 16) * case.dim / 32 * card.latency)
    spread = NEXT_LAUNCH if kept > 16 else 0
    return max(streamed, 3 * card.latency) + spread


def tail(card, hits, batch, step):
    """Gate of the scan, names of hits, cut, order, proof."""
    if step in ("plain", "loads"):
        gates = math.ceil(min(batch, SCAN_MAX) / 8) * 1.1e-6
        return gates + math.ceil(hits / 256) * 2 * card.latency + 3e-6
    return 1.2e-6 + 2 * card.latency + 3e-6


def scan(card, case, batch, step, int8):
    """One fused pass for a batch that fits it."""
    row_bytes = case.dim * (1 if int8 else 2) + (8 if int8 else 0)
    hits, kept = (case.int8_hits, case.int8_kept) if int8 else (case.hits, case.kept)
    gates = 0.0
    if case.rows >= SECOND_GATE_ROWS:
        if step in ("int8", "off") and batch * hits * HIT > SECOND_GATE:
            gates = SECOND_GATE
        else:
            hits *= 2
    slots = max(16, 16 * math.ceil(batch * (2 if int8 else 1) / 16))
    stream = case.rows * row_bytes / card.memory  # also where they would stay in the L2
    products = case.rows * case.dim * slots / (MMA_SYNC * (card.int8 if int8 else card.fp16))
    sample = 0 if case.rows < 100_000 and step == "off" and batch <= 32 else \
        min(16_384, case.rows / 8) * row_bytes / card.memory + BARRIER
    return (LAUNCH + RAMP_AND_TAIL + sample + gates + max(stream, products) + batch * hits * HIT + BARRIER
            + tail(card, hits, batch, step) + rescore(card, case, kept, batch, step))


def slots_of(batch):
    """Queries of a pass: pass_plan.cpp, RoundedQueries."""
    if batch <= 64:
        return 1 << (batch - 1).bit_length()
    step = (1 << ((batch - 1).bit_length() - 1)) // 8
    return math.ceil(batch / step) * step


def tile_rows(card, case, batch):
    """As pass_plan.cpp plans them, TileRows: what the L2 holds, but at least one wave of the product's blocks."""
    slots = slots_of(batch)
    columns = math.ceil(slots / 256)
    fit = TILE_BYTES // (2 * slots * GRANULE)
    in_l2 = int(0.6 * card.l2_bytes) // (2 * GRANULE * (case.dim + slots))
    granules = min(fit, max(card.multiprocessors // columns, in_l2))
    if granules * columns > card.multiprocessors:
        granules = granules * columns // card.multiprocessors * card.multiprocessors // columns
    return GRANULE * min(granules, math.ceil(case.rows / GRANULE))


def gemm(card, case, batch, step):
    """Products by tiles, gate, select, finish."""
    efficiency = 0.75 if case.dim < 512 else 0.9
    columns = 128 * math.ceil(batch / 128)
    scores = case.rows * batch * 2

    def tiles_of(rows_of_tile):
        stays = rows_of_tile * (2 * case.dim + 4 * batch) < 1.2 * card.l2_bytes  # its rows and two tiles' scores
        moved = case.rows * case.dim * 2 + (0 if stays else 2 * scores)
        products = max(case.rows * case.dim * columns / (card.fp16 * efficiency), moved / (0.9 * card.memory))
        return products + math.ceil(case.rows / rows_of_tile) * 0.4e-6

    planned = step in ("tiles", "int8", "off")
    by_tiles = tiles_of(tile_rows(card, case, batch) if planned else TILE_BYTES / 2 / batch)
    gate = 12e-6 if step in ("plain", "loads") else 4e-6
    return (LAUNCH + by_tiles + 0.65 * scores / card.l2 + gate + 2 * NEXT_LAUNCH + tail(card, case.hits, batch, step)
            + rescore(card, case, case.kept * 0.9, batch, step))


def fits(card, case, bytes_each):
    """Whether the fp32 rows (4) or the int8 rows (1) fit beside the fp16 rows and the workspace."""
    return case.rows * case.dim * (2 + bytes_each) < BUDGET * card.bytes - 1.5e9


def best(card, case, batch, step):
    """Seconds of the fastest strategy that the engine has after a step."""
    scan_max = 128 if step == "off" else SCAN_MAX
    if batch > 2 * scan_max:
        return gemm(card, case, batch, step)
    passes = math.ceil(batch / scan_max)
    times = [passes * scan(card, case, math.ceil(batch / passes), step, False) if batch <= scan_max else math.inf]
    if batch > SCAN_MAX:
        times.append(gemm(card, case, batch, step))
    if step in ("int8", "off") and card.int8 and batch <= SCAN_MAX and fits(card, case, 1):
        times.append(scan(card, case, batch, step, True))
    return min(times)


def text(seconds):
    """Microseconds with two digits, three from 1,000 on."""
    us = seconds * 1e6
    digits = 2 if us < 1000 else 3
    unit = 10 ** max(0, math.floor(math.log10(us)) + 1 - digits)
    return f"{round(us / unit) * unit:,}"


def tables():
    """The lines of both."""
    yield "H200, microseconds on the device; each column with those before it\n"
    yield "| | batch | floor | " + " | ".join(STEPS) + " |"
    yield "|---|---:|---:|" + "---:|" * len(STEPS)
    card = CARDS[0]
    for case in CASES:
        for batch in BATCHES:
            floor = max(case.rows * case.dim * 2 / card.memory, case.rows * case.dim * batch / card.fp16)
            row = [text(best(card, case, batch, step)) for step in STEPS]
            yield f"| {case.name} | {batch} | {text(floor)} | " + " | ".join(row) + " |"
    yield "\nFrom the first column to the last, microseconds\n"
    yield "| | batch | " + " | ".join(other.name for other in CARDS[1:]) + " |"
    yield "|---|---:|" + "---:|" * (len(CARDS) - 1)
    for case in CASES:
        for batch in BATCHES:
            row = []
            for other in CARDS[1:]:
                if not fits(other, case, 0):
                    row.append("does not fit")
                else:
                    row.append(f"{text(best(other, case, batch, 'plain'))} to {text(best(other, case, batch, 'off'))}")
            yield f"| {case.name} | {batch} | " + " | ".join(row) + " |"


if __name__ == "__main__":
    print("\n".join(tables()))
