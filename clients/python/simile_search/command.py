"""The command `simile` of this package. `simile import` and `simile export` are here; for all else the command becomes the server's
program.

    simile import films.parquet films/
    simile export films neighbours.parquet -k 20
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

import grpc

from . import client, errors, exporting, importing

_ELF = b"\x7fELF"
_MISUSE = 64  # as the server's program
_ERASE_LINE = "\r\x1b[K"
_EXPORT_EXAMPLES = """examples:
  simile export films neighbours.parquet -k 20 --source-filter 'year >= 1990'
  simile export films recommendations.jsonl --sources users --exclude-seen --payload title

Run the same command again to resume a stopped export.
"""
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
    own = {"import": _import, "export": _export}.get(words[0] if words else "")
    if own is not None:
        return own(words[1:])
    if words in ([], ["--help"], ["-h"]):
        print("Commands of the Python package:\n  simile import  writes tables as a collection\n"
              "  simile export  writes the answers of every item or user to a file\nCommands of the server's program:\n", flush=True)
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
    parser.add_argument("--number", metavar="COLUMN", action="append", default=[],
                        help="a column of numbers, whose other values are left out; may be repeated")
    parser.add_argument("--metric", choices=("cosine", "dot"), help="default: cosine")
    parser.add_argument("--json", action="store_true", help="print what was chosen as one JSON object")
    given = parser.parse_args(words)
    terminal = sys.stderr.isatty()
    try:
        report = importing.import_tables(given.sources, given.folder, id=given.id, vector=given.vector, user=given.user,
                                         metric=given.metric, leave_out=given.leave_out, numbers=given.number,
                                         progress=lambda what: print(what, file=sys.stderr) if terminal else None)
    except (importing.ImportFailed, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(dataclasses.asdict(report), ensure_ascii=False))
    else:
        _print(report)
    return 0


def _export(words: Sequence[str]) -> int:
    parser = _Parser(prog="simile export", description="Writes the neighbours of every item, or recommendations for every user, to a file.",
                     epilog=_EXPORT_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", metavar="COLLECTION")
    parser.add_argument("file", metavar="FILE", help="to write: .jsonl, or .parquet (needs pyarrow)")
    parser.add_argument("--sources", choices=("items", "users"), default="items", help="what to export (default items)")
    parser.add_argument("-k", type=int, default=10, metavar="COUNT", help="hits of each item or user (default 10)")
    parser.add_argument("--filter", metavar="TEXT", help="only hits that pass: 'genres:\"Drama\" AND year >= 1990'")
    parser.add_argument("--source-filter", metavar="TEXT", default="", help="export only the items that pass")
    parser.add_argument("--exclude-seen", action="store_true", help="leave out items that the user has seen")
    parser.add_argument("--score-threshold", type=float, metavar="SCORE", help="leave out hits with a lower score")
    parser.add_argument("--payload", metavar="FIELD[,FIELD...]", help="fields of each hit (default none)")
    parser.add_argument("--restart", action="store_true", help="discard an unfinished export to this file and start again")
    parser.add_argument("--server", metavar="HOST:PORT", default=os.environ.get("SIMILE_SERVER", "localhost:50051"),
                        help="default SIMILE_SERVER, else localhost:50051")
    parser.add_argument("--ca", metavar="FILE", default=os.environ.get("SIMILE_CA"),
                        help="connect by TLS and trust the authorities in this PEM file (default SIMILE_CA)")
    parser.add_argument("--token-file", metavar="FILE", default=os.environ.get("SIMILE_TOKEN_FILE"),
                        help="send the token in this file (default SIMILE_TOKEN_FILE, or SIMILE_TOKEN itself)")
    parser.add_argument("--json", action="store_true", help="print what was written as one JSON object")
    given = parser.parse_args(words)
    terminal = sys.stderr.isatty()
    options = {"filter": given.filter, "score_threshold": given.score_threshold, "exclude_seen": given.exclude_seen,
               "payload": given.payload.split(",") if given.payload else None}
    try:
        token = pathlib.Path(given.token_file).read_text("utf-8").strip() if given.token_file else os.environ.get("SIMILE_TOKEN")
        credentials = grpc.ssl_channel_credentials(pathlib.Path(given.ca).read_bytes()) if given.ca else None
        with client.connect(given.server, token=token, credentials=credentials) as connected:
            report = exporting.write_export(connected.collection(given.collection), given.file, given.k, sources=given.sources,
                                            source_filter=given.source_filter, restart=given.restart,
                                            progress=_draw if terminal else None,
                                            **{name: value for name, value in options.items() if value is not None})
    except (exporting.ExportFailed, errors.SimileError, OSError) as error:
        print(f"{_ERASE_LINE if terminal else ''}error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{_ERASE_LINE if terminal else ''}stopped; run the same command again to resume", file=sys.stderr)
        return 130
    print(_ERASE_LINE if terminal else "", end="", file=sys.stderr)
    resumed = f", {report.resumed:,} of them by an earlier run" if report.resumed else ""
    print(json.dumps(dataclasses.asdict(report)) if given.json
          else f"wrote {report.path}: answers of {report.sources:,} {given.sources}{resumed}, from content {report.snapshot_id[:8]}")
    return 0


def _draw(done: int, total: int) -> None:
    bar = "#" * (30 * done // max(1, total))
    print(f"\r[{bar:<30}] {done:,} of {total:,}", end="", file=sys.stderr, flush=True)


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
