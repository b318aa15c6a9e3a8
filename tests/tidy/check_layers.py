#!/usr/bin/env python3
"""Checks the layers, the house rules and what documents say of the code, over the whole tree.

    check_layers.py [--root DIR] [--list]

Prints `path:line: rule: the offending line` for each break and exits 1; exits 0 when there is none.
docs/hacking.md shows the layers. Standard library only.
"""

import argparse
import pathlib
import sys
from typing import Iterator

import house
import layers
import limits
import links
import symbols
import words
from tree import Finding, source_files

RULES = layers.RULES | house.RULES | limits.RULES | links.RULES | symbols.RULES | words.RULES


def check(root: pathlib.Path) -> Iterator[Finding]:
    """Every break of every rule below root, file by file."""
    for file in source_files(root):
        for rule in RULES.values():
            yield from rule(file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--list", action="store_true", help="print every rule and what it asks")
    arguments = parser.parse_args()
    if arguments.list:
        print("Who may include whom:", *layers.ORDER, sep="\n  ", end="\n\n")
        for name, rule in RULES.items():
            print(f"{name:20} {' '.join(rule.__doc__.split())}")
        return 0
    findings = list(check(arguments.root))
    for finding in findings:
        print(finding)
    count = sum(1 for _ in source_files(arguments.root))
    print(f"{count} files, {len(RULES)} rules, {len(findings)} breaks")
    return 1 if findings or not count else 0


if __name__ == "__main__":
    sys.exit(main())
