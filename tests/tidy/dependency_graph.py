#!/usr/bin/env python3
"""Draws which folder includes which, from the #include lines.

    dependency_graph.py [--root DIR] [--write]

Exits 1 when docs/dependency-graph.svg is not the drawing of this tree; with --write renews it. Standard library only.

Every box is a folder, in the rows of layers.ROWS; an arrow carries its number of #include lines. The arrow from A to C is
left out where A includes B and B includes C; the tooltip of A lists it.
"""

import argparse
import collections
import html
import itertools
import math
import pathlib
import random
import sys

import layers
from tree import SourceFile, source_files

DRAWING = "docs/dependency-graph.svg"

# The kernels beside the other folders that backends include.
ROWS = [list(row) for row in layers.ROWS]
ROWS[layers.ROWS.index(("data", "certificate"))].append("kernels")
ROW_OF = {folder: row for row, folders in enumerate(ROWS) for folder in folders}
LABELS = {"contracts": "include/simile"}
DESCRIPTIONS = {
    "cli": "one file per command", "app": "settings, wiring, serve", "service": "one handler per RPC",
    "net": "sockets, limits, the server", "engine": "",
    "doctor": "why no GPU answers",
    "backend": "CPU engine, GPU plug-in, failover", "filter": "filter language to row mask", "data": "files to a checked dataset",
    "certificate": "canonical score, bounds", "kernels": "CUDA, for backend/cuda", "observe": "log, metrics, receipt",
    "base": "text, files, pages", "contracts": "what the folders promise each other",
}

WIDTH, TOP, ROW_HEIGHT, BOX_HEIGHT, GAP = 940, 78, 102, 46, 26
BOX_WIDTH = collections.defaultdict(lambda: 206, {"engine": 420, "backend": 236, "contracts": 300, "base": 170})
PORT_GAP, STRAIGHT = 36, 30  # between arrows on a box; the last part of an arrow, which holds its number
STARTS = 40
COLORS = ("#dbeafe", "#dbeafe", "#e0e7ff", "#ede9fe", "#fce7f3", "#ffedd5", "#fef3c7", "#dcfce7", "#dcfce7", "#f1f5f9")

Edges = dict[tuple[str, str], int]


def node_of(file: SourceFile) -> str:
    return file.layer if file.layer in ROW_OF else ""


def count_includes(root: pathlib.Path) -> tuple[Edges, Edges]:
    """#include lines from folder to folder, and from one to another of engine's subfolders."""
    edges: Edges = collections.Counter()
    inner: Edges = collections.Counter()
    for file in source_files(root):
        upper = node_of(file)
        if not upper:
            continue
        for _, _, name in layers.includes(file):
            lower = layers.target_layer(name)
            if lower and lower != upper:
                edges[upper, lower] += 1
            elif lower == "engine":
                source, target = file.parts[2], name.split("/")[1]
                if source != target:
                    inner[source, target] += 1
    return edges, inner


def reduce(edges: Edges) -> list[tuple[str, str]]:
    """The arrows that remain without those that others imply."""
    reached: dict[str, set[str]] = {}
    edges = {(a, b): n for (a, b), n in edges.items() if ROW_OF[a] < ROW_OF[b]}  # layers.py names the others
    for upper in sorted(ROW_OF, key=ROW_OF.get, reverse=True):
        below = {b for a, b in edges if a == upper}
        reached[upper] = below.union(*(reached[folder] for folder in below))
    return sorted((a, b) for a, b in edges
                  if not any((a, via) in edges and b in reached.get(via, ()) for via in ROW_OF if via not in (a, b)))


