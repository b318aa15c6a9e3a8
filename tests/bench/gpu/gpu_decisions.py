"""What the measured figures decide about the engine. Pure functions of the lines in gpu_steps' JSON."""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator

NEAR = 0.03  # times within 3% count as equal


@dataclasses.dataclass(frozen=True)
class Decision:
    subject: str
    figure: str
    expected: str
    conclusion: str


def lines_of(steps: dict, step: str, **fields) -> list[dict]:
    """The lines of one step whose fields have these values."""
    return [line for line in steps.get("lines", []) if line["step"] == step
            and all(line.get(name) == value for name, value in fields.items())]


def groups(lines: Iterable[dict], *names: str) -> Iterator[tuple[tuple, list[dict]]]:
    """The lines with the same values of these fields, in the order of first appearance."""
    lines = list(lines)
    for key in dict.fromkeys(tuple(line[name] for name in names) for line in lines):
        yield key, [line for line in lines if tuple(line[name] for name in names) == key]


def is_right(line: dict) -> bool:
    """Whether a variant's time counts: it ran, its answers are the plain scan's, and so few are unproven that rescans would
    not dominate (device_times.h)."""
    return "us" in line and line["same_answers"] and 64 * line["unproven"] <= line["batch"]


def rows_and_stride(shape: str) -> tuple[int, int]:
    rows, dim = shape.split("x")
    return int(rows), (int(dim) + 31) // 32 * 32


def read_rate(steps: dict, shape: str, scan: str) -> tuple[float, str]:
    """The highest rate of reading the rows in GB/s, and its source: rows that fit the L2 stay there."""
    rows, stride = rows_and_stride(shape)
    ceilings = steps["ceilings"]
    if rows * stride * (1 if scan.startswith("int8") else 2) < 0.9 * steps["card"]["l2_bytes"]:
        return max(ceilings["read_gb_s"], ceilings["read_l2_gb_s"]), "L2"
    return ceilings["read_gb_s"], "memory"


def scan_of(line: dict) -> str:
    """The scan whose forms the kernel table has beside this variant: "row_scan" of "row_scan_ring"."""
    return line["variant"].removesuffix("_ring").removesuffix("_registers")


def faster_forms(steps: dict, line: dict, names: list[str]) -> list[str]:
    """Those of these variants that took less than the line's own in the step `variants`, at the line's batch."""
    us = {other["variant"]: other["us"] for other in lines_of(steps, "variants", shape=line["shape"], batch=line["batch"])
          if is_right(other)}
    return [name for name in names if us.get(name, math.inf) < us.get(line["variant"], 0) * (1 - NEAR)]


def rings(line: dict) -> str:
    return "no ring" if line["stages"] == 1 else f'{line["warps"]} warps x {line["stages"]} stages'


def scan_shape(steps: dict) -> Iterator[Decision]:
    for (shape, scan), of_shape in groups(lines_of(steps, "scan-shape"), "shape", "variant"):
        ceiling, place = read_rate(steps, shape, scan)
        planned_us = {}
        for (batch,), lines in groups(of_shape, "batch"):
            best = min(lines, key=lambda line: line["us"])
            planned = next((line for line in lines if line["planned"]), best)
            planned_us[batch] = planned["us"]
            share = planned["gb_s"] / ceiling
            if best["us"] < planned["us"] * (1 - NEAR):
                conclusion = f'plan {rings(best)} instead: {best["us"]:.1f} us'
            elif share >= 0.95:
                conclusion = "done: reading is at its limit"
            else:
                forms = ["row_scan_wide", "row_scan_prefetch"] if scan_of(planned) == "row_scan" else ["int8_scan_prefetch"]
                faster = faster_forms(steps, planned, forms)
                conclusion = f'serve {" or ".join(faster)}' if faster else \
                    f'{" and ".join(forms)} were not measured to be faster: try bulk copies'
            yield Decision(f"{scan}, reading alone, {shape}, {batch} queries",
                           f'{planned["us"]:.1f} us, {share:.0%} of a plain read from {place} ({rings(planned)})',
                           "95% or more", conclusion)
        if 16 in planned_us and 64 in planned_us:
            slower = planned_us[64] / planned_us[16] - 1
            yield Decision(f"{scan}, 64 queries against 16, {shape}", f"{slower:+.1%}", "within 3%",
                           "64 queries take no longer than 16" if slower <= NEAR else
                           "64 queries limit the scan: tiles of 64 rows, or wgmma")


SECONDS_PER_HIT = 1e-9  # pass_plan.cpp, kSecondsPerHit


