"""The house rules that a script can check. Patterns are spelled so that this file does not match itself."""

import ast
import re
from typing import Iterator

from tree import Finding, SourceFile

LINES_MAX = 700

VAGUE_WORDS = {"util", "utils", "helper", "helpers", "manager", "common", "misc", "stuff", "fast", "new"}
UNFINISHED = re.compile(r"\b(TO[D]O|FIX[M]E|X[X]X|HA[C]K)\b|\b[Nn]ot (yet )?implement[e]d\b|\bplace[h]older\b")
INEXACT_FLAG = re.compile(r"-O[f]ast|-f(fast|unsafe|finite|reciprocal|associative)-math|use[_]fast_math"
                          r"|-ffp-contract=(fast|o[n])|-fno-signed-[z]eros|-ftz=[t]rue|-mdaz-[f]tz")
INEXACT_CODE = re.compile(r"_MM_SET_(FLUSH|DENORMALS)[_]|\b_mm_set[c]sr\b|_mm512_reduce_add[_]ps"
                          r"|\bmsr\s+f[p]cr\b|_set_f[p]cr\b|\bFP_CONTRACT\s+O[N]\b|optimize\(\"[^\"]*[f]ast")
CUDA_SWITCH = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*(CUDA|NVCC)")
SLEEP = re.compile(r"\bsleep_(for|until)\b|\b(u|nano)?sleep\s*\(|\bSleepFor\s*\(")
SHELL_SLEEP = re.compile(r"^\s*sleep\s+[\d.$]")
SIGNAL = re.compile(r"(?<![\w.>])kill(pg)?\s*\((?!getpid\(\))")
PYTHON_SIGNAL = re.compile(r"\bos\.kill(pg)?\s*[(]")
# The last two signal a group and processes whose numbers Python has from its own start of them.
SIGNAL_SENDERS = {"tests/base/signal_process.h", "tests/python/servers.py", "tests/bench/gpu/run.py", "tests/bench/serving/attacks.py"}
SHARED_NAME = re.compile(r"\bTempDir\s*\(\)|\btemp_directory_path\b|\bgettempdir\b|\bmktemp\s*\(|[\"']/tmp/")
TEST_CASE = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
SOURCE_GLOB = re.compile(r"\bfile\s*\(\s*GLO[B]", re.IGNORECASE)

CODE_SUFFIXES = {".h", ".cpp", ".cc", ".cu", ".cuh", ".py", ".sh", ".cmake", ".proto", ".txt", ""}


def file_name(file: SourceFile) -> Iterator[Finding]:
    """Names say what is inside; C++ files are snake_case, except headers of CUDA that the emulated device replaces."""
    if file.path.startswith("tests/emulated_cuda/include/"):
        return
    words = re.split(r"[^a-z]+", file.path.lower())
    if VAGUE_WORDS & set(words) or (file.is_cpp and not re.fullmatch(r"[a-z0-9_]+\.[a-z]+", file.parts[-1])):
        yield file.find("file-name", 1)


def file_length(file: SourceFile) -> Iterator[Finding]:
    """No file is longer than 700 lines, so that a new reader finds the way in it."""
    if file.suffix in CODE_SUFFIXES and len(file.lines) > LINES_MAX:
        yield file.find("file-length", LINES_MAX + 1)


def unfinished(file: SourceFile) -> Iterator[Finding]:
    """The tree holds no unfinished work and no notes about it."""
    yield from file.matches("unfinished", UNFINISHED)


def inexact_arithmetic(file: SourceFile) -> Iterator[Finding]:
    """Nothing may let the compiler or the processor change the bits of a score."""
    if not file.is_doc:
        yield from file.matches("inexact-arithmetic", INEXACT_FLAG)
    if file.is_cpp and not file.is_test:  # tests set the modes to prove that the server resets them
        yield from file.matches("inexact-arithmetic", INEXACT_CODE, code_only=True)


def cuda_switch(file: SourceFile) -> Iterator[Finding]:
    """No preprocessor switch on CUDA except in kernels/device.h and the emulated device; device code may test __CUDA_ARCH__."""
    if not file.is_cpp or file.path.startswith(("kernels/device.h", "tests/emulated_cuda/")):
        return
    device = file.path.startswith(("kernels/", "src/backend/cuda/"))
    for finding in file.matches("cuda-switch", CUDA_SWITCH, code_only=True):
        if not (device and "__CUDA_ARCH__" in finding.text):
            yield finding


def sleep_in_test(file: SourceFile) -> Iterator[Finding]:
    """Tests wait for events and use injected clocks; they never sleep."""
    if file.is_test and not file.is_doc:
        yield from file.matches("sleep-in-test", SLEEP, code_only=True)
        if not file.is_cpp and file.suffix != ".py":
            yield from file.matches("sleep-in-test", SHELL_SLEEP)


def signal_to_a_group(file: SourceFile) -> Iterator[Finding]:
    """Tests signal processes through SignalProcess or servers.send_signal, which refuse the numbers of groups, 0 and -1."""
    if file.is_test and file.path not in SIGNAL_SENDERS:
        if file.is_cpp:
            yield from file.matches("signal-to-group", SIGNAL, code_only=True)
        if file.suffix == ".py":
            yield from file.matches("signal-to-group", PYTHON_SIGNAL)


def shared_temporary_name(file: SourceFile) -> Iterator[Finding]:
    """Tests that run at the same time share no file: each has a ScratchFolder or a tempfile.TemporaryDirectory of its own."""
    if file.is_test and not file.is_doc and file.path != "tests/files/scratch_folder.h":
        yield from file.matches("shared-temporary-name", SHARED_NAME, code_only=True)


def case_name(file: SourceFile) -> Iterator[Finding]:
    """Tests are named ThingTest.DoesXWhenY."""
    if not (file.is_test and file.is_cpp):
        return
    for number, line in enumerate(file.lines, 1):
        if match := TEST_CASE.match(line):
            if not re.fullmatch(r"[A-Z][A-Za-z0-9]*Test", match[1]) or not re.fullmatch(r"[A-Z][A-Za-z0-9]*", match[2]):
                yield file.find("test-name", number)


def source_glob(file: SourceFile) -> Iterator[Finding]:
    """CMake lists every source by name: a glob misses a new file until CMake runs again."""
    if file.suffix in {".cmake", ".txt"}:
        yield from file.matches("source-glob", SOURCE_GLOB)


def python_syntax(file: SourceFile) -> Iterator[Finding]:
    """Python files parse, those too that no test runs."""
    if file.suffix == ".py":
        try:
            ast.parse("\n".join(file.lines))
        except SyntaxError as error:
            yield file.find("python-syntax", error.lineno or 1)


RULES = {
    "file-name": file_name,
    "file-length": file_length,
    "unfinished": unfinished,
    "inexact-arithmetic": inexact_arithmetic,
    "cuda-switch": cuda_switch,
    "sleep-in-test": sleep_in_test,
    "signal-to-group": signal_to_a_group,
    "shared-temporary-name": shared_temporary_name,
    "test-name": case_name,
    "source-glob": source_glob,
    "python-syntax": python_syntax,
}
