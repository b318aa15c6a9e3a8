"""The links of Markdown files."""

import pathlib
import re
from typing import Iterator

from tree import Finding, SourceFile

LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"`[^`]*`")
FENCE = re.compile(r"^\s*```")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")


def prose(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The lines outside of blocks of code, with their numbers."""
    in_code = False
    for number, line in enumerate(lines, 1):
        if FENCE.match(line):
            in_code = not in_code
        elif not in_code:
            yield number, line


def anchors(lines: list[str]) -> set[str]:
    """Of the headings, as GitHub makes them."""
    found: dict[str, int] = {}
    for _, line in prose(lines):
        if match := HEADING.match(line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).lower()
            anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            count = found[anchor] = found.get(anchor, -1) + 1
            if count:
                found[f"{anchor}-{count}"] = 0
    return set(found)


def broken_link(file: SourceFile) -> Iterator[Finding]:
    """A link of a Markdown file leads to a file of the tree, and to a heading that it has."""
    if not file.is_doc:
        return
    for number, line in prose(file.lines):
        for target in LINK.findall(CODE.sub("", line)):
            if "://" in target or target.startswith("mailto:"):
                continue
            name, _, anchor = target.partition("#")
            path = file.root / pathlib.PurePosixPath(file.path).parent / name if name else file.root / file.path
            if not path.exists():
                yield file.find("broken-link", number)
            elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text(encoding="utf-8").splitlines()):
                yield file.find("broken-link", number)


RULES = {"broken-link": broken_link}
