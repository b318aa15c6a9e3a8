"""What a long run found: figures beside what they must be, as a table and as JSON."""

import dataclasses
import datetime
import json
import os
import pathlib
import statistics


@dataclasses.dataclass
class Figure:
    what: str
    value: float
    unit: str = ""
    at_most: float | None = None  # what it must be; neither: it is only told
    at_least: float | None = None

    def holds(self) -> bool:
        return (self.at_most is None or self.value <= self.at_most) and (self.at_least is None or self.value >= self.at_least)

    def bound(self) -> str:
        if self.at_most is None and self.at_least is None:
            return ""
        if self.at_most == self.at_least:
            return number_text(self.at_most)
        return f"<= {number_text(self.at_most)}" if self.at_least is None else f">= {number_text(self.at_least)}"


def number_text(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) or abs(number) >= 1_000 else f"{number:.3g}"


def exactly(what: str, value: float, wanted: float) -> Figure:
    return Figure(what, value, at_most=wanted, at_least=wanted)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread(what: str, seconds: list[float], at_most: float | None = None) -> list[Figure]:
    """Median and longest, of which the longest is bounded."""
    return [Figure(f"{what}: median", statistics.median(seconds), "s"),
            Figure(f"{what}: longest", max(seconds), "s", at_most)]


class Report:
    """about  what a reader needs to weigh the figures: the command and its seed, by name"""

    def __init__(self, **about):
        self.about = {"date": datetime.date.today().isoformat(), "processors": os.cpu_count()} | about
        self.figures: list[Figure] = []
        self.failures: list[str] = []  # the first of each kind

    def add(self, *figures: Figure) -> None:
        for figure in figures:
            assert all(figure.what != each.what for each in self.figures), f"two figures named {figure.what}"
            self.figures.append(figure)

    def fail(self, text: str) -> None:
        if len(self.failures) < 20:
            self.failures.append(text)

    def passed(self) -> bool:
        return not self.failures and all(figure.holds() for figure in self.figures)

    def table(self) -> str:
        rows = [("what", "figure", "must be", "")]
        rows += [(figure.what, f"{number_text(figure.value)} {figure.unit}".rstrip(), figure.bound(),
                  "" if figure.holds() else "MISSED") for figure in self.figures]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, *self.failures])

    def write(self, file: pathlib.Path | None, **more) -> None:
        """more  series that are no figures"""
        if file is not None:
            content = {"about": self.about, "passed": self.passed(), "failures": self.failures,
                       "figures": [dataclasses.asdict(figure) for figure in self.figures]} | more
            file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
