#!/usr/bin/env python3
"""What the CPU engine costs by itself: as rows and dimensions grow, under filters, and against the machine's own limits.

    engine_cost.py [--rows 62500,250000,1000000] [--dims 128,384,1536] [--threads 2]

Runs build/bin/engine_bench and kernel_peak (cmake --preset bench), which verify what they measure, on clustered vectors of
their own making. Writes tables and a picture into docs/benchmarks. Needs matplotlib (tests/bench/requirements.txt).
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

import peer_report

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN = "<!-- cost: written by tests/bench/engine_cost.py -->\n"
END = "<!-- end of cost -->\n"
BATCHES = [1, 32, 1000]
PASSES = [1, 0.5, 0.01, 0.0001]


class Bench:
    """Runs the programs and reads the JSON that they write."""

    def __init__(self, arguments: argparse.Namespace, work: pathlib.Path):
        self.arguments = arguments
        self.json = work / "figures.json"

    def run(self, program: str, *options: str) -> dict:
        command = [str(self.arguments.bin / program), *options, "--threads", str(self.arguments.threads),
                   "--rounds", str(self.arguments.rounds), "--json", str(self.json)]
        print(" ".join([program, *options]), file=sys.stderr, flush=True)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.loads(self.json.read_text(encoding="utf-8"))

    def engine(self, rows: int, dim: int, *options: str) -> dict:
        return self.run("engine_bench", "--synthetic", "clustered", "--rows", str(rows), "--dim", str(dim), "--k", "10",
                        "--verify", "200", *options)


def markdown(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---:"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def growth_rows(runs: list[dict]) -> list[list[str]]:
    rows = []
    for run in runs:
        values = run["rows"] * run["dim"]
        cells = [f'{run["rows"]:,}', str(run["dim"]), f'{run["build_s"]:.2f}', f'{run["index_bytes"] / values:.3f}']
        for case in run["cases"]:
            cells += [peer_report.ms_text(case["median_ms"]), f'{case["median_ms"] * 1e9 / values / case["batch"]:.3g}']
        rows.append(cells)
    return rows


def growth_table(runs: list[dict]) -> str:
    heads = ["rows", "dimensions", "build, s", "bytes a dimension"]
    for batch in BATCHES:
        heads += [f"batch {batch}, ms", "ps a product"]
    return markdown(heads, growth_rows(runs))


def filter_table(run: dict) -> str:
    whole = next(case["median_ms"] for case in run["cases"] if case["filter_pass"] == 1)
    return markdown(["passing", "rows", "answered by", "ms", "of the time unfiltered"],
                    [[f'{case["filter_pass"]:.4%}'.rstrip("0%").rstrip(".") + "%", f'{case["rows_passing"]:,}',
                      f'`{case["engine"]}`', f'{case["median_ms"]:.3g}', f'{case["median_ms"] / whole:.3g}x']
                     for case in run["cases"]])


def limits_table(run: dict) -> str:
    read = run["ceilings"]["read_median_ms"]
    return markdown(["batch", "answered by", "ms", "a byte a dimension read once, ms", "times that"],
                    [[str(case["batch"]), f'`{case["engine"]}`', peer_report.ms_text(case["median_ms"]), f"{read:.2f}",
                      f'{case["times_read"]:.2f}x'] for case in run["cases"]])


def peak_table(run: dict) -> str:
    return markdown(["kernel", "registers only, TOPS", "pass with its gate, TOPS", "share"],
                    [[f'`{kernel["isa"]}`', f'{kernel["register_tops"]:.2f}', f'{kernel["pass_tops"]:.2f}',
                      f'{kernel["share"]:.1%}'] for kernel in run["kernels"]])


def draw(by_rows: list[dict], by_dim: list[dict], path: pathlib.Path) -> None:
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4), dpi=120)
    for axes, runs, key, fixed in ((panels[0], by_rows, "rows", "dim"), (panels[1], by_dim, "dim", "rows")):
        for index, batch in enumerate(BATCHES):
            points = [(run[key], run["cases"][index]["median_ms"]) for run in runs]
            [line] = axes.plot(*zip(*points), marker="o", label=f"batch {batch:,}")
            first = points[0]
            axes.plot([x for x, _ in points], [first[1] * x / first[0] for x, _ in points], linestyle=":",
                      color=line.get_color(), linewidth=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks([run[key] for run in runs], [f"{run[key]:,}" for run in runs])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel({"rows": "rows", "dim": "dimensions"}[key])
        axes.set_ylabel("ms a batch")
        axes.set_title(f"{runs[0][fixed]:,} {'dimensions' if fixed == 'dim' else 'rows'}, k 10; dotted: linear")
        axes.grid(True, alpha=0.3)
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def measure(arguments: argparse.Namespace, work: pathlib.Path) -> str:
    bench = Bench(arguments, work)
    batches = ",".join(map(str, BATCHES))
    by_rows = [bench.engine(rows, 384, "--batch", batches) for rows in arguments.rows]
    by_dim = [bench.engine(arguments.dim_rows, dim, "--batch", batches) for dim in arguments.dims]
    large = max(rows for rows in arguments.rows if rows <= 1_000_000)
    filters = bench.engine(large, 384, "--batch", "32", "--filter-pass", ",".join(map(str, PASSES)))
    limits = bench.engine(large, 384, "--batch", "1,32,100", "--ceilings")
    peaks = bench.run("kernel_peak")
    arguments.out.mkdir(parents=True, exist_ok=True)
    draw(by_rows, by_dim, arguments.out / "cpu-growth.png")
    return (f'## What it costs by itself\n\n{datetime.date.today().isoformat()}, {limits["cpu"]}, {arguments.threads} threads, '
            f'clustered vectors, k 10, medians of {arguments.rounds} rounds; answers compared with the plain scan\'s.\n\n'
            f'As rows and dimensions grow:\n\n{growth_table(by_rows + by_dim)}\n![growth](cpu-growth.png)\n\n'
            f'Under a filter, {large:,} rows, batch 32:\n\n{filter_table(filters)}\n'
            f'Against the memory, {large:,} rows:\n\n{limits_table(limits)}\n'
            f'Against the instruction, batch {peaks["batch"]}, from the caches:\n\n{peak_table(peaks)}')


def main() -> int:
    def numbers(text: str) -> list[int]:
        return [int(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=numbers, default=[62_500, 250_000, 1_000_000, 4_000_000], help="with 384 dimensions")
    parser.add_argument("--dims", type=numbers, default=[128, 256, 384, 768, 1536], help="with --dim-rows rows")
    parser.add_argument("--dim-rows", type=int, default=200_000, help="default 200,000")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin", help="folder of the programs")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/benchmarks")
    arguments = parser.parse_args()
    if not (arguments.bin / "engine_bench").exists():
        parser.error("engine_bench is not built: cmake --preset bench, then build engine_bench and kernel_peak")
    try:
        with tempfile.TemporaryDirectory() as work:
            text = measure(arguments, pathlib.Path(work))
    except subprocess.CalledProcessError as error:
        print(f"error: {error.cmd[0]} ended with {error.returncode}", file=sys.stderr)
        return 1
    peer_report.write_page(arguments.out / "cpu.md", text, [], BEGIN, END)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