def scan_parts(steps: dict) -> Iterator[Decision]:
    for line in lines_of(steps, "scan-parts"):
        where = f'{line["variant"]}, {line["shape"]}, {line["batch"]} queries, k {line["k"]}'
        kept = f"{scan_of(line)}_kept"
        yield Decision(f"sample and barrier, {where}", f'{line["sample_us"]:.1f} us of {line["pass_us"]:.1f}', "2 us or less",
                       "keep it" if line["sample_us"] <= 2 else
                       f"serve {kept}, which reads no row twice" if faster_forms(steps, line, [kept]) else
                       f"{kept} was not measured to be faster: keep it")
        if line["hits"] > 0:
            each_us = line["hits_us"] / line["hits"]
            expected_us = 1e6 * SECONDS_PER_HIT
            yield Decision(f"one hit, {where}", f'{1e3 * each_us:.2f} ns: {line["hits_us"]:.1f} us for {line["hits"]:,}',
                           f"{1e3 * expected_us:g} ns", "as planned" if expected_us / 2 <= each_us <= 2 * expected_us else
                           f"kSecondsPerHit {max(each_us, 0) / 1e6:.1e} (pass_plan.cpp), where batches of 32 and 64 agree")
        warmer = 1 - line["pass_us"] / line["cold_pass_us"] if line["cold_pass_us"] > 0 else 0
        yield Decision(f"L2 between passes, {where}", f'{line["pass_us"]:.1f} us warm, {line["cold_pass_us"]:.1f} cold',
                       "warm is faster where the rows fit",
                       "the L2 keeps rows: its rate is the floor" if warmer > 0.1 else "memory's rate is the floor")


def second_gate(steps: dict) -> Iterator[Decision]:
    for (shape, scan, batch, k), lines in groups(lines_of(steps, "second-gate"), "shape", "variant", "batch", "k"):
        planned = next((line for line in lines if line["planned"]), None)
        if len(lines) == 1 or planned is None:  # too few rows for a second gate
            continue
        best = min(lines, key=lambda line: line["pass_us"])
        yield Decision(f"second gate, {scan}, {shape}, {batch} queries, k {k}",
                       "; ".join(f'{"1 in " + str(line["one_row_in"]) if line["one_row_in"] else "none"}: {line["pass_us"]:.1f} us'
                                 for line in lines),
                       f'{"1 row in " + str(planned["one_row_in"]) if planned["one_row_in"] else "none"} is fastest',
                       "planned as is" if best["pass_us"] >= planned["pass_us"] * (1 - NEAR) else
                       "a greater kSecondsOfGate (pass_plan.cpp)" if best["one_row_in"] == 0 else
                       "a smaller kSecondsOfGate (pass_plan.cpp)" if planned["one_row_in"] == 0 else
                       f'gpu tuning second_gate_share {best["one_row_in"]}')


def finish(steps: dict) -> Iterator[Decision]:
    for line in lines_of(steps, "finish"):
        three = line["three_launches_us"]
        for form, name, limit in (("in_scan", "the scan", "kHitsOfOneLaunch"), ("one_block", "one block a query", "kHitsOfOneBlock")):
            us, is_planned = line[f"{form}_us"], line[f"{form}_is_planned"]
            planned, other = (us, three) if is_planned else (three, us)
            yield Decision(f'finish by {name}, {line["variant"]}, {line["shape"]}, {line["batch"]} queries, k {line["k"]}',
                           f"{us:.1f} us, {three:.1f} in three launches", "4 us at k 10",
                           "planned as is" if planned <= other * (1 + NEAR) else
                           f'plan {"three launches" if is_planned else name} here ({limit})')


def variants(steps: dict) -> Iterator[Decision]:
    for (shape, k), lines in groups(lines_of(steps, "variants"), "shape", "k"):
        faster = []
        for (batch,), of_batch in groups(lines, "batch"):
            best = min(filter(is_right, of_batch), key=lambda line: line["us"], default=None)
            planned = next((line for line in of_batch if line["planned"] and is_right(line)), None)
            if best is None:
                faster.append(f"{batch}: none gives the answers")
            elif planned is None or best["us"] < planned["us"] * (1 - NEAR):
                instead = f'{planned["us"]:.0f} by {planned["variant"]}' if planned else "what is planned"
                faster.append(f'{batch}: {best["variant"]} {best["us"]:.0f} us, not {instead}')
        yield Decision(f"the variant of a batch, {shape}, k {k}", "; ".join(faster) or "the planned one is the fastest of each batch",
                       "planned is fastest", "change the order or the limits of the kernel table" if faster else "planned as is")
        wrong = {line["variant"]: line.get("error") or line.get("difference") or f'{line["unproven"]} of {line["batch"]} unproven'
                 for line in lines if not is_right(line)}
        if wrong:
            yield Decision(f"answers of all variants, {shape}, k {k}", "; ".join(f"{name}: {why}" for name, why in sorted(wrong.items())),
                           "the plain scan's bits", "do not serve: find the error first")


