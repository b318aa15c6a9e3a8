"""The command `simile` of this package. `simile import` is here; for all else the command becomes the server's program.

    simile import films.parquet films/
    simile serve --collection films=films/
"""

import argparse
import dataclasses
import importlib.util
import json
import os
import pathlib
import platform
import shutil
import sys
from collections.abc import Sequence
from typing import NoReturn, Optional

from . import importing

_ELF = b"\x7fELF"
_MISUSE = 64  # as the server's program
_EXAMPLES = """examples:
  simile import films.parquet films/
  simile import embeddings.npy films.csv films/ --id film_code
  simile import films.parquet users.parquet clicks.csv films/ --user user_id

A table with the column of --user has the users' vectors, or without vectors who has seen what. Files are .parquet (needs pyarrow),
.csv, .tsv, .jsonl, .json (a list of objects, or objects by key) and .npy. FOLDER must not exist or be empty.
"""


def find_program() -> Optional[str]:
    """The server's program: that of the package simile-server, else `simile` on the PATH; None where there is none."""
    package = importlib.util.find_spec("simile_server")
    if package is not None and package.origin is not None:
        program = pathlib.Path(package.origin).with_name("bin") / "simile"
        if program.exists():
            return str(program)
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("simile", path=folder)
        if found:
            with open(found, "rb") as file:
                if file.read(4) == _ELF:  # and not the script that runs this
                    return found
    return None


def why_no_program(command: str) -> str:
    return (f"simile {command} needs the server's program, which is not installed here. It runs on Linux x86-64 with glibc 2.36 or later, "
            "such as Debian 12 and Ubuntu 24.04: pip install simile-server. This machine is "
            f"{platform.system()} {platform.machine()}; from it, ask a server elsewhere: simile_search.connect(\"HOST:50051\").")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(_MISUSE, f"error: {message}; {self.prog} --help\n")


def main(arguments: Optional[Sequence[str]] = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["import"]:
        return _import(words[1:])
    if words in ([], ["--help"], ["-h"]):
        print("Of the Python package: simile import --help writes tables as a collection. Of the server's program:\n", flush=True)
    program = find_program()
    if program is None:
        print(f"error: {why_no_program(words[0] if words else 'serve')}", file=sys.stderr)
        return _MISUSE
    os.execv(program, [program, *words])


def _import(words: Sequence[str]) -> int:
    parser = _Parser(prog="simile import", description="Writes tables as the folder of a collection.", epilog=_EXAMPLES,
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="FILE", help="tables, and arrays of vectors in row order")
    parser.add_argument("folder", metavar="FOLDER", help="of the collection")
    parser.add_argument("--id", metavar="COLUMN", help="the items' ids; default: chosen by name among columns of different values; - for row numbers")
    parser.add_argument("--vector", metavar="COLUMN[,COLUMN...]",
                        help="the vectors, or columns of numbers that are their dimensions; default: lists of numbers, or numbered columns")
    parser.add_argument("--user", metavar="COLUMN", help="the users' ids, in further tables")
    parser.add_argument("--leave-out", metavar="COLUMN", action="append", default=[], help="a column that is not read; may be repeated")
    parser.add_argument("--metric", choices=("cosine", "dot"), help="default: cosine")
    parser.add_argument("--json", action="store_true", help="print what was chosen as one JSON object")
    given = parser.parse_args(words)
    terminal = sys.stderr.isatty()
    try:
        report = importing.import_tables(given.sources, given.folder, id=given.id, vector=given.vector, user=given.user,
                                         metric=given.metric, leave_out=given.leave_out,
                                         progress=lambda what: print(what, file=sys.stderr) if terminal else None)
    except (importing.ImportFailed, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(dataclasses.asdict(report), ensure_ascii=False))
    else:
        _print(report)
    return 0


def _print(report: importing.Report) -> None:
    lines = [("file", "column", "chosen", "why")] + [(each.file, each.column, each.chosen, each.why) for each in report.choices]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths)) + f"  {line[3]}")
    users = f", {report.users:,} users" if report.users else ""
    pairs = f", {report.interactions:,} interactions" if report.interactions else ""
    name = "".join(c if c.isalnum() or c in "_-" else "_" for c in pathlib.Path(report.folder).absolute().name) or "items"
    print(f"\nwrote {report.folder}: {report.rows:,} rows of {report.dim} dimensions{users}{pairs}\n"
          f"next: simile inspect {report.folder}\n      simile serve --collection {name}={report.folder}")
