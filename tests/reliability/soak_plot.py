"""Draws what soak.py saw over time."""

import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PANELS = [("process", [("rss_mib", "memory"), ("unread_mib", "of it replies that nobody reads")], "MiB"),
          ("process", [("descriptors", "descriptors"), ("threads", "threads")], "count"),
          ("load", [("p50_ms", "p50"), ("p99_ms", "p99")], "ms"), ("load", [("rate", "calls sent")], "a second")]
COLORS = ["#1f60c4", "#e0752d"]


def draw(series: dict, file: pathlib.Path) -> None:
    """series  "process" and "load": lists of points, each with at_s and what the panels name"""
    figure, all_axes = plt.subplots(len(PANELS), 1, figsize=(8, 8), sharex=True)
    for axes, (name, lines, unit) in zip(all_axes, PANELS):
        for (key, label), color in zip(lines, COLORS):
            axes.plot([point["at_s"] / 60 for point in series[name]], [point[key] for point in series[name]], label=label,
                      color=color, linewidth=1)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(unit, fontsize=8)
        axes.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0, frameon=False, ncols=2)
        axes.grid(color="#e6e6e6", linewidth=0.6)
        axes.tick_params(labelsize=8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    all_axes[-1].set_xlabel("minutes", fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=100)