def gemm_pass(steps: dict) -> Iterator[Decision]:
    for line in lines_of(steps, "gemm-pass"):
        where = f'{line["shape"]}, {line["batch"]} queries, k {line["k"]}'
        yield Decision(f"GEMM pass beyond its products, {where}",
                       f'{line["pass_us"]:.1f} us, products {line["products_us"]:.1f}: {line["overhead"]:+.0%}', "+10% or less",
                       "tune it" if line["overhead"] <= 0.10 else "write the fused wgmma path before tuning this one")
        gain = 1 - line["pass_us"] / line["one_stream_us"]
        yield Decision(f"two streams, {where}", f'{line["one_stream_us"]:.1f} us on one, {line["pass_us"]:.1f} on two',
                       "two are faster", "two streams stay" if gain > 0 else "one stream is as fast: drop the second")


def select(steps: dict) -> Iterator[Decision]:
    for (shape,), lines in groups(lines_of(steps, "select"), "shape"):
        by_hits = {line["hits_a_chunk"]: line for line in lines}
        if 0.0 not in by_hits:
            continue
        clean = by_hits[0.0]
        ceiling = steps["ceilings"]["read_l2_gb_s"] / 1e3
        yield Decision(f"topk_fp16 without a hit, {shape}", f'{clean["tb_s"]:.2f} TB/s, a plain read {ceiling:.2f}',
                       "4 TB/s or more on an H200: 90% of a plain read from the L2",
                       "bound by the L2: done" if clean["tb_s"] >= 0.9 * ceiling or clean["tb_s"] >= 4 else
                       "tune the loads in flight")
        if 5.0 in by_hits:
            slower = by_hits[5.0]["us"] / clean["us"]
            yield Decision(f"topk_fp16 at 5 hits a chunk, {shape}", f"{slower:.2f}x the time without a hit", "1.3x or less",
                           "hits cost little" if slower <= 1.3 else "set a tighter gate after the first rows, and a larger first tile")


def gate_and_finish(steps: dict) -> Iterator[Decision]:
    for line in lines_of(steps, "gate-and-finish"):
        limit = 12 if line["k"] <= 10 else None
        conclusion = "no limit at this k" if limit is None else "keep it" if line["sum_us"] <= limit else \
            "too long: share a query's gate and finish between blocks"
        yield Decision(f'gate and finish, {line["shape"]}, {line["batch"]} queries, k {line["k"]}',
                       f'{line["gate_us"]:.1f} + {line["finish_us"]:.1f} us', "12 us or less at k 10" if limit else "", conclusion)


def tile(steps: dict) -> Iterator[Decision]:
    for (shape, batch), lines in groups(lines_of(steps, "tile"), "shape", "batch"):
        planned = next((line for line in lines if line["planned"]), None)
        if planned is None:
            continue
        in_fp16 = [line for line in lines if line["scores"] == "fp16" and not line["kept_in_l2"]]
        best = min(in_fp16, key=lambda line: line["pass_us"])
        yield Decision(f"tile, whole pass, {shape}, {batch} queries",
                       f'{planned["pass_us"]:.1f} us with {planned["tile_rows"]} rows; '
                       f'best {best["pass_us"]:.1f} with {best["tile_rows"]}',
                       "within 3% of the best",
                       "the planned tile stays" if best["pass_us"] >= planned["pass_us"] * (1 - NEAR) else
                       f'tiles of {best["tile_rows"]} rows, {best["tile_mib"]:.0f} MiB (pass_plan.cpp, kShareOfL2)')
        for line in lines:
            if line["scores"] == "fp32":
                slower = line["us"] / planned["us"] - 1
                yield Decision(f"scores in fp32, {shape}, {batch} queries", f"{slower:+.1%}", "worth it below +5%",
                               "fp32 scores: half the bound, fewer rows rescored" if slower < 0.05 else "fp16 scores stay")
            elif line["kept_in_l2"]:
                gain = 1 - line["pass_us"] / planned["pass_us"]
                yield Decision(f"L2 set aside for the tile, {shape}, {batch} queries", f"{-gain:+.1%}", "worth it beyond -3%",
                               "set it aside" if gain > NEAR else "not worth it")