class Layout:
    """Places the boxes, and for each arrow a point in every row that it passes."""

    def __init__(self, arrows: list[tuple[str, str]]):
        self.rows: list[list] = [list(row) for row in ROWS]
        self.paths: dict[tuple[str, str], list] = {}
        for upper, lower in arrows:
            between = [(upper, lower, row) for row in range(ROW_OF[upper] + 1, ROW_OF[lower])]
            self.paths[upper, lower] = [upper, *between, lower]
            for point in between:
                self.rows[point[2]].append(point)
        self.links = [link for path in self.paths.values() for link in itertools.pairwise(path)]
        self.above, self.below = collections.defaultdict(list), collections.defaultdict(list)
        for upper, lower in self.links:
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        self.order()
        self.x = self.place()

    def order(self):
        """Orders every row so that few arrows cross: barycenters downwards and upwards from shuffled starts, the best of all."""
        best, fewest = self.rows, self.crossings(self.rows)
        shuffle = random.Random(1).shuffle
        for start in range(STARTS):
            rows = [list(row) for row in self.rows]
            if start:
                for row in rows:
                    shuffle(row)
            for sweep in range(6):
                self.sweep(rows, downwards=sweep % 2 == 0)
                self.swap_neighbours(rows)
                if (count := self.crossings(rows)) < fewest:
                    best, fewest = [list(row) for row in rows], count
        self.rows = best

    def sweep(self, rows: list[list], downwards: bool):
        neighbours = self.above if downwards else self.below
        for number in range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1):
            other = rows[number - 1 if downwards else number + 1]
            position = {node: (i + 0.5) / len(other) for i, node in enumerate(other)}
            old = {node: (i + 0.5) / len(rows[number]) for i, node in enumerate(rows[number])}
            rows[number].sort(key=lambda node: mean([position[n] for n in neighbours[node]] or [old[node]]))

    def swap_neighbours(self, rows: list[list]):
        for row in rows:
            for i in range(len(row) - 1):
                before = self.crossings(rows)
                row[i], row[i + 1] = row[i + 1], row[i]
                if self.crossings(rows) >= before:
                    row[i], row[i + 1] = row[i + 1], row[i]

    def crossings(self, rows: list[list]) -> int:
        position = {node: (number, i) for number, row in enumerate(rows) for i, node in enumerate(row)}
        ends = [(position[a], position[b]) for a, b in self.links]
        return sum(1 for (a, b), (c, d) in itertools.combinations(ends, 2)
                   if a[0] == c[0] and (a[1] - c[1]) * (b[1] - d[1]) < 0)

    def place(self) -> dict:
        """The centre of every box and point: near what it is linked with, none overlapping."""
        x = {}
        for row in self.rows:
            for i, node in enumerate(row):
                x[node] = WIDTH * (i + 1) / (len(row) + 1)
        for _ in range(600):
            for row in self.rows:
                wanted = [self.wanted(node, x) for node in row]
                for node, place in zip(row, apart(wanted, [self.width(node) for node in row])):
                    x[node] = (x[node] + place) / 2
        left = min(x[node] - self.width(node) / 2 for node in x)
        right = max(x[node] + self.width(node) / 2 for node in x)
        return {node: place + (WIDTH - left - right) / 2 for node, place in x.items()}

    def wanted(self, node, x: dict) -> float:
        """A box wants the mean of what it is linked with; the points of a long arrow want to be one straight line."""
        if isinstance(node, str):
            return mean([x[n] for n in self.above[node] + self.below[node]] or [x[node]])
        path = self.paths[node[:2]]
        points = [x[point] for point in path[1:-1]]
        return mean(points * 8 + [x[path[0]], x[path[-1]]])

    def width(self, node) -> float:
        return BOX_WIDTH[node] if isinstance(node, str) else 24


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def apart(wanted: list[float], widths: list[float]) -> list[float]:
    """Centres nearest to the wanted ones, in this order, GAP apart and inside the drawing."""
    offsets, total = [], 0.0
    for width in widths:
        offsets.append(total + width / 2)
        total += width + GAP
    blocks: list[list[float]] = []  # pooled neighbours: [mean of what they want, count]
    for place, offset in zip(wanted, offsets):
        blocks.append([place - offset, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (a, n), (b, m) = blocks[-2:]
            blocks[-2:] = [[(a * n + b * m) / (n + m), n + m]]
    highest = WIDTH - GAP - (total - GAP)
    starts = [min(max(start, GAP), max(highest, GAP)) for start, count in blocks for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets)]


class Drawing:
    def __init__(self, root: pathlib.Path):
        self.edges, self.inner = count_includes(root)
        self.layout = Layout(reduce(self.edges))
        self.ports = {}
        for node in ROW_OF:
            for side, links in (("out", self.layout.below[node]), ("in", self.layout.above[node])):
                self.spread(node, side, links)

    def spread(self, node: str, side: str, links: list):
        """Gives every arrow its own place on a box's edge, in the order of where the arrows come from or go."""
        for i, other in enumerate(sorted(links, key=self.layout.x.get)):
            self.ports[side, node, other] = self.layout.x[node] + (i - (len(links) - 1) / 2) * PORT_GAP

    def y(self, node) -> float:
        return TOP + ROW_HEIGHT * (ROW_OF[node] if isinstance(node, str) else node[2])

    def end(self, side: str, node, other) -> float:
        return self.ports[side, node, other] if isinstance(node, str) else self.layout.x[node]

    def arrow(self, edge: tuple[str, str]) -> str:
        path = self.layout.paths[edge]
        x, y = self.end("out", path[0], path[1]), self.y(path[0]) + BOX_HEIGHT
        line = [f"M{x:.0f} {y:.0f}"]
        for upper, lower in itertools.pairwise(path):
            x1, y1 = self.end("in", lower, upper), self.y(lower)
            last = lower == path[-1]
            curve_end = y1 - STRAIGHT if last else y1
            middle = (y + curve_end) / 2
            line.append(f"C{x:.0f} {middle:.0f} {x1:.0f} {middle:.0f} {x1:.0f} {curve_end:.0f}")
            y = y1 - 5 if last else y1 + BOX_HEIGHT
            line.append(f"V{y:.0f}")
            x = x1
        return (f'<path class="arrow" d="{" ".join(line)}" marker-end="url(#head)"/>\n'
                f'<text class="count middle" x="{x:.0f}" y="{y - 12:.0f}">{self.edges[edge]}</text>\n')

    def box(self, node: str) -> str:
        width, y = BOX_WIDTH[node], self.y(node)
        x = self.layout.x[node] - width / 2
        sums = sorted(((b, n) for (a, b), n in self.edges.items() if a == node), key=lambda pair: ROW_OF[pair[0]])
        tip = ", ".join(f"{LABELS.get(b, b)} {n}" for b, n in sums) or "nothing of the project"
        parts = [f'<g><title>{html.escape(LABELS.get(node, node))} includes: {html.escape(tip)}</title>\n'
                 f'<rect x="{x:.0f}" y="{y:.0f}" width="{width}" height="{BOX_HEIGHT}" rx="8" fill="{COLORS[ROW_OF[node]]}"/>\n']
        centre = self.layout.x[node]
        if node == "engine":
            parts.append(f'<text class="name" x="{x + 14:.0f}" y="{y + 28:.0f}">engine</text>\n')
            parts += self.chips(x + 84, y + 11)
        else:
            parts.append(f'<text class="name middle" x="{centre:.0f}" y="{y + 20:.0f}">{LABELS.get(node, node)}</text>\n'
                         f'<text class="words middle" x="{centre:.0f}" y="{y + 36:.0f}">{DESCRIPTIONS[node]}</text>\n')
        return "".join(parts) + "</g>\n"

    def chips(self, x: float, y: float) -> list[str]:
        """Engine's subfolders; an arrow counts the includes from one to the next."""
        parts, names = [], layers.ROOMS["engine"]
        for i, name in enumerate(names):
            width = 24 + 6 * len(name)
            parts.append(f'<rect class="chip" x="{x:.0f}" y="{y:.0f}" width="{width}" height="24" rx="6"/>\n'
                         f'<text class="words middle" x="{x + width / 2:.0f}" y="{y + 16:.0f}">{name}</text>\n')
            x += width
            if i + 1 < len(names):
                if count := self.inner.get((name, names[i + 1]), 0):
                    parts.append(f'<path class="arrow" d="M{x:.0f} {y + 12:.0f}h19" marker-end="url(#head)"/>\n'
                                 f'<text class="count inner middle" x="{x + 10:.0f}" y="{y + 6:.0f}">{count}</text>\n')
                x += 25
        return parts

    def svg(self) -> str:
        height = TOP + ROW_HEIGHT * (len(ROWS) - 1) + BOX_HEIGHT + 30
        body = [self.arrow(edge) for edge in sorted(self.layout.paths)] + [self.box(node) for node in ROW_OF]
        return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">
<!-- Written by tests/tidy/dependency_graph.py; do not edit. -->
<style>
text {{ font-family: "DejaVu Sans", "Segoe UI", Helvetica, Arial, sans-serif; fill: #1e293b }}
.title {{ font-size: 17px; font-weight: 600 }}
.name {{ font-size: 14px; font-weight: 600 }}
.words {{ font-size: 11px; fill: #475569 }}
.count {{ font-size: 11px; fill: #334155; paint-order: stroke; stroke: #ffffff; stroke-width: 6px; stroke-linejoin: round }}
.inner {{ stroke: none }}
.middle {{ text-anchor: middle }}
.arrow {{ fill: none; stroke: #64748b; stroke-width: 1.4 }}
rect {{ stroke: #94a3b8; stroke-width: 1 }}
.page {{ fill: #ffffff; stroke: none }}
.chip {{ fill: #ffffff }}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="3" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#64748b"/></marker></defs>
<rect class="page" width="{WIDTH}" height="{height}" rx="10"/>
<text class="title" x="{GAP}" y="34">Which folder includes which</text>
<text class="words" x="{GAP}" y="53">An arrow's number counts #include lines. An arrow that others already imply is left out.</text>
{"".join(body)}</svg>
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--write", action="store_true", help="renew the drawing")
    arguments = parser.parse_args()
    file = arguments.root / DRAWING
    right = Drawing(arguments.root).svg()
    if arguments.write:
        file.write_text(right, encoding="utf-8")
    elif not file.exists() or file.read_text(encoding="utf-8") != right:
        print(f"{DRAWING} is not the drawing of this tree; renew it: python3 -B tests/tidy/dependency_graph.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
