"""The table of docs/benchmarks/cpu.md, and the figures behind it."""

import dataclasses
import json
import pathlib

from peer_match import APPROXIMATE, EXACT, Entry

BEGIN = "<!-- table: written by tests/bench/against_peers.py -->\n"
END = "<!-- end of table -->\n"

TITLES = {"scan": "plain scan", "faiss": "FAISS", "torch": "torch", "torch-chunked": "torch, chunked", "numpy": "NumPy",
          "usearch": "usearch", "torch-bf16": "torch bf16", "torch-bf16-chunked": "torch bf16, chunked"}


def best_exact(entries: dict[str, Entry]) -> tuple[str, float]:
    """The fastest exact rival, our own plain scan among them, and its median in ms."""
    times = {engine: entries[engine].median_ms() for engine in EXACT if engine in entries}
    times = {engine: time for engine, time in times.items() if time is not None}
    if not times:
        return "", float("nan")
    return min(times.items(), key=lambda item: item[1])


def ms_text(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


class Notes:
    """Numbers the sentences below the table, each once."""

    def __init__(self):
        self.sentences = []

    def mark(self, sentence: str) -> str:
        if sentence not in self.sentences:
            self.sentences.append(sentence)
        return f"({self.sentences.index(sentence) + 1})"


def cell(entry: Entry | None, notes: Notes) -> str:
    if entry is None:
        return ""
    if entry.note:
        return notes.mark(f"left out: {entry.note}")
    return ms_text(entry.median_ms()) if entry.times_ms else ""


def row(result: dict, ours: list[str], rivals: list[str], notes: Notes) -> list[str]:
    entries = result["entries"]
    rival, rival_ms = best_exact(entries)
    cells = [result["data"], f'{result["rows"]:,} x {result["dim"]}', str(result["batch"]), str(result["k"])]
    for engine in ours:
        entry = entries.get(engine)
        if entry is None or not entry.times_ms:
            cells += ["", ""]
            continue
        cells += [f"{ms_text(entry.median_ms())} `{entry.answered_by}`",
                  f"**{rival_ms / entry.median_ms():.1f}x**" if rival else ""]
    cells.append(TITLES.get(rival, ""))
    for engine in rivals:
        text = cell(entries.get(engine), notes)
        if engine in APPROXIMATE and engine in entries and entries[engine].times_ms:
            text += f" ({entries[engine].found_share:.1%})"
        cells.append(text)
    return cells


def table(results: list[dict], about: dict) -> str:
    """All of the section between the markers."""
    engines = [engine for result in results for engine in result["entries"]]
    ours = [engine for engine in dict.fromkeys(engines) if engine not in TITLES]
    rivals = [engine for engine in TITLES if engine in engines]
    heads = ["data", "rows", "batch", "k"]
    for engine in ours:
        heads += [f"Simile {engine}", "faster"]
    heads += ["best exact rival"] + [TITLES[engine] for engine in rivals]
    notes = Notes()
    lines = [heads, ["---"] * 2 + ["---:"] * 2 + ["---", "---:"] * len(ours) + ["---"] + ["---:"] * len(rivals)]
    lines += [row(result, ours, rivals, notes) for result in results]
    text = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    text += "\n" + "".join(f"\n({number}) {sentence}" for number, sentence in enumerate(notes.sentences, 1))
    return f"{preface(results, about)}\n{text.rstrip()}\n"


def preface(results: list[dict], about: dict) -> str:
    verified = [entry.verified for result in results for engine, entry in result["entries"].items()
                if engine not in TITLES and entry.times_ms]
    builds = "; ".join(f'{name}: {", ".join(texts)}' for name, texts in about["builds"].items())
    return (f'{about["date"]}, {about["cpu"]}, {about["threads"]} threads. Medians in ms of a batch, contenders taking turns '
            f'in one run. Simile\'s rows and score bits were compared with the plain scan\'s for every run, at least '
            f'{min(verified, default=0)} different queries a case; every exact rival\'s rows agree with them but for scores '
            f'within 2e-6. "faster" is the best exact rival\'s time over ours. bf16 is approximate (in brackets, the share of the '
            f'exact rows that it finds) and does not count.\n\n'
            f'{", ".join(about["versions"])}. Index built in: {builds}.\n\n'
            f'```\n{about["command"]}\n```\n')


def write_page(path: pathlib.Path, text: str, plots: list[pathlib.Path], begin: str = BEGIN, end: str = END) -> None:
    """Puts the text between the page's markers, or at its end."""
    pictures = "".join(f"\n![{plot.stem}]({plot.name})\n" for plot in plots)
    section = begin + text + pictures + end
    path.parent.mkdir(parents=True, exist_ok=True)
    page = path.read_text(encoding="utf-8") if path.exists() else "# Exact search on a CPU\n"
    if begin in page:
        before, rest = page.split(begin)
        page = before + section + rest.split(end)[1]
    else:
        page += "\n" + section
    path.write_text(page, encoding="utf-8")


def write_json(path: pathlib.Path, results: list[dict], about: dict) -> None:
    plain = [result | {"entries": {engine: dataclasses.asdict(entry) | {"median_ms": entry.median_ms()}
                                   for engine, entry in result["entries"].items()},
                       "best_exact_rival": best_exact(result["entries"])[0]} for result in results]
    path.write_text(json.dumps(about | {"cases": plain}, indent=1) + "\n", encoding="utf-8")


def read_json(path: pathlib.Path) -> tuple[list[dict], dict]:
    about = json.loads(path.read_text(encoding="utf-8"))
    fields = {field.name for field in dataclasses.fields(Entry)}
    results = about.pop("cases")
    for result in results:
        result["entries"] = {engine: Entry(**{key: value for key, value in entry.items() if key in fields})
                             for engine, entry in result["entries"].items()}
    return results, about
