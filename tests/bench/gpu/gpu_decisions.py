"""What the measured figures decide about the engine. Pure functions of the lines in gpu_steps' JSON."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator

NEAR = 0.03  # times within 3% count as equal
NEAR_US = 1  # and those of a finish within 1 us, whatever the rest of the pass takes


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
    """Whether a pass's time counts: it ran, its answers are the plain scan's, and so few are unproven that rescans would
    not dominate (device_times.h)."""
    return "us" in line and line["same_answers"] and 64 * line["unproven"] <= line["batch"]


def second_gate(steps: dict) -> Iterator[Decision]:
    for (shape, scan, batch, k), lines in groups(filter(is_right, lines_of(steps, "second-gate")), "shape", "variant", "batch", "k"):
        planned = next((line for line in lines if line["planned"]), None)
        if len(lines) == 1 or planned is None:  # too few rows for a second gate
            continue
        best = min(lines, key=lambda line: line["us"])
        yield Decision(f"second gate, {scan}, {shape}, {batch} queries, k {k}",
                       "; ".join(f'{"1 in " + str(line["one_row_in"]) if line["one_row_in"] else "none"}: {line["us"]:.1f} us'
                                 for line in lines),
                       f'{"1 row in " + str(planned["one_row_in"]) if planned["one_row_in"] else "none"} is fastest',
                       "planned as is" if best["us"] >= planned["us"] * (1 - NEAR) else
                       "a greater kHitsSavedMin (pass_plan.cpp)" if best["one_row_in"] == 0 else
                       "a smaller kHitsSavedMin (pass_plan.cpp)" if planned["one_row_in"] == 0 else
                       f'gpu tuning second_gate_share {best["one_row_in"]}')


def finish(steps: dict) -> Iterator[Decision]:
    for (shape, scan, batch, k), lines in groups(filter(is_right, lines_of(steps, "finish")), "shape", "variant", "batch", "k"):
        us = {line["one_block"]: line["us"] for line in lines}
        planned = next((line for line in lines if line["planned"]), None)
        if len(us) < 2 or planned is None:
            continue
        other = us[not planned["one_block"]]
        yield Decision(f"finish, {scan}, {shape}, {batch} queries, k {k}",
                       f"{us[True]:.1f} us by one block a query, {us[False]:.1f} in several launches",
                       "one block a query" if planned["one_block"] else "several launches",
                       "planned as is" if planned["us"] <= other + NEAR_US else
                       f'plan {"several launches" if planned["one_block"] else "one block a query"} here (kHitsOfOneBlock)')


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


def tile(steps: dict) -> Iterator[Decision]:
    for (shape, batch), lines in groups(filter(is_right, lines_of(steps, "tile")), "shape", "batch"):
        planned = next((line for line in lines if line["planned"]), None)
        if planned is None:
            continue
        best = min(lines, key=lambda line: line["us"])
        yield Decision(f"tile, {shape}, {batch} queries",
                       f'{planned["us"]:.1f} us with {planned["tile_rows"]} rows; best {best["us"]:.1f} with {best["tile_rows"]}',
                       "within 3% of the best",
                       "the planned tile stays" if best["us"] >= planned["us"] * (1 - NEAR) else
                       f'tiles of {best["tile_rows"]} rows, {best["tile_mib"]:.0f} MiB (pass_plan.cpp, kShareOfL2)')


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
                       "they cross at 1,024 rows",
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
                       "mapped is faster up to 64 queries",
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
    """All decisions."""
    decisions = list(tensor_sums(sums))
    if steps.get("lines"):
        for decisions_of in (variants, second_gate, finish, tile, gather, small_segments, exchange):
            try:
                decisions += decisions_of(steps)
            except (KeyError, TypeError, ZeroDivisionError) as error:  # a figure that was not measured is null
                decisions.append(Decision(decisions_of.__name__.replace("_", "-"), f"not decided: {error}", "", "measure it again"))
    return decisions
