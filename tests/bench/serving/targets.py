"""A table of measured figures beside their targets, and what calls.py and hostile.py share."""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import statistics
import sys
import tempfile
from typing import Callable, Iterator

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(TESTS / "bench"), str(TESTS / "python")]

from processor_name import processor_name
from servers import ROOT, Server, load, make_stubs

SENTENCES = (62_423, 384)


@dataclasses.dataclass
class Figure:
    """A line of the table. The median of what was measured counts."""
    what: str
    measured: list[float]
    target: float
    unit: str = ""
    at_least: bool = False  # else at most

    def median(self) -> float:
        return statistics.median(self.measured)

    def is_met(self) -> bool:
        return self.median() >= self.target if self.at_least else self.median() <= self.target


@dataclasses.dataclass
class Machine:
    """What rows are measured with."""
    arguments: argparse.Namespace
    work: pathlib.Path
    notes: list[str]

    def seconds(self, full: float) -> float:
        """The time that a row takes for a part, shorter with --quick."""
        return full / 5 if self.arguments.quick else full

    def rounds(self) -> range:
        return range(1 if self.arguments.quick else self.arguments.rounds)

    def load(self, server: Server, *flags, seconds: float = 5, warm_up: str = "500ms") -> dict:
        """One load of `simile bench`."""
        return load(self.arguments.simile, server, "--duration", f"{self.seconds(seconds):g}s", "--warm-up", warm_up, *flags)[0]

    def mix(self, *calls: dict) -> list:
        """The flags for these calls of `simile bench`."""
        with tempfile.NamedTemporaryFile("w", dir=self.work, suffix=".json", delete=False) as file:
            json.dump({"calls": calls}, file)
        return ["--mix", file.name]

    def random_rows(self, rows: int, dim: int) -> pathlib.Path:
        """A collection's folder with random vectors, made once."""
        import numpy as np
        folder = self.work / f"random-{rows}x{dim}"
        if not folder.exists():
            folder.mkdir()
            vectors = np.random.default_rng(rows).standard_normal((rows, dim), np.float32)
            np.save(folder / "vectors.npy", vectors)
        return folder

    def sentences(self) -> pathlib.Path:
        if self.arguments.sentences:
            return self.arguments.sentences
        note = "the sentences are {:,} x {} random vectors".format(*SENTENCES)
        if note not in self.notes:
            self.notes.append(note)
        return self.random_rows(*SENTENCES)


Rows = dict[str, Callable[[Machine], Iterator[Figure]]]


def number_text(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 or number == int(number) else f"{number:.3g}"


def measured_text(figure: Figure) -> str:
    """The median, and between what the rounds lay."""
    low, high = min(figure.measured), max(figure.measured)
    text = f"{number_text(figure.median())} {figure.unit}".rstrip()
    return text if low == high else f"{text} ({number_text(low)} to {number_text(high)})"


def table(figures: list[dict], before: list[dict]) -> str:
    """Of entries as --json has them: what, before, measured, target."""
    earlier = {(entry["row"], entry["what"]): entry for entry in before}
    lines = [["row", "what", *(["before"] if before else []), "measured", "target", "met"]]
    lines.append(["---"] * len(lines[0]))
    for entry in figures:
        figure = figure_of(entry)
        cells = [entry["row"], figure.what]
        if before:
            former = earlier.get((entry["row"], figure.what))
            cells.append(measured_text(figure_of(former)) if former else "")
        target = f"{'>=' if figure.at_least else '<='} {number_text(figure.target)} {figure.unit}".rstrip()
        lines.append([*cells, measured_text(figure), target, "yes" if figure.is_met() else "**no**"])
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def figure_of(entry: dict) -> Figure:
    entry = {"target": entry.get("asked")} | entry  # its former name, in files for --before
    return Figure(**{field.name: entry[field.name] for field in dataclasses.fields(Figure)})


def entries_of(name: str, measure: Callable[[Machine], Iterator[Figure]], machine: Machine) -> Iterator[dict]:
    """A row's figures as --json has them."""
    try:
        for figure in measure(machine):
            say(f"{name}: {figure.what}: {measured_text(figure)}")
            yield {"row": name} | dataclasses.asdict(figure)
    except Exception as error:  # of any library: it must not cost the other rows their figures
        text = f"{type(error).__name__}: {error}"
        say(f"{name}: {text}")
        machine.notes.append(f"{name} was not measured to its end: {text.splitlines()[0]}")


def chosen(rows: Rows, names: str | None) -> Rows:
    """Raises ValueError when there is no such row."""
    if names is None:
        return rows
    wanted = names.split(",")
    if unknown := [name for name in wanted if name not in rows]:
        raise ValueError(f"no such row: {', '.join(unknown)}; there are {', '.join(rows)}")
    return {name: rows[name] for name in wanted}


def parse(parser: argparse.ArgumentParser, rows: Rows) -> argparse.Namespace:
    """The options of both scripts, beside those that the parser has."""
    parser.add_argument("--rows", metavar="A,B", help=f"only these; there are {', '.join(rows)}")
    parser.add_argument("--simile", type=pathlib.Path, default=ROOT / "build/bin/simile", help="default build/bin/simile")
    parser.add_argument("--sentences", type=pathlib.Path, metavar="FOLDER",
                        help="of {:,} x {} vectors; default: random ones".format(*SENTENCES))
    parser.add_argument("--rounds", type=int, default=5, help="of which medians are taken; default %(default)s")
    parser.add_argument("--quick", action="store_true", help="one round, a fifth of the time, smaller sets")
    parser.add_argument("--before", type=pathlib.Path, help="what --json wrote for another server; the table has its figures, too")
    parser.add_argument("--json", type=pathlib.Path, help="file to write all figures to")
    arguments = parser.parse_args()
    try:
        arguments.rows = chosen(rows, arguments.rows)
    except ValueError as error:
        parser.error(str(error))
    return arguments


def run(arguments: argparse.Namespace) -> int:
    """Measures the chosen rows and prints the table. 1 when a row could not be measured; what was measured decides nothing."""
    figures, notes = [], []
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        make_stubs(work / "stubs")
        machine = Machine(arguments, work, notes)
        for name, measure in arguments.rows.items():
            figures += entries_of(name, measure, machine)
            if arguments.json:
                about = {"cpu": processor_name(), "processors": os.cpu_count(), "quick": arguments.quick, "notes": notes}
                arguments.json.write_text(json.dumps({"about": about, "figures": figures}, indent=1), encoding="utf-8")
    before = json.loads(arguments.before.read_text(encoding="utf-8"))["figures"] if arguments.before else []
    print(table(figures, before), *(f"{note[0].upper()}{note[1:]}." for note in notes), sep="\n")
    return 1 if any("was not measured" in note for note in notes) else 0


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
