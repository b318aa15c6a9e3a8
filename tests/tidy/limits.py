"""The numbers in proto comments are the defaults of include/simile/limits.h, and say which limit they are.

A comment writes a limit as `10,000 (limits.k_max)`, `8 KiB (limits.filter_bytes_max)` or
`2 s (limits.search_deadline_default)`. Documents may use the same form.
"""

import dataclasses
import functools
import pathlib
import re
from typing import Iterator

from tree import Finding, SourceFile

LIMITS = "include/simile/limits.h"

# `type name = value;`, `type name{value};`, with `inline constexpr` before it or not.
MEMBER = re.compile(r"^\s*(?:inline constexpr )?(?P<type>std::\w+(?:::\w+)?|double) (?P<name>\w+)\s*"
                    r"(?:=\s*(?P<value>[^;]+)|\{(?P<braced>[^}]*)\});", re.MULTILINE)
LITERAL = re.compile(r"(0x[0-9a-f]+|[0-9]+)u?l?l?", re.IGNORECASE)

NUMBER = r"(?<![\w,])(?<!\d\.)(?P<number>\d[\d,]*)(?!\.\d)"  # not a part of 0.25 or fp16; 1..10,000 holds two
REFERENCE = re.compile(NUMBER + r"(?:\s*(?P<unit>[A-Za-z]+))?\s*\(limits\.(?P<name>[a-z]\w*)\)")
NAME = re.compile(r"\blimits\.(?!h\b)(?P<name>[a-z]\w*)")  # not limits.h, nor the form limits.NAME itself
PLAIN = re.compile(NUMBER + r"(?:\s*(?P<unit>KiB|MiB|GiB|ms)\b)?")

BYTES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MILLISECONDS = {"ms": 1, "s": 1_000, "min": 60_000}

# Numbers that equal a limit and are none: the file, and what its comment says.
ALLOWED = (
    ("proto/simile/v1/search.proto", "10 * k, at least 100"),
    ("proto/simile/v1/collections.proto", "0: 100"),
)


@dataclasses.dataclass(frozen=True)
class Limit:
    value: int
    is_duration: bool


def read_value(text: str, known: dict[str, Limit]) -> int:
    """The value of `10'000`, `20U << 20` or another limit's name."""
    base, *shifts = text.replace("'", "").split("<<")
    if base.strip() in known:
        value = known[base.strip()].value
    elif literal := LITERAL.fullmatch(base.strip()):
        value = int(literal[1], 0)
    else:
        raise ValueError(f"{LIMITS}: cannot read the value \"{text}\"; write a literal, a shift or a name")
    for shift in shifts:
        value <<= int(shift)
    return value


@functools.cache
def limits(root: pathlib.Path) -> dict[str, Limit]:
    """Every limit with its default; empty where the tree has no limits.h."""
    known: dict[str, Limit] = {}
    file = root / LIMITS
    text = re.sub(r"//.*", "", file.read_text(encoding="utf-8")) if file.exists() else ""
    for member in MEMBER.finditer(text):
        if member["type"] != "double":
            value = read_value(member["value"] or member["braced"], known)
            known[member["name"]] = Limit(value, member["type"].startswith("std::chrono::"))
    return known


def comments(file: SourceFile) -> str:
    """The file with everything but its comments left out, line by line."""
    return "\n".join(line.partition("//")[2] for line in file.lines)


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def is_equal(number: str, unit: str | None, limit: Limit) -> bool:
    """Whether the number with its unit is the limit; a word such as `bytes` or `rows` is no factor."""
    value = int(number.replace(",", ""))
    if limit.is_duration:
        return unit in MILLISECONDS and value * MILLISECONDS[unit] == limit.value
    return unit not in MILLISECONDS and value * BYTES.get(unit or "", 1) == limit.value


def limit_value(file: SourceFile) -> Iterator[Finding]:
    """A proto comment or document that names a limit, `10,000 (limits.k_max)`, gives the default of limits.h."""
    if file.suffix not in {".proto", ".md"}:
        return
    text = comments(file) if file.suffix == ".proto" else "\n".join(file.lines)
    right = set()
    for match in REFERENCE.finditer(text):
        limit = limits(file.root).get(match["name"])
        if limit and is_equal(match["number"], match["unit"], limit):
            right.add(match.start("name"))
    names = NAME.finditer(text) if file.suffix == ".proto" else REFERENCE.finditer(text)
    for match in names:
        if match.start("name") not in right:
            yield file.find("limit-value", line_of(text, match.start("name")))


def limit_name(file: SourceFile) -> Iterator[Finding]:
    """A number in a proto comment that equals a limit (three digits or more, or KiB and MiB) names it: `(limits.NAME)`."""
    if file.suffix != ".proto" or str(file.path).startswith("proto/google/"):
        return
    text = comments(file)
    named = {match.start("number") for match in REFERENCE.finditer(text)}
    for match in PLAIN.finditer(text):
        number, unit = match["number"].rstrip(","), match["unit"]
        if match.start() in named or (len(number) < 3 and not unit):
            continue
        line = line_of(text, match.start())
        allowed = any(file.path == path and words in file.lines[line - 1] for path, words in ALLOWED)
        if not allowed and any(is_equal(number, unit, limit) for limit in limits(file.root).values()):
            yield file.find("limit-name", line)


RULES = {
    "limit-value": limit_value,
    "limit-name": limit_name,
}
