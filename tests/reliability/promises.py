#!/usr/bin/env python3
"""The table of docs/reliability.md: what is promised, what proves it, with which figures, how long that takes.

    promises.py           print it
    promises.py --write   write it into docs/reliability.md

Both fail, with the names, unless each test that a promise names passed in that run. A test of many instances may skip some, as on a
processor without the instructions; the table says how many.

The promises and the tests of each are rows of promises.json, where a test is named as ctest lists it, or by its suite. Times come
from build/tests.xml, which `make test` writes; figures from what the tests record there and from the long runs that are kept in
docs/benchmarks (`record`, with the `figures` to show, and what the run must have reached `at_least`: its length). `printed` are
patterns of what the tests print.
"""

import argparse
import json
import pathlib
import re
import sys
import xml.etree.ElementTree

from typing import NamedTuple, NoReturn

from cycle_report import Figure, number_text

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reliability.md"
BENCHMARKS = ROOT / "docs/benchmarks"
JUNIT = ROOT / "build/tests.xml"
BEGIN = "<!-- promises: written by tests/reliability/promises.py -->"
END = "<!-- end of promises -->"
GTEST_CASE = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)
ADDED_TEST = re.compile(r"simile_script_test\(([\w.]+)")
PASSED = "passed"
SKIPPED = "skipped"


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


def case_of(name: str) -> str:
    """Of ctest's name, what the tree calls the test: without the instance and its parameters."""
    return re.sub(r"/[^/]+$", "", re.sub(r"^\w+/", "", name.split("  # ")[0]))


def is_case_of(name: str, test: str) -> bool:
    """Whether ctest's `name` is this test, a case of this suite, or an instance of either with parameters."""
    case = case_of(name)
    return case == test or case.startswith(test + ".")


class Run(NamedTuple):
    """What became of one test."""
    seconds: float
    output: str
    outcome: str  # PASSED, SKIPPED, or what else ctest says

    def passed(self) -> bool:
        return self.outcome == PASSED


def outcome_of(case: xml.etree.ElementTree.Element) -> str:
    """A test that skips itself is told from one that ctest could not start."""
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message") == "SKIP_REGULAR_EXPRESSION_MATCHED":
        return SKIPPED
    return {"run": PASSED, "fail": "failed", "notrun": "did not run"}.get(case.get("status"), case.get("status"))


def runs(junit: pathlib.Path) -> dict[str, Run]:
    """By the name of each test; none without the file."""
    if not junit.exists():
        return {}
    cases = xml.etree.ElementTree.parse(junit).getroot().iter("testcase")
    return {case.get("name"): Run(float(case.get("time")), case.findtext("system-out", ""), outcome_of(case)) for case in cases}


def unproven_by(row: dict, ran: dict[str, Run]) -> list[str]:
    """The tests of the promise that do not prove it, and why."""
    found = []
    for test in row["tests"]:
        cases = {name: run for name, run in ran.items() if is_case_of(name, test)}
        if not cases:
            found.append(f"{test}: not in the report")
        passed = {case_of(name) for name, run in cases.items() if run.passed()}
        found += [f"{name}: {run.outcome}" for name, run in cases.items()
                  if not run.passed() and not (run.outcome == SKIPPED and case_of(name) in passed)]
    return found


def runs_of(row: dict, ran: dict[str, Run], outcome: str = PASSED) -> list[Run]:
    return [run for name, run in ran.items() if run.outcome == outcome and any(is_case_of(name, test) for test in row["tests"])]


def record_of(row: dict) -> dict:
    """What the long run found, as cycle_report.Report writes it."""
    return json.loads((BENCHMARKS / row["record"]).read_text(encoding="utf-8"))


def figures_by_name(record: dict) -> dict[str, Figure]:
    return {figure["what"]: Figure(**figure) for figure in record["figures"]}


