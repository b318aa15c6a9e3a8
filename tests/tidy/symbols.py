"""The names of code in Markdown files.

A document names code in one form: [`BuildAnswer`](../src/engine/queue/slice_runner.cpp). The name is declared or defined in the
file that the link leads to. A link may also have a file's name as its text; then that is the end of the path it leads to.
"""

import functools
import pathlib
import re
from typing import Iterator

from links import CODE, prose
from tree import CPP, TEXT, Finding, SourceFile, source_files

NAMED_LINK = re.compile(r"\[`(?P<text>[^`]+)`\]\((?P<target>[^()\s#]+)\)")
SYMBOL = re.compile(r"~?[A-Za-z_]\w*(?:(?:::|\.)~?[A-Za-z_]\w*)*(?:\(\))?")
FILE_NAME = re.compile(r"[\w./-]*\w\.(?:h|cpp|cc|cu|cuh|py|proto|cmake|yaml|yml|json|txt|sh|csv)")
FILE_PAIR = re.compile(r"(?P<stem>.*)\.\{(?P<first>\w+),(?P<second>\w+)\}$")
COMMENT = re.compile(r"//.*")

# What must not be before a name that a line declares: `return Total(x)` calls it.
NO_TYPE = r"(?<!\breturn)(?<!\bthrow)(?<!\belse)(?<!\bcase)(?<!\bgoto)(?<!\bdelete)(?<!\bnew)"
# C++ names that a document can only mean as ours: WordMask, kRowsMax, Snapshot::Pin.
OURS = re.compile(r"k[A-Z]\w*[a-z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|[A-Z]\w*::~?\w+")

# The documents in which a name of our C++ code is a link at least once.
LINKED_IN = ("docs/hacking.md", "docs/design/", "docs/operations.md")
# Names that look like ours and are those of other programs.
FOREIGN = {"ContainerCreating", "CrashLoopBackOff", "ReadWriteOnce"}


def cpp_declares(text: str, name: str) -> bool:
    """Whether C++ without comments declares or defines the name; a use of it, or `class X;`, does not count."""
    word = re.escape(name)
    patterns = (
        rf"\b(?:class|struct|union|enum|enum class|concept|namespace)\s+(?:\w+::)*{word}\b(?!\s*;)",
        rf"\busing\s+{word}\s*=",
        rf"#\s*define\s+{word}\b",
        rf"[\w>)\]][*&]*{NO_TYPE}\s+[*&]?(?:\w+(?:<[^<>]*>)?::)*{word}\s*(?:\(|=(?!=)|\{{|;|\[|,|:(?!:))",
        rf"^(?:\w+(?:<[^<>]*>)?::)+{word}\s*\(",  # a constructor, or the type of the result is on the line before
        rf"^\s*TEST(?:_F|_P)?\((?:{word},|\w+,\s*{word}\))",
        rf"\benum\b[^{{}};]*\{{[^}}]*\b{word}\b",  # an enumerator
    )
    return any(re.search(pattern, text, re.MULTILINE) for pattern in patterns)


