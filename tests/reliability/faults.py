#!/usr/bin/env python3
"""Each call of a server that can fail does so in its turn, and collections are swapped: runs tests/faults, records how that ended.

    faults.py FAULTS_TEST [--rotation all] [--filter TESTS] [--json FILE]
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import time

from cycle_report import Figure, Report, exactly

# What FaultNumbers::ForEach and SwapsTest print.
OPERATION = re.compile(r"([\w-]+), ([\w-]+): calls 1 to (\d+)(?:, one in \d+)?; (.+)")
SWAPS = re.compile(r"(\d+) changes \((\d+) refused, (\d+) rolled back\) in [\d.]+ s; (\d+) answers, (\d+) failed or mixed")
TEST = re.compile(r"\[ +(OK|FAILED) +\] (\S+?)(?:, where .*)? \(\d+ ms\)")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, metavar="FAULTS_TEST")
    parser.add_argument("--rotation", default="all", help="TEST_ROTATION: which of the calls; default %(default)s")
    parser.add_argument("--filter", default="*", metavar="TESTS", help="as --gtest_filter has it; default %(default)s")
    parser.add_argument("--json", type=pathlib.Path, help="file to write all figures to")
    return parser.parse_args()


class Run:
    """What the tests printed."""

    def __init__(self):
        self.tests: list[tuple[str, str]] = []  # OK or FAILED, and the name
        self.operations: list[dict] = []
        self.swaps: list[int] = []  # changes, refused, rolled back, answers, failed or mixed

    def take(self, line: str) -> None:
        if match := TEST.fullmatch(line):
            self.tests.append((match[1], match[2]))
        elif match := OPERATION.fullmatch(line):
            ends = {end: int(count) for count, end in (text.split(" ", 1) for text in match[4].split(", "))}
            self.operations.append({"operation": match[1], "kind": match[2], "calls": int(match[3]), "ends": ends})
        elif match := SWAPS.fullmatch(line):
            self.swaps = [int(number) for number in match.groups()]

    def figures(self, every: bool) -> list[Figure]:
        """every  whether each call was made to fail"""
        calls = sum(each["calls"] for each in self.operations)
        ends = collections.Counter()
        for each in self.operations:
            ends.update(each["ends"])
        # The last attempt of each operation and kind is one in which no call was left to fail.
        failed = ends.total() - len(self.operations)
        figures = [Figure("tests that passed", sum(outcome == "OK" for outcome, _ in self.tests), at_least=1),
                   Figure("operations and kinds of failure", len(self.operations)),
                   Figure("calls that can fail", calls),
                   exactly("calls that failed, each in its turn", failed, calls) if every else
                   Figure("calls that failed, each in its turn", failed, at_least=1),
                   *(Figure(f"attempts: {end}", count) for end, count in ends.most_common())]
        if self.swaps:
            names = ("changes under load", "of them refused", "of them rolled back", "answers meanwhile")
            figures += [*(Figure(name, number) for name, number in zip(names, self.swaps)),
                        exactly("answers that failed or mixed snapshots", self.swaps[4], 0)]
        return figures


def main() -> int:
    arguments = parsed()
    part = "" if arguments.filter == "*" else f" --filter {arguments.filter}"
    report = Report(command=f"faults.py --rotation {arguments.rotation}{part}")
    began = time.monotonic()
    run = Run()
    variables = {**os.environ, "TEST_ROTATION": arguments.rotation}
    variables.pop("TEST_FAULT", None)
    with subprocess.Popen([arguments.program, f"--gtest_filter={arguments.filter}"], env=variables, stdout=subprocess.PIPE,
                          text=True, encoding="utf-8") as tests:
        for line in tests.stdout:
            print(line, end="", flush=True)
            run.take(line.rstrip("\n"))
    for outcome, name in run.tests:
        if outcome != "OK":
            report.fail(f"{name} failed")
    if tests.returncode != 0 and not report.failures:
        report.fail(f"the tests ended with {tests.returncode}")
    report.add(*run.figures(every=arguments.rotation == "all"), Figure("time of all", time.monotonic() - began, "s"))
    print(report.table())
    report.write(arguments.json, operations=run.operations)
    return 0 if report.passed() else 1


if __name__ == "__main__":
    sys.exit(main())