def faults_of(record: dict, at_least: dict[str, float]) -> list[str]:
    """Why this record does not prove the promise: what failed in the run, and for what the run was too short."""
    by_name = figures_by_name(record)
    faults = [*record["failures"], *(f"{figure.what}: not as it must be" for figure in by_name.values() if not figure.holds())]
    for name, least in at_least.items():
        value = by_name[name].value if name in by_name else None
        if value is None or value < least:
            faults.append(f"{name}: {'no figure' if value is None else number_text(value)}, {number_text(least)} at least are asked")
    return faults


def figure_text(record: dict, names: list[str]) -> str:
    """Of what a long run recorded: the figures with these names, and when."""
    by_name = figures_by_name(record)
    texts = [f"{name} {number_text(by_name[name].value)} {by_name[name].unit}".rstrip() for name in names]
    return f"{'; '.join(texts)} ({record['about']['date']}, `{record['about']['command']}`)"


def record_text(row: dict) -> str:
    if "record" not in row:
        return ""
    file = BENCHMARKS / row["record"]
    return f"{figure_text(record_of(row), row['figures'])}: [all]({file.relative_to(PAGE.parent)})"


def fail_for_want_of(pattern: str, row: dict) -> NoReturn:
    sys.exit(f"promises.py: no test printed {pattern}: {row['promise']}")


def numbers_of(row: dict, ran: dict[str, Run]) -> list[str]:
    """What the tests printed, as one number each: the greatest, or the sum."""
    texts = []
    for number in row.get("numbers", []):
        found = [float(match[1]) for run in runs_of(row, ran) for match in re.finditer(number["pattern"], run.output)]
        if runs_of(row, ran) and not found:
            fail_for_want_of(number["pattern"], row)
        if found:
            texts.append(number["text"].format(number_text({"greatest": max, "sum": sum}[number["of"]](found))))
    return texts


def count_text(row: dict, ran: dict[str, Run]) -> str:
    """`57 tests passed, 32 skipped`; empty when none did."""
    count = len(runs_of(row, ran))
    skipped = len(runs_of(row, ran, SKIPPED))
    return f"{count} {'test' if count == 1 else 'tests'} passed{f', {skipped} skipped' if skipped else ''}" if count else ""


def figures_of(row: dict, ran: dict[str, Run]) -> str:
    """Of the long run, how many tests passed, and what they printed, without repetition."""
    printed = []
    for pattern in row.get("printed", []):
        found = [match[0] for run in runs_of(row, ran) for match in re.finditer(pattern, run.output)]
        if runs_of(row, ran) and not found:
            fail_for_want_of(pattern, row)
        printed += found
    texts = [record_text(row), count_text(row, ran), *printed, *numbers_of(row, ran)]
    return "; ".join(dict.fromkeys(text for text in texts if text))


def seconds_of(row: dict, ran: dict[str, Run]) -> str:
    matching = runs_of(row, ran)
    return f"{sum(run.seconds for run in matching):.1f}" if matching else ""


def table(ran: dict[str, Run]) -> str:
    lines = ["| promise | tests | figures | seconds |", "|---|---|---|---|"]
    for row in rows():
        tests = ", ".join(f"`{test}`" for test in row["tests"])
        lines.append(f"| {row['promise']} | {tests} | {figures_of(row, ran)} | {seconds_of(row, ran)} |")
    return "\n".join(lines)


def without_figures(text: str) -> str:
    """What does not change from one run to the next: promises and tests."""
    return "\n".join("|".join(line.split(" | ")[:2]) for line in text.splitlines())


def place_of(page: str) -> slice:
    """Where the page has the table. Raises ValueError when it has no place for it."""
    return slice(page.index(BEGIN) + len(BEGIN) + 1, page.index(END))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="into docs/reliability.md")
    arguments = parser.parse_args()
    ran = runs(JUNIT)
    unproven = [f"{row['promise']}: {fault}" for row in rows() for fault in unproven_by(row, ran)]
    if unproven:
        print("promises.py: not proven by build/tests.xml (make test writes it):", *unproven, sep="\n", file=sys.stderr)
        return 1
    new = table(ran) + "\n"
    if not arguments.write:
        print(new, end="")
        return 0
    page = PAGE.read_text(encoding="utf-8")
    place = place_of(page)
    PAGE.write_text(page[:place.start] + new + page[place.stop:], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