def body_of(text: str, begin: int) -> str:
    """What is between the brace at `begin` and its pair."""
    depth = 0
    for brace in re.finditer(r"[{}]", text[begin:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[begin:begin + brace.end()]
    return text[begin:]


def cpp_declares_in(text: str, scope: str, name: str) -> bool:
    """Whether C++ defines `Scope::Name`, or declares the name inside of the class, struct, enumeration or namespace."""
    defined = rf"(?:^|[\w>)\]][*&]*\s+[*&]?)(?:\w+(?:<[^<>]*>)?::)*{scope}(?:<[^<>]*>)?::{name}\s*(?:\(|=(?!=)|\{{|;)"
    if re.search(defined, text, re.MULTILINE):
        return True
    for opened in re.finditer(rf"\b(class|struct|enum|enum class|namespace)\s+(?:\w+::)*{scope}\b[^;{{}}()]*\{{", text):
        body = body_of(text, opened.end() - 1)
        if re.search(rf"\b{name}\b", body) if opened[1].startswith("enum") else cpp_declares(body, name):
            return True
    return False


def other_declares(text: str, name: str, suffix: str) -> bool:
    """The same of Python, proto and CMake; of any other file, whether it has the word."""
    word = re.escape(name)
    if suffix == ".py":
        pattern = rf"^\s*(?:def|class)\s+{word}\b|^{word}\s*(?::|=(?!=))|^\s*self\.{word}\s*(?::|=(?!=))"
    elif suffix == ".proto":
        pattern = rf"\b(?:message|service|rpc|enum|oneof)\s+{word}\b|\b{word}\s*=\s*\d"
    else:
        pattern = rf"(?<![\w-]){word}(?![\w-])"
    return re.search(pattern, text, re.MULTILINE) is not None


def declares(path: pathlib.Path, symbol: str) -> bool:
    """Whether the file declares the symbol; of `Class::Name` the name inside of the class."""
    text = path.read_text(encoding="utf-8", errors="replace")
    *scopes, name = re.split(r"::|\.", symbol.removesuffix("()"))
    if path.suffix in CPP:
        text = COMMENT.sub("", text)
        return cpp_declares_in(text, scopes[-1], name) if scopes else cpp_declares(text, name)
    return other_declares(text, name, path.suffix)


@functools.cache
def code_files(root: pathlib.Path) -> tuple[pathlib.Path, ...]:
    return tuple(root / file.path for file in source_files(root)
                 if not file.is_doc and not file.path.startswith("tests/tidy/"))


@functools.cache
def words_of_code(root: pathlib.Path) -> frozenset[str]:
    """Every word of the tree's files that are not documents."""
    found: set[str] = set()
    folders = [path for path in root.iterdir() if path.is_dir() and not path.name.startswith((".git", "build"))]
    for path in code_files(root):
        found.update(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace")))
    for path in (path for folder in folders if folder.name == "deploy" for path in folder.rglob("*")):
        if path.is_file() and path.suffix not in TEXT:
            found.update(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace")))
    return frozenset(found)


@functools.cache
def paths_of_code(root: pathlib.Path) -> tuple[str, ...]:
    """Every file's path, test inputs too, with a slash before it."""
    listed = [path for path in root.iterdir() if path.is_file()]
    for folder in root.iterdir():
        if folder.is_dir() and not folder.name.startswith(("build", ".git", ".cache", "shared")):
            listed += [path for path in folder.rglob("*") if path.is_file()]
    return tuple("/" + path.relative_to(root).as_posix() for path in listed)


@functools.cache
def places(root: pathlib.Path, symbol: str) -> str:
    """Where a symbol is declared today, for a finding: at most three files."""
    name = re.split(r"::|\.", symbol.removesuffix("()"))[-1]
    found = [path.relative_to(root).as_posix() for path in code_files(root)
             if name in path.read_text(encoding="utf-8", errors="replace") and declares(path, symbol)]
    found.sort(key=lambda path: (path.startswith("tests/"), path.endswith(".h"), path))
    return "nowhere" if not found else ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")


def target_of(file: SourceFile, link: re.Match[str]) -> pathlib.Path | None:
    """The file of the tree that a link leads to; None for a folder, a document, another site."""
    if "://" in link["target"]:
        return None
    path = (file.root / file.path).parent / link["target"]
    return path.resolve() if path.is_file() and path.suffix != ".md" else None


def ends_of(text: str) -> tuple[str, ...]:
    """The paths that a file's name in a document may mean: `a.{h,cpp}` is two."""
    pair = FILE_PAIR.match(text)
    return (f"{pair['stem']}.{pair['first']}", f"{pair['stem']}.{pair['second']}") if pair else (text,)


def symbol_link(file: SourceFile) -> Iterator[Finding]:
    """A document that links the name of code, [`Name`](file), leads to the file that declares it."""
    if not file.is_doc:
        return
    for number, line in prose(file.lines):
        for link in NAMED_LINK.finditer(line):
            path, text = target_of(file, link), link["text"]
            if path is None or text in (path.name, path.stem) or not SYMBOL.fullmatch(text) or FILE_NAME.fullmatch(text):
                continue
            if declares(path, text):
                continue
            shown = path.relative_to(file.root.resolve()).as_posix()
            yield Finding(file.path, number, "symbol-link",
                          f"{text} is not declared in {shown}; today it is in: {places(file.root, text)}")


def file_link(file: SourceFile) -> Iterator[Finding]:
    """A link with a file's name as its text leads to a file of that name; a name without a link is the end of a path."""
    if not file.is_doc:
        return
    for number, line in prose(file.lines):
        for link in NAMED_LINK.finditer(line):
            text = link["text"].rstrip("/")
            if ("/" in text and " " not in text) or FILE_NAME.fullmatch(text) or FILE_PAIR.match(text):
                target = (file.root / file.path).parent / link["target"]
                path = f"/{target.resolve().relative_to(file.root.resolve()).as_posix()}/" if target.exists() else ""
                if path and not any(f"/{end}/" in path for end in ends_of(text)):
                    yield file.find("file-link", number)
        if file.path.startswith(LINKED_IN):
            for span in CODE.findall(line):
                name = span.strip("`")
                if re.fullmatch(r"[\w/]*\w\.(?:h|cpp|cu|cuh|proto)", name) and not any(
                        path.endswith("/" + name) for path in paths_of_code(file.root)):
                    yield file.find("file-link", number)


def unknown_symbol(file: SourceFile) -> Iterator[Finding]:
    """A name in a document that looks like our C++ code, `Name` or `kName`, is a word of the tree."""
    if not file.is_doc or file.path == "CHANGELOG.md":
        return
    for number, line in prose(file.lines):
        for span in CODE.findall(line):
            text = span.strip("`").removesuffix("()")
            if OURS.fullmatch(text) and text not in FOREIGN:
                missing = [part for part in text.split("::") if part.strip("~") not in words_of_code(file.root)]
                if missing:
                    yield Finding(file.path, number, "unknown-symbol", f"{text}: the tree has no {missing[0]}")


def unlinked_symbol(file: SourceFile) -> Iterator[Finding]:
    """hacking.md, operations.md and the design notes link each name of our C++ code to its file at least once."""
    if not file.path.startswith(LINKED_IN) or not file.is_doc:
        return
    linked = {link["text"].removesuffix("()") for _, line in prose(file.lines) for link in NAMED_LINK.finditer(line)}
    linked |= {part for text in linked for part in text.split("::")}
    reported: set[str] = set()
    for number, line in prose(file.lines):
        for span in CODE.findall(NAMED_LINK.sub("", line)):
            text = span.strip("`").removesuffix("()")
            if not OURS.fullmatch(text) or text in linked or text in reported:
                continue
            where = places(file.root, text)
            if where.startswith(("src/", "include/", "kernels/")):
                reported.add(text)
                yield Finding(file.path, number, "unlinked-symbol", f"{text} is in: {where}")


RULES = {
    "symbol-link": symbol_link,
    "file-link": file_link,
    "unknown-symbol": unknown_symbol,
    "unlinked-symbol": unlinked_symbol,
}
