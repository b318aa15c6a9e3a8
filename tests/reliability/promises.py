#!/usr/bin/env python3
"""The table of docs/reliability.md: what is promised, what proves it, with which figures, how long that takes.

    promises.py           print it
    promises.py --write   write it into docs/reliability.md

The promises and the tests of each are rows of promises.json, where a test is named as ctest lists it, or by its suite. Times come
from build/tests.xml, which `make test` writes; figures from what the tests record there and from the long runs that are kept in
docs/benchmarks (`record`, with the `figures` to show).
"""

import argparse
import json
import pathlib
import re
import sys
import xml.etree.ElementTree

from cycle_report import number_text

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reliability.md"
BENCHMARKS = ROOT / "docs/benchmarks"
JUNIT = ROOT / "build/tests.xml"
BEGIN = "<!-- promises: written by tests/reliability/promises.py -->"
END = "<!-- end of promises -->"
GTEST_CASE = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)
ADDED_TEST = re.compile(r"add_test\(NAME ([\w.]+)")


def rows() -> list[dict]:
    return json.loads((pathlib.Path(__file__).parent / "promises.json").read_text(encoding="utf-8"))


def known_tests() -> set[str]:
    """The names that the tree gives to tests: Suite, Suite.Case, and those of CMake."""
    known = set()
    for file in (ROOT / "tests").rglob("*.cpp"):
        for suite, case in GTEST_CASE.findall(file.read_text(encoding="utf-8")):
            known |= {suite, f"{suite}.{case}"}
    for file in (ROOT / "tests").rglob("CMakeLists.txt"):
        known |= set(ADDED_TEST.findall(file.read_text(encoding="utf-8")))
    return known


def is_case_of(name: str, test: str) -> bool:
    """Whether ctest's `name` is this test, a case of this suite, or an instance of either with parameters."""
    bare = re.sub(r"/\w+$", "", re.sub(r"^\w+/", "", name))
    return bare == test or bare.startswith(test + ".")


def durations(junit: pathlib.Path) -> dict[str, float]:
    """Seconds by the name of each test that ran and passed; of none without the file."""
    if not junit.exists():
        return {}
    cases = xml.etree.ElementTree.parse(junit).getroot().iter("testcase")
    return {case.get("name"): float(case.get("time")) for case in cases if case.get("status") == "run"}


def figure_text(record: dict, names: list[str]) -> str:
    """Of what a long run recorded: the figures with these names, and when."""
    by_name = {figure["what"]: figure for figure in record["figures"]}
    texts = [f"{name} {number_text(by_name[name]['value'])} {by_name[name]['unit']}".rstrip() for name in names]
    return f"{'; '.join(texts)} ({record['about']['date']}, `{record['about']['command']}`)"


def figures_of(row: dict) -> str:
    if "record" not in row:
        return ""
    file = BENCHMARKS / row["record"]
    text = figure_text(json.loads(file.read_text(encoding="utf-8")), row["figures"])
    return f"{text}: [all]({file.relative_to(PAGE.parent)})"


def seconds_of(row: dict, took: dict[str, float]) -> str:
    matching = [seconds for name, seconds in took.items() if any(is_case_of(name, test) for test in row["tests"])]
    return f"{sum(matching):.1f}" if matching else ""


def table(took: dict[str, float]) -> str:
    lines = ["| promise | tests | figures | seconds |", "|---|---|---|---|"]
    for row in rows():
        tests = ", ".join(f"`{test}`" for test in row["tests"])
        lines.append(f"| {row['promise']} | {tests} | {figures_of(row)} | {seconds_of(row, took)} |")
    return "\n".join(lines)


def without_times(text: str) -> str:
    """What does not change from one run to the next: all but the last column."""
    return re.sub(r"\| [\d.]* ?\|$", "|", text, flags=re.MULTILINE)


def written(page: str) -> str:
    """The table that the page has now. Raises ValueError when the page has no place for it."""
    begin, end = page.index(BEGIN) + len(BEGIN) + 1, page.index(END) - 1
    return page[begin:end]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="into docs/reliability.md")
    arguments = parser.parse_args()
    new = table(durations(JUNIT))
    if not arguments.write:
        print(new)
        return 0
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.replace(written(page), new), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
