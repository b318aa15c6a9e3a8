#!/usr/bin/env python3
"""Compares the table of settings in docs/operations.md with the program.

    settings_table.py SIMILE DOCUMENT [--write]

SIMILE is the built program, whose `config --json` prints the settings. Exits 1 and prints the lines that differ, or with
--write puts the correct table between the document's two markers. Standard library only.
"""

import difflib
import json
import pathlib
import subprocess
import sys

BEGIN = "<!-- settings: written by tests/tidy/settings_table.py -->\n"
END = "<!-- end of settings -->\n"


def cell(value) -> str:
    text = json.dumps(value) if isinstance(value, bool) else str(value)
    return f"`{text}`" if text else ""


def table(settings: list[dict]) -> str:
    lines = ["| key | flag | default | range | what |\n", "|---|---|---|---|---|\n"]
    for setting in settings:
        range_with_unit = f'{setting["range"]} {setting["unit"]}'.strip()
        lines.append(f'| {cell(setting["key"])} | {cell(setting["flag"])} | {cell(setting["default"])} | '
                     f'{range_with_unit} | {setting["help"]} |\n')
    return "".join(lines)


def main() -> int:
    program, document = sys.argv[1], pathlib.Path(sys.argv[2])
    printed = subprocess.run([program, "config", "--json"], capture_output=True, check=True, text=True, env={}).stdout
    right = table(json.loads(printed)["settings"])
    text = document.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    written, after = rest.split(END)
    if written == right:
        return 0
    if "--write" in sys.argv[3:]:
        document.write_text(before + BEGIN + right + END + after, encoding="utf-8")
        return 0
    sys.stdout.writelines(difflib.unified_diff(written.splitlines(True), right.splitlines(True), str(document), "simile config --json"))
    return 1


if __name__ == "__main__":
    sys.exit(main())
