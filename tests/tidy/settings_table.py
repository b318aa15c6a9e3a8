#!/usr/bin/env python3
"""Compares the tables of settings and variables in docs/configuration.md with the program.

    settings_table.py SIMILE DOCUMENT [--write]

SIMILE is the built program, whose `config --json` prints them. Exits 1 and prints the lines that differ, or with --write
puts the correct tables between the document's markers. Standard library only.
"""

import difflib
import json
import pathlib
import subprocess
import sys


def cell(value) -> str:
    text = json.dumps(value) if isinstance(value, bool) else str(value)
    return f"`{text}`" if text else ""


def settings_table(printed: dict) -> str:
    lines = ["| key | flag | default | range | what |\n", "|---|---|---|---|---|\n"]
    for setting in printed["settings"]:
        range_with_unit = f'{setting["range"]} {setting["unit"]}'.strip()
        lines.append(f'| {cell(setting["key"])} | {cell(setting["flag"])} | {cell(setting["default"])} | '
                     f'{range_with_unit} | {setting["help"]} |\n')
    return "".join(lines)


def familiar_table(printed: dict) -> str:
    lines = ["| name | sets | how |\n", "|---|---|---|\n"]
    for name in printed["familiar_names"]:
        lines.append(f'| {cell(name["name"])} | {cell(name["key"])} | {name["help"]} |\n')
    return "".join(lines)


def foreign_table(printed: dict) -> str:
    lines = ["| variable | read by | what |\n", "|---|---|---|\n"]
    for variable in printed["foreign_variables"]:
        lines.append(f'| {cell(variable["name"])} | {variable["reader"] or "nobody: ignored"} | {variable["help"]} |\n')
    return "".join(lines)


TABLES = {"settings": settings_table, "familiar names": familiar_table, "foreign variables": foreign_table}


def with_right_tables(text: str, printed: dict) -> str:
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: written by tests/tidy/settings_table.py -->\n", f"<!-- end of {name} -->\n"
        before, rest = text.split(begin)
        text = before + begin + table(printed) + end + rest.split(end)[1]
    return text


def main() -> int:
    program, document = sys.argv[1], pathlib.Path(sys.argv[2])
    printed = json.loads(
        subprocess.run([program, "config", "--json"], capture_output=True, check=True, text=True, env={}).stdout)
    written = document.read_text(encoding="utf-8")
    right = with_right_tables(written, printed)
    if written == right:
        return 0
    if "--write" in sys.argv[3:]:
        document.write_text(right, encoding="utf-8")
        return 0
    sys.stdout.writelines(
        difflib.unified_diff(written.splitlines(True), right.splitlines(True), str(document), "simile config --json"))
    return 1


if __name__ == "__main__":
    sys.exit(main())
