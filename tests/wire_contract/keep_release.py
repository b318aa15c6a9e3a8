#!/usr/bin/env python3
"""Keeps the wire contract of the version that CMakeLists.txt names, as tests/wire_contract/released/VERSION.

    keep_release.py [--root DIR]

Kept are proto/simile/v1 without comments and empty lines, so that a diff of two releases has only what a compiler sees,
and names.tsv: the reasons of errors with their codes, and the capabilities, as docs/api.md lists them. A version that
CHANGELOG.md no longer calls unreleased is never changed. Standard library only.
"""

import argparse
import pathlib
import re
import shutil
import sys

VERSION = re.compile(r"^project\(simile VERSION (\d+\.\d+\.\d+)\b", re.MULTILINE)
TEXT_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
REASON = re.compile(r"^\| `([A-Z_]+)` \| `([A-Z_]+)` \|", re.MULTILINE)
CAPABILITY = re.compile(r"^\| `([a-z_]+)` \| \d+\.\d+\.\d+ \|", re.MULTILINE)


def without_comments(proto: str) -> str:
    """What a compiler sees of a .proto file, line by line."""
    bare = TEXT_OR_COMMENT.sub(lambda match: match[0] if match[0].startswith('"') else "", proto)
    return "".join(f"{line.rstrip()}\n" for line in bare.splitlines() if line.strip())


def names(api: str) -> str:
    """The names that programs compare with, a line each."""
    lines = [f"reason\t{reason}\t{code}\n" for reason, code in REASON.findall(api)]
    return "".join(lines + [f"capability\t{name}\n" for name in CAPABILITY.findall(api)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    root = parser.parse_args().root

    version = VERSION.search((root / "CMakeLists.txt").read_text())[1]
    folder = root / "tests/wire_contract/released" / version
    if folder.exists():
        if f"\n## {version}, unreleased\n" not in (root / "CHANGELOG.md").read_text():
            print(f"{version} is released, and its contract is kept for good; give CMakeLists.txt the next version",
                  file=sys.stderr)
            return 1
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for proto in sorted((root / "proto/simile/v1").glob("*.proto")):
        (folder / proto.name).write_text(without_comments(proto.read_text()))
    (folder / "names.tsv").write_text(names((root / "docs/api.md").read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