def rescore(steps: dict) -> Iterator[Decision]:
    for line in lines_of(steps, "rescore"):
        share = line["gb_s"] / steps["ceilings"]["read_gb_s"]
        yield Decision(f'canonical scores of random rows, {line["shape"]}',
                       f'{line["gb_s"]:.0f} GB/s, {share:.0%} of a plain read', "70% or more",
                       "keep it" if share >= 0.7 else "four rows a warp, or 16-byte loads from rows stored [32][4]")


def with_pass(lines: list[dict]) -> list[dict]:
    """Without those that no single pass answers, which say nothing about where a pass takes less."""
    return [line for line in lines if line["pass_us"] > 0]


def wins_from_the_first(lines: list[dict], figure: str) -> list[dict]:
    """The lines before the first one of which a pass takes less: a later win is chance."""
    return list(itertools.takewhile(lambda line: line[figure] <= line["pass_us"], lines))


def gather(steps: dict) -> Iterator[Decision]:
    for (shape, batch), lines in groups(lines_of(steps, "gather"), "shape", "batch"):
        wins = wins_from_the_first(sorted(with_pass(lines), key=lambda line: -line["one_row_in"]), "gather_us")
        yield Decision(f"list of rows or pass with a mask, {shape}, {batch} queries",
                       "; ".join(f'1 in {line["one_row_in"]}: {line["gather_us"]:.0f} / {line["pass_us"]:.0f} us' for line in lines),
                       "they cross at 1 in 32",
                       f'lists up to one row in {wins[-1]["one_row_in"]} (gpu tuning gather_share)' if wins else
                       "a pass with a mask is always faster here")


def small_segments(steps: dict) -> Iterator[Decision]:
    for (shape, batch), lines in groups(lines_of(steps, "small-segments"), "shape", "batch"):
        timed = sorted(with_pass(lines), key=lambda line: line["rows"])
        if not timed:
            continue
        wins = wins_from_the_first(timed, "canonical_us")
        yield Decision(f"canonical scores of all rows or pass, rows of {shape}, {batch} queries",
                       "; ".join(f'{line["rows"]:,}: {line["canonical_us"]:.0f} / {line["pass_us"]:.0f} us' for line in timed),
                       "they cross at 4,096 rows",
                       f'canonical scores up to {wins[-1]["rows"]:,} rows (gpu tuning canonical_rows_max)' if wins else
                       "a pass is always faster here")


def exchange(steps: dict) -> Iterator[Decision]:
    for (shape, scan), lines in groups(lines_of(steps, "exchange"), "shape", "variant"):
        most = 0
        for line in sorted(lines, key=lambda line: line["batch"]):
            if line["mapped_us"] >= line["copies_us"]:
                break
            most = line["batch"]
        yield Decision(f"queries and answers copied or mapped, {scan}, {shape}",
                       "; ".join(f'{line["batch"]}: {line["copies_us"]:.1f} / {line["mapped_us"]:.1f} us' for line in lines),
                       "mapped is 5 us faster at batch 1",
                       f"mapped up to {most} queries (gpu tuning mapped_queries_max)" if most else
                       "copies always (gpu tuning mapped_queries_max 0)")


def tensor_sums(sums: dict) -> Iterator[Decision]:
    worst = sums.get("seen_over_bound")
    if worst is not None:
        stored = sums.get("fp16_seen_over_bound", 0)
        methods = "four methods" if "fp16_seen_over_bound" in sums else "two methods, without cuBLAS"
        yield Decision("rounding of sums on tensor cores",
                       f'{worst:.3f} of the bound ({stored:.3f} once stored as fp16), {sums["sums"]:,} sums by each of {methods}',
                       "below 1", "the assumption of 2^-23 a step holds" if max(worst, stored) <= 1 else
                       "the assumption is wrong: the engine's proofs are invalid on this card")


def decide(steps: dict, sums: dict) -> list[Decision]:
    """All decisions; later ones depend on earlier ones."""
    decisions = list(tensor_sums(sums))
    if steps.get("lines"):
        for decisions_of in (variants, scan_shape, scan_parts, second_gate, finish, gemm_pass, select, gate_and_finish, tile,
                             rescore, gather, small_segments, exchange):
            try:
                decisions += decisions_of(steps)
            except (KeyError, TypeError, ZeroDivisionError) as error:  # a figure that was not measured is null
                decisions.append(Decision(decisions_of.__name__.replace("_", "-"), f"not decided: {error}", "", "measure it again"))
    return decisions
