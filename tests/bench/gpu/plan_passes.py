#!/usr/bin/env python3
"""The passes that `simile plan` scales its times from, out of the results of run.py.

    python3 tests/bench/gpu/plan_passes.py results/gpu-times.json             # writes them
    python3 tests/bench/gpu/plan_passes.py --print results/gpu-times.json     # prints them

Writes the passes of these cards to the table kPasses of src/cli/plan/pass_times.cpp, and leaves those of other cards there. Only the
collections that the plan draws its lines through, and only cases whose answers were all right. Each card needs its row in
src/cli/plan/known_cards.cpp.
"""

import argparse
import json
import pathlib
import re
import sys
from collections.abc import Iterator

TABLE = pathlib.Path(__file__).resolve().parents[3] / "src/cli/plan/pass_times.cpp"
SHAPES = ((62_423, 384), (1_000_000, 768))
KINDS = {"int8_scan": "kInt8Scan", "row_scan_ring": "kRingScan", "row_scan_registers": "kRegisterScan", "gemm_topk_fp16": "kGemm"}


def name_of(card: str) -> str:
    """As known_cards.cpp has it: "H200" for "NVIDIA H200", "T4" for "Tesla T4"."""
    return re.sub(r"^(NVIDIA )?(Tesla )?", "", card)


def measured(card: str, kind: str, shape: tuple[int, int], batch: int, k: int, device_us: float, host_us: float) -> tuple[str, str]:
    """What was measured, in C++, and its times."""
    return (f'MeasuredPass{{"{name_of(card)}", PassKind::{KINDS[kind]}, {shape[0]}, {shape[1]}, {batch}, {k}, ',
            f'{device_us:.4g}, {host_us:.4g}}},')


def whole_passes(results: dict) -> Iterator[tuple[str, str]]:
    """Of gpu_bench: each collection's cases."""
    for rows, dim in SHAPES:
        for case in results["steps"].get(f"bench-{rows}x{dim}", {}).get("data", {}).get("cases", []):
            if "device_us" in case and "host_us" in case and case["variant"] in KINDS:
                yield measured(results["about"]["card"], case["variant"], (rows, dim), case["batch"], case["k"],
                               case["device_us"]["median"], case["host_us"]["median"])


def passes_of(files: list[dict]) -> list[str]:
    """Of files that measured the same, the last one counts."""
    passes = {what: times for results in files for what, times in whole_passes(results)}
    return [f"    {what}{times}" for what, times in passes.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--print", action="store_true", help="print the lines in place of writing them")
    given = parser.parse_args()
    lines = passes_of([json.loads(file.read_text()) for file in given.files])
    if not lines:
        print(f"error: no whole pass over {' or '.join(f'{rows} x {dim}' for rows, dim in SHAPES)} in these files", file=sys.stderr)
        return 1
    if given.print:
        print("\n".join(lines))
        return 0
    before, _, rest = TABLE.read_text().partition("constexpr std::array kPasses{\n")
    held, end, after = rest.partition("\n};\n")
    cards = {each.split('"')[1] for each in lines}
    lines = [each for each in held.split("\n") if each.split('"')[1] not in cards] + lines
    TABLE.write_text(before + "constexpr std::array kPasses{\n" + "\n".join(lines) + end + after)
    print(f"{len(lines)} passes of all cards in {TABLE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
