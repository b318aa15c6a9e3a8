"""The pictures beside the table: time a query against the size of the batch, one a data set."""

import pathlib

from peer_report import TITLES

COLOURS = {"auto": "#c0392b", "scan": "#7f8c8d", "faiss": "#2980b9", "torch": "#e67e22", "torch-chunked": "#d4ac0d",
           "numpy": "#27ae60", "usearch": "#8e44ad", "torch-bf16": "#95a5a6", "torch-bf16-chunked": "#bdc3c7"}


def draw(results: list[dict], folder: pathlib.Path, about: dict) -> list[pathlib.Path]:
    """Writes cpu-NAME.png for each data set that has more than one batch size, and says which."""
    import matplotlib
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in dict.fromkeys(result["data"] for result in results):
        of_set = [result for result in results if result["data"] == name]
        k = of_set[0]["k"]
        cases = sorted((result for result in of_set if result["k"] == k), key=lambda result: result["batch"])
        if len(cases) > 1:
            path = folder / f"cpu-{name}.png"
            draw_one(cases, path, about)
            paths.append(path)
    return paths


def draw_one(cases: list[dict], path: pathlib.Path, about: dict) -> None:
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7.5, 4.5), dpi=120)
    engines = dict.fromkeys(engine for case in cases for engine in case["entries"])
    for engine in engines:
        points = [(case["batch"], entry.median_ms() / case["batch"]) for case in cases
                  if (entry := case["entries"].get(engine)) is not None and entry.times_ms]
        if points:
            ours = engine not in TITLES
            axes.plot(*zip(*points), marker="o", markersize=6 if ours else 4, linewidth=2.5 if ours else 1.3,
                      color=COLOURS.get(engine), linestyle="--" if "bf16" in engine else "-", zorder=3 if ours else 2,
                      label=f"Simile {engine}" if ours else TITLES[engine] + (" (approximate)" if "bf16" in engine else ""))
    first = cases[0]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([case["batch"] for case in cases], [f'{case["batch"]:,}' for case in cases])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("queries a batch")
    axes.set_ylabel("ms a query")
    axes.set_title(f'{first["data"]}: {first["rows"]:,} x {first["dim"]}, k {first["k"]}, {about["threads"]} threads')
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.savefig(path, bbox_inches="tight")
    pyplot.close(figure)
