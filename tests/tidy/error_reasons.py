#!/usr/bin/env python3
"""Compares the names that docs/api.md lists with the sources: reasons of errors, and capabilities.

    error_reasons.py [--write]

Exits 1 and prints what differs. With --write it first puts the correct table of reasons between the document's two markers;
the capabilities are written by hand. Standard library only.
"""

import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "base" / "error_detail.cpp"
CAPABILITIES_SOURCE = ROOT / "src" / "service" / "admin_handlers.cpp"
DOCUMENT = ROOT / "docs" / "api.md"
BEGIN = "<!-- reasons: written by tests/tidy/error_reasons.py -->\n"
END = "<!-- end of reasons -->\n"

TEXT = r'((?:"[^"]*"\s*)+)'  # a literal, or several that C++ joins
ROW = re.compile(rf"ErrorReasonInfo\{{\s*ErrorReason::k\w+,\s*{TEXT},\s*StatusCode::k(\w+),\s*{TEXT},\s*{TEXT}\}}")


def joined(literals: str) -> str:
    return "".join(re.findall(r'"([^"]*)"', literals))


def reasons() -> list[dict]:
    """Every reason in the order of the source: its name, code, meaning and remedy."""
    source = SOURCE.read_text(encoding="utf-8")
    found = []
    for name, code, meaning, remedy in ROW.findall(source):
        code_name = re.sub(r"(?<!^)([A-Z])", r"_\1", code).upper()
        found.append({"name": joined(name), "code": code_name, "meaning": joined(meaning), "remedy": joined(remedy)})
    if len(found) != source.count("ErrorReasonInfo{"):
        raise ValueError(f"{SOURCE}: some rows of the table are not written as this script reads them")
    return found


def table() -> str:
    lines = ["| reason | code | when | what a program can do |\n", "|---|---|---|---|\n"]
    for reason in reasons():
        lines.append(f'| `{reason["name"]}` | `{reason["code"]}` | {reason["meaning"]} | {reason["remedy"]} |\n')
    return "".join(lines)


def capabilities_differ(text: str) -> list[str]:
    """Names that only one of the source and the document has."""
    array = re.search(r"kCapabilities = \{(.*?)\};", CAPABILITIES_SOURCE.read_text(encoding="utf-8"), re.DOTALL)[1]
    known = set(re.findall(r'^\s*"(\w+)",', array, re.MULTILINE))
    listed = set(re.findall(r"^\| `([a-z_]+)` \| \d+\.\d+\.\d+ \|", text, re.MULTILINE))
    return sorted(known ^ listed)


def main() -> int:
    right = table()
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    written, after = rest.split(END)
    if written != right and "--write" in sys.argv[1:]:
        DOCUMENT.write_text(before + BEGIN + right + END + after, encoding="utf-8")
        written = right
    sys.stdout.writelines(
        difflib.unified_diff(written.splitlines(True), right.splitlines(True), str(DOCUMENT), str(SOURCE)))
    differing = capabilities_differ(text)
    for name in differing:
        print(f"capability {name}: only one of {DOCUMENT} and {CAPABILITIES_SOURCE} has it")
    return 1 if written != right or differing else 0


if __name__ == "__main__":
    sys.exit(main())
