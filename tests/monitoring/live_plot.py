"""Draws what live.py read: the dashboard's graphs, each with the numbers of its queries."""

import itertools
import pathlib
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib import ticker

SHOWN = ["Queries by method", "Latency of searches", "Errors by status code",
         "Batch size", "Where a search spends its time", "Queue wait and search, p99",
         "Batches by backend", "Utilization", "Temperature",
         "Age of the content", "Loads", "Memory by part",
         "Calls in flight", "Connections", "Processors"]
COLUMNS = 3
COLORS = ["#1f60c4", "#e0752d", "#37872d", "#8f3bb8", "#c4162a", "#6d6d6d"]


# By Grafana's unit: suffixes, and the least value from which each is used.
SUFFIXES = {"s": [(1, " s"), (1e-3, " ms")], "bytes": [(2**30, " GiB"), (2**20, " MiB"), (1, "")], "reqps": [(1, "/s")],
            "percentunit": [(1e-2, " %")], "celsius": [(1, " °C")], "short": [(1, "")]}


def scale_of(unit: str, largest: float) -> tuple[float, str]:
    return next((each for each in SUFFIXES[unit] if largest >= each[0]), SUFFIXES[unit][-1])


def legend(target: dict, labels: dict) -> str:
    text = re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), target["legendFormat"])
    return text.replace("simile.v1.", "").strip()


def draw_panel(axes, panel: dict, results: list, start: float) -> None:
    series = [(legend(target, line["metric"]), line["values"]) for target, found in results for line in found
              if "none" not in line["metric"].values()]  # what a panel shows as long as nothing is counted
    defaults = panel["fieldConfig"]["defaults"]
    largest = max(float(value) for _, values in series for _, value in values if value != "NaN")
    divisor, suffix = scale_of(defaults["unit"], largest)
    lines = [(name, [float(at) - start for at, _ in values], [float(value) / divisor for _, value in values])
             for name, values in series]
    if "stacking" in defaults["custom"]:
        names, times, stacked = zip(*lines)
        axes.stackplot(times[0], *stacked, labels=names, colors=COLORS, alpha=0.7)
    else:
        for (name, at, values), color in zip(lines, itertools.cycle(COLORS)):
            axes.plot(at, values, label=name, color=color, linewidth=1.2)
    axes.set_title(panel["title"], fontsize=9, loc="left", fontweight="bold")
    axes.yaxis.set_major_locator(ticker.MaxNLocator(5))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}{suffix}"))
    bottom, top = axes.get_ylim()
    bottom = 0 if defaults.get("min") == 0 else bottom
    axes.set_ylim(bottom, bottom + 1.3 * (top - bottom))  # the legend is above the lines
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.tick_params(labelsize=7)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(fontsize=6.5, loc="upper left", frameon=False, ncols=3)


def draw(answers: list, path: pathlib.Path) -> None:
    """Writes the graphs of SHOWN, in this order."""
    by_title = {panel["title"]: (panel, results) for panel, results in answers}
    start = min(float(line["values"][0][0]) for _, results in answers for _, found in results for line in found)
    rows = -(-len(SHOWN) // COLUMNS)
    figure, grid = plt.subplots(rows, COLUMNS, figsize=(4.2 * COLUMNS, 2.3 * rows), sharex=True, layout="constrained")
    for axes, title in zip(grid.flat, SHOWN):
        draw_panel(axes, *by_title[title], start)
    for axes in grid[-1]:
        axes.set_xlabel("seconds", fontsize=7)
    figure.savefig(path, dpi=90)
