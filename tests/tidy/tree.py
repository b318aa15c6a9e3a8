"""The project's own text files, as the tidy rules see them."""

import dataclasses
import pathlib
import re
from typing import Iterator

# The project's files are in these folders and at the root; build trees and virtual environments are not.
FOLDERS = (".ci", "clients", "cmake", "deploy", "docker", "docs", "examples", "include", "kernels", "packages",
           "proto", "src", "tests")

# Test inputs and data, not sources: some are malformed on purpose.
DATA_FOLDERS = {"corpus", "data"}

CPP = {".h", ".cpp", ".cc", ".cu", ".cuh"}
TEXT = CPP | {".py", ".sh", ".cmake", ".proto", ".yaml", ".yml", ".md", ".txt"}
NAMES = {"Makefile", "Dockerfile", "CMakePresets.json", "run", "install"}


@dataclasses.dataclass(frozen=True)
class Finding:
    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


class SourceFile:
    """One file and its lines. `path` is relative to the root, with forward slashes."""

    def __init__(self, root: pathlib.Path, path: pathlib.Path):
        self.root = root
        self.path = path.relative_to(root).as_posix()
        self.parts = path.relative_to(root).parts
        self.suffix = path.suffix
        self.lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        self.is_cpp = self.suffix in CPP
        self.is_doc = self.suffix == ".md"
        self.is_test = self.parts[0] == "tests"

    @property
    def layer(self) -> str:
        """The folder under src/, `kernels`, `contracts` for include/simile, else empty."""
        if self.parts[0] == "src" and len(self.parts) > 2:
            return self.parts[1]
        if self.parts[0] == "kernels":
            return "kernels"
        if self.parts[:2] == ("include", "simile"):
            return "contracts"
        return ""

    def find(self, rule: str, line: int) -> Finding:
        text = self.lines[line - 1].strip() if line <= len(self.lines) else ""
        return Finding(self.path, line, rule, text)

    def matches(self, rule: str, pattern: re.Pattern[str], code_only: bool = False) -> Iterator[Finding]:
        """Every line that holds the pattern; code_only leaves out // comments."""
        for number, line in enumerate(self.lines, 1):
            if pattern.search(line.split("//")[0] if code_only and self.is_cpp else line):
                yield self.find(rule, number)


def is_ours(parts: tuple[str, ...]) -> bool:
    """Whether a path below one of FOLDERS is source, not test input."""
    return not (DATA_FOLDERS & set(parts[2:-1]) or "__pycache__" in parts)


def source_files(root: pathlib.Path) -> Iterator[SourceFile]:
    """Every text file of the project, in a stable order."""
    paths = [path for path in root.iterdir() if path.is_file()]
    for folder in FOLDERS:
        paths += [path for path in (root / folder).rglob("*")
                  if path.is_file() and is_ours(path.relative_to(root).parts)]
    for path in sorted(paths):
        if path.suffix in TEXT or path.name in NAMES:
            yield SourceFile(root, path)
